// What all charts share: colours, axes, figures. Colours are Okabe and Ito's, which the colour-blind
// tell apart; beyond eight runs lines are dashed as well.

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];
const POINTS = ["circle", "rect", "triangle", "rectRot", "crossRot", "star", "cross", "dash"];
const INK = "#1a1a1a";

function colour(i) { return COLOURS[i % COLOURS.length]; }
function dash(i) { return DASHES[Math.floor(i / COLOURS.length) % DASHES.length]; }

// Stripes of a colour, for the second kind of what has the colour already.
function stripes(ofColour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, 8, 8);
  pen.strokeStyle = ofColour;
  pen.lineWidth = 2.5;
  for (const shift of [-8, 0, 8]) {
    pen.beginPath();
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
    pen.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
Chart.defaults.font.size = 13;
Chart.defaults.color = INK;
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.devicePixelRatio = Math.max(2, window.devicePixelRatio || 1);
Chart.defaults.plugins.legend.position = "bottom";
Chart.defaults.plugins.legend.align = "start";
Chart.defaults.plugins.legend.labels.boxWidth = 28;
Chart.defaults.plugins.legend.labels.boxHeight = 9;
Chart.defaults.elements.bar.borderSkipped = false;

// An axis with a title; `format` shows its numbers.
function axis(title, format, more = {}) {
  const ticks = { callback: (value) => format(value), maxRotation: 0, ...(more.ticks || {}) };
  return { ...more, title: { display: true, text: title }, ticks, grid: { color: "#e2e2e2" } };
}

// A logarithmic axis shows the numbers 1, 2 and 5 of each decade, or powers of ten where there are
// many decades.
function logAxis(title, format, more = {}) {
  return axis(title, format, {
    ...more,
    type: "logarithmic",
    afterBuildTicks: (scale) => {
      const decades = Math.log10(scale.max / scale.min);
      const leading = decades > 4 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
      const ticks = [];
      for (let power = Math.floor(Math.log10(scale.min)); power <= Math.ceil(Math.log10(scale.max)); ++power) {
        for (const digit of leading) {
          const value = digit * 10 ** power;
          if (value >= scale.min * 0.999 && value <= scale.max * 1.001) ticks.push({ value });
        }
      }
      if (ticks.length > 1) scale.ticks = ticks;
    },
  });
}

function group(title, note) {
  const charts = document.getElementById("charts");
  element("h2", title, charts);
  if (note) element("p", note, charts).className = "note";
  const grid = element("div", undefined, charts);
  grid.className = "grid";
  return grid;
}

// A figure with a chart in it. `config` is Chart.js's.
function plot(parent, title, note, height, config) {
  const figure = element("figure", undefined, parent);
  const caption = element("figcaption", undefined, figure);
  element("h3", title, caption);
  if (note) element("p", note, caption);
  const holder = element("div", undefined, figure);
  holder.className = "plot";
  holder.style.height = `${height}px`;
  const canvas = element("canvas", undefined, holder);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", note ? `${title}. ${note}` : title);
  return new Chart(canvas, config);
}

// A plot and, below, a legend of such labels: rows of about so many letters.
const LETTERS_OF_A_ROW = 70;

function curveHeight(labels) {
  let rows = labels.length > 1 ? 1 : 0, letters = 0;
  for (const label of labels) {
    if (letters > 0 && letters + label.length + 8 > LETTERS_OF_A_ROW) {
      ++rows;
      letters = 0;
    }
    letters += label.length + 8;
  }
  return 330 + 24 * rows;
}

// Room for the bars, the axis and a legend of so many entries.
function barsHeight(bars, entries) {
  return 110 + 26 * bars + 24 * Math.ceil(entries / 3);
}

function line(i, label, data, more = {}) {
  return {
    label, data, borderColor: colour(i), backgroundColor: colour(i), borderDash: dash(i),
    borderWidth: 2, pointStyle: POINTS[i % POINTS.length], pointRadius: data.length > 60 ? 0 : 3,
    tension: 0, ...more,
  };
}

// As Chart.js makes them, with the line as it is drawn in place of a box.
function lineLabels(chart) {
  return Chart.defaults.plugins.legend.labels.generateLabels(chart).map((label) => {
    const set = chart.data.datasets[label.datasetIndex];
    const ofLine = { lineWidth: 2, strokeStyle: set.borderColor, lineDash: set.borderDash };
    return { ...label, ...ofLine, fillStyle: set.borderColor, pointStyle: "line" };
  });
}

function lineOptions(x, y, format, xFormat, legend = true) {
  return {
    parsing: false,
    interaction: { mode: "nearest", axis: "x", intersect: false },
    scales: { x: { type: "linear", ...x }, y },
    plugins: {
      legend: {
        display: legend,
        labels: { usePointStyle: true, pointStyleWidth: 28, generateLabels: lineLabels },
      },
      tooltip: {
        callbacks: {
          title: (items) => (items.length > 0 ? xFormat(items[0].parsed.x) : ""),
          label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
        },
      },
    },
  };
}
