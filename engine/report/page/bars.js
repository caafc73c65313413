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

function compareRuns(runs, labels) {
  if (runs.length < 2) return;
  const parent = group("Comparison");
  const names = labels.map(broken);
  const bars = (label, values, i) => ({ label, data: values, backgroundColor: colour(i) });
  const rates = barOptions(axis("committed transactions a second", large, { beginAtZero: true }), count, false);
  rates.plugins.legend = { display: false };
  plot(parent, "Throughput", "committed transactions", barsHeight(runs.length * 1.3, 2), {
    type: "bar", options: rates,
    data: { labels: names, datasets: [{ ...bars("committed a second",
      runs.map((run) => run.committed_per_second), 0), backgroundColor: runs.map((_, i) => colour(i)) }] },
  });
  if (!runs.some((run) => run.latency_us)) return;
  plot(parent, "Latency", "including attempts that were repeated; logarithmic",
    barsHeight(runs.length * 1.3, 2), {
      type: "bar", options: barOptions(logAxis("latency", duration), duration, false),
      data: { labels: names, datasets: [
        bars("median", runs.map((run) => run.latency_us?.p50), 5),
        bars("p99", runs.map((run) => run.latency_us?.p99), 0)] },
    });
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
