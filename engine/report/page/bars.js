// Bars of runs: throughput and latency side by side, and what time and aborts consist of.

function barOptions(x, format, stacked) {
  return {
    indexAxis: "y",
    scales: { x: { ...x, stacked }, y: { stacked, grid: { display: false }, ticks: { autoSkip: false } } },
    plugins: {
      tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${format(item.parsed.x)}` } },
    },
  };
}

// Labels in lines that leave room for the bars.
const LABEL_LETTERS = 34;

function broken(label) {
  const lines = [""];
  for (const word of label.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && (last + " " + word).length > LABEL_LETTERS) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines;
}

// The numbers behind the ends of the bars.
const valuesAtBars = {
  id: "valuesAtBars",
  afterDatasetsDraw(chart) {
    const pen = chart.ctx;
    pen.save();
    pen.font = `12px ${Chart.defaults.font.family}`;
    pen.fillStyle = INK;
    pen.textBaseline = "middle";
    chart.getDatasetMeta(0).data.forEach((bar, i) => {
      const value = chart.data.datasets[0].data[i];
      if (typeof value === "number") pen.fillText(large(value), bar.x + 5, bar.y);
    });
    pen.restore();
  },
};

// Bars of a number of those runs that have one, in the runs' colours.
function coloredBars(parent, title, note, runs, labels, places, value, x, format, more) {
  const having = runs.map((_, i) => i).filter((i) => typeof value(runs[i]) === "number");
  if (having.length === 0) return;
  const options = { ...barOptions(x, format, false), layout: { padding: { right: 48 } } };
  options.plugins.legend = { display: false };
  plot(parent, title, note, barsHeight(having.length * 1.3, 2), {
    type: "bar", options, ...more,
    data: { labels: having.map((i) => labels[i]), datasets: [{ label: title,
      data: having.map((i) => value(runs[i])), backgroundColor: having.map((i) => colour(places[i])) }] },
  });
}

// Runs of one workload; those of others have other numbers. `places` are their numbers on the page.
function compareWorkload(title, runs, places) {
  const parent = group(title);
  const labels = labelRuns(runs).map(broken);
  coloredBars(parent, "Throughput", "committed transactions", runs, labels, places,
    (run) => run.committed_per_second,
    axis("committed transactions a second", large, { beginAtZero: true }), count,
    { plugins: [valuesAtBars] });
  coloredBars(parent, "Cost", "processor's time of the server's sessions", runs, labels, places,
    (run) => run.session_cpu_us,
    axis("processor's time for one transaction", duration, { beginAtZero: true }), duration, {});
  const timed = runs.map((_, i) => i).filter((i) => runs[i].latency_us?.p99 > 0);
  if (timed.length === 0) return;
  const bars = (label, which, i) => ({ label, backgroundColor: colour(i),
    data: timed.map((run) => runs[run].latency_us[which]) });
  plot(parent, "Latency", "including attempts that were repeated; logarithmic",
    barsHeight(timed.length * 1.3, 2), {
      type: "bar", options: barOptions(logAxis("latency", duration), duration, false),
      data: { labels: timed.map((i) => labels[i]),
        datasets: [bars("median", "p50", 5), bars("p99", "p99", 0)] },
    });
}

function compareRuns(runs) {
  if (runs.length < 2) return;
  const workloads = distinct(runs.map((run) => run.workload));
  for (const workload of workloads) {
    const places = runs.map((_, i) => i).filter((i) => runs[i].workload === workload);
    compareWorkload(workloads.length > 1 ? `Comparison: ${workload}` : "Comparison",
      places.map((i) => runs[i]), places);
  }
}

const PRIMITIVES = { one_sided: "one-sided", rpc: "RPC" };

// Microseconds of each stage for one committed transaction: its rounds in all attempts.
function stageSets(runs) {
  const kinds = [];
  for (const run of runs) {
    for (const each of run.stage_latency || []) {
      if (!kinds.some((kind) => kind.stage === each.stage && kind.primitive === each.primitive)) {
        kinds.push({ stage: each.stage, primitive: each.primitive });
      }
    }
  }
  const stages = [...new Set(kinds.map((kind) => kind.stage))];
  return kinds.map(({ stage, primitive }) => {
    const plain = colour(stages.indexOf(stage));
    return {
      label: `${stage}, ${PRIMITIVES[primitive] || primitive}`,
      backgroundColor: primitive === "rpc" ? stripes(plain) : plain,
      borderColor: plain, borderWidth: 1,
      data: runs.map((run) => {
        const found = (run.stage_latency || []).find(
          (each) => each.stage === stage && each.primitive === primitive);
        return found && run.committed ? found.count * found.mean_us / run.committed : 0;
      }),
    };
  });
}

// The same as shares of a run's stages.
function shareSets(sets) {
  const totals = (sets[0]?.data || []).map((_, i) => sets.reduce((sum, set) => sum + set.data[i], 0));
  return sets.map((set) => ({ ...set, data: set.data.map((value, i) => 100 * value / (totals[i] || 1)) }));
}

function abortSets(runs) {
  const reasons = [...new Set(runs.flatMap((run) => Object.keys(run.aborts || {})))];
  return reasons.map((reason, i) => ({
    label: reason.replaceAll("_", " "),
    backgroundColor: i < COLOURS.length ? colour(i) : stripes(colour(i)),
    borderColor: colour(i), borderWidth: 1,
    data: runs.map((run) => 1000 * (run.aborts?.[reason] || 0) / Math.max(run.committed, 1)),
  }));
}

function breakdowns(runs, labels) {
  const staged = runs.map((_, i) => i).filter((i) => (runs[i].stage_latency || []).length > 0);
  const measured = runs.map((_, i) => i).filter((i) => runs[i].aborts);
  if (staged.length + measured.length === 0) return;
  const parent = group("Where time and attempts go");
  const stacked = (chosen, title, note, sets, x, format) => {
    if (sets.length === 0) return;
    plot(parent, title, note, barsHeight(chosen.length, sets.length), {
      type: "bar", options: barOptions(x, format, true),
      data: { labels: chosen.map((i) => broken(labels[i])), datasets: sets },
    });
  };
  const stages = stageSets(staged.map((i) => runs[i]));
  stacked(staged, "Time of the stages", "rounds of all attempts, for each committed transaction, " +
    "waiting included; striped: by RPC", stages,
    axis("time for one committed transaction", duration, { beginAtZero: true }), duration);
  stacked(staged, "Shares of the stages", "the same, as shares of the time of all stages",
    shareSets(stages), axis("% of the stages' time", percent, { min: 0, max: 100, ticks: { stepSize: 25 } }), percent);
  const aborts = abortSets(measured.map((i) => runs[i]));
  if (measured.length > 0 && aborts.length === 0) {
    element("p", "No attempt was aborted by the protocol.", parent).className = "note";
  }
  stacked(measured, "Aborted attempts by reason", "by the protocol; they were repeated", aborts,
    axis("aborted attempts for 1,000 committed transactions", large, { beginAtZero: true }),
    (value) => fixed(value, 2));
}
