// Curves of a sweep: what a parameter does, with a line for each combination of the others.

const SWEEP_PLOTS = [
  ["Throughput", "transactions a second", (run) => run.committed_per_second, large, false],
  ["Latency, 99th percentile", "latency", (run) => run.latency_us?.p99, duration, true],
  ["Aborted attempts", "% of attempts", (run) => 100 * run.abort_rate, percent, false],
  ["Effective use of processors", "% of the coordinators' time", (run) =>
    (typeof run.effective_cpu === "number" ? 100 * run.effective_cpu : undefined),
    percent, false],
];

function sweptNumbers(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.swept || {})))];
  return names.filter((name) => {
    const values = runs.map((run) => run.swept?.[name]).filter((value) => value !== undefined);
    return values.every((value) => typeof value === "number") && new Set(values).size > 1;
  });
}

function linesOf(runs, name, value) {
  const lines = new Map();
  for (const run of runs) {
    if (run.swept?.[name] === undefined || value(run) === undefined) continue;
    const others = Object.entries(run.swept).filter(([other]) => other !== name)
      .map(([other, given]) => wordsOf(other, given));
    const key = [run.source || "", ...others].filter(Boolean).join(", ") || run.workload;
    if (!lines.has(key)) lines.set(key, []);
    lines.get(key).push({ x: run.swept[name], y: value(run) });
  }
  return [...lines].map(([key, points], i) =>
    line(i, key, points.sort((a, b) => a.x - b.x), { pointRadius: 4 }));
}

// Values that are far apart are shown at their logarithms.
function sweptAxis(name, values) {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const title = name.replaceAll("-", " ");
  const exact = { afterBuildTicks: (scale) => { scale.ticks = sorted.map((value) => ({ value })); } };
  const far = sorted[0] > 0 && sorted[sorted.length - 1] / sorted[0] >= 16;
  const shown = (value) => value.toLocaleString("en-US");
  return axis(title, shown, far ? { type: "logarithmic", min: sorted[0] / 1.15, max: sorted[sorted.length - 1] * 1.15, ...exact } : exact);
}

function sweeps(runs) {
  for (const name of sweptNumbers(runs)) {
    const parent = group(`By ${name.replaceAll("-", " ")}`);
    const x = sweptAxis(name, runs.map((run) => run.swept?.[name]).filter((value) => value !== undefined));
    for (const [title, unit, value, format, logarithmic] of SWEEP_PLOTS) {
      const sets = linesOf(runs, name, value);
      if (sets.length === 0) continue;
      const y = logarithmic ? logAxis(unit, format) : axis(unit, format, { beginAtZero: true });
      const options = lineOptions(x, y, format, (at) => `${name} ${at.toLocaleString("en-US")}`,
        sets.length > 1);
      plot(parent, title, "", curveHeight(sets.map((set) => set.label)), { type: "line", data: { datasets: sets }, options });
    }
  }
}
