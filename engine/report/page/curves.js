// Curves of runs: over time, and the distribution of latencies.

// Points of one run's seconds; the last one only if it is nearly whole.
function timelinePoints(run, value) {
  const points = [];
  run.timeline.forEach((second, i) => {
    const length = Math.min(1, run.seconds - i);
    if (length >= 0.9) points.push({ x: i, y: value(second, length) });
  });
  return points;
}

function hasTimeline(run) {
  return run.timeline && timelinePoints(run, () => 0).length > 1;
}

function timeAxis() {
  return axis("seconds since measuring began", (value) => value, { ticks: { precision: 0 } });
}

function throughputSets(runs, labels, chosen) {
  const sets = chosen.map((i) => line(i, labels[i], timelinePoints(runs[i],
    (second, length) => second.committed / length)));
  // A single run leaves room for what was lost.
  if (chosen.length === 1) {
    const run = runs[chosen[0]];
    sets[0].label = "committed";
    sets.push(line(1, "aborted attempts", timelinePoints(run,
      (second, length) => second.aborted / length)));
  }
  return sets;
}

function latencySets(runs, labels, chosen) {
  const p99 = (i) => timelinePoints(runs[i], (second) => (second.committed ? second.p99_us : NaN));
  if (chosen.length > 1) return chosen.map((i) => line(i, labels[i], p99(i)));
  return chosen.flatMap((i) => [
    line(0, "mean", timelinePoints(runs[i], (second) => (second.committed ? second.mean_us : NaN))),
    line(1, "p99", p99(i))]);
}

// How many nines: 0 is the fastest transaction, 1 the 90th percentile, 2 the 99th.
function nines(share) { return -Math.log10(1 - share); }

function percentOf(value) {
  const digits = Math.max(0, Math.ceil(value) - 2);
  return `${(100 * (1 - 10 ** -value)).toFixed(digits)}%`;
}

function percentilePoints(run) {
  const total = run.latency_buckets_us.reduce((sum, bucket) => sum + bucket[2], 0);
  const points = [];
  let below = 0;
  for (const [least, end, times] of run.latency_buckets_us) {
    if (below === 0) points.push({ x: 0, y: Math.max(least, 0.001) });
    below += times;
    if (below < total) points.push({ x: nines(below / total), y: end });
  }
  return points;
}

function hasDistribution(run) {
  return (run.latency_buckets_us || []).reduce((sum, bucket) => sum + bucket[2], 0) > 1;
}

function hasCurves(run) { return hasTimeline(run) || hasDistribution(run); }

// Draws the curves of the chosen runs, and again when others are chosen.
function curves(runs, labels, shown) {
  const timed = () => [...shown].sort((a, b) => a - b).filter((i) => hasTimeline(runs[i]));
  const spread = () => [...shown].sort((a, b) => a - b).filter((i) => hasDistribution(runs[i]));
  const redraws = [];
  const add = (parent, title, note, chosen, sets, options) => {
    const datasets = sets(chosen());
    const height = (shownSets) => curveHeight(shownSets.map((set) => set.label));
    options.plugins.legend.display = runs.length > 1 || datasets.length > 1;
    const chart = plot(parent, title, note, height(datasets), { type: "line", data: { datasets }, options });
    redraws.push(() => {
      chart.data.datasets = sets(chosen());
      chart.canvas.parentNode.style.height = `${height(chart.data.datasets)}px`;
      chart.update();
    });
  };
  const seconds = (x) => `${parseFloat(x.toPrecision(4))} s`;
  if (runs.some(hasTimeline)) {
    const parent = group("Over time");
    add(parent, "Throughput", runs.length > 1 ? "committed transactions" : "transactions, and attempts that were lost",
      timed, (chosen) => throughputSets(runs, labels, chosen),
      lineOptions(timeAxis(), axis("transactions a second", large, { beginAtZero: true }), large, seconds));
    add(parent, "Latency", runs.length > 1 ? "99th percentile of each second" : "of each second",
      timed, (chosen) => latencySets(runs, labels, chosen),
      lineOptions(timeAxis(), logAxis("latency", duration), duration, seconds));
  }
  if (runs.some(hasDistribution)) {
    const parent = group("Latency distribution");
    const ticks = (scale) => {
      // Beyond six nines only every other one has room.
      const all = scale.max > 6 ? [nines(0.5), 1, 2, 3, 5, 7] : [nines(0.5), 1, 2, 3, 4, 5];
      scale.ticks = all.filter((value) => value <= scale.max).map((value) => ({ value }));
    };
    const x = axis("percentile of committed transactions", percentOf, {
      afterBuildTicks: ticks, min: 0, ticks: { autoSkip: false } });
    const sets = (chosen) => chosen.map((i) =>
      line(i, labels[i], percentilePoints(runs[i]), { pointRadius: 0, pointHoverRadius: 4 }));
    add(parent, "Latency by percentile", "so many transactions took at most so long", spread, sets,
      lineOptions(x, logAxis("latency", duration), duration, percentOf));
    const bars = (chosen) => chosen.map((i) => line(i, labels[i], densityPoints(runs[i]),
      { pointRadius: 0, stepped: "middle", fill: chosen.length === 1 ? "origin" : false,
        backgroundColor: `${colour(i)}33` }));
    add(parent, "Latency histogram", "share of transactions by latency, in steps of a tenth of a decade",
      spread, bars,
      lineOptions(logAxis("latency", duration), axis("% of transactions", (value) => value,
        { beginAtZero: true }), (value) => `${fixed(value, 2)} %`, duration));
  }
  return () => redraws.forEach((redraw) => redraw());
}

const STEPS_OF_A_DECADE = 10;

// Buckets of the histogram are as fine as it measures; here they are summed up to equal steps.
function densityPoints(run) {
  const steps = new Map();
  let total = 0;
  for (const [least, end, times] of run.latency_buckets_us) {
    const step = Math.floor(Math.log10(Math.max((least + end) / 2, 0.001)) * STEPS_OF_A_DECADE);
    steps.set(step, (steps.get(step) || 0) + times);
    total += times;
  }
  const first = Math.min(...steps.keys()) - 1, last = Math.max(...steps.keys()) + 1;
  const points = [];
  for (let step = first; step <= last; ++step) {
    points.push({ x: 10 ** ((step + 0.5) / STEPS_OF_A_DECADE), y: 100 * (steps.get(step) || 0) / total });
  }
  return points;
}
