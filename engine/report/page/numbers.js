"use strict";
// Numbers as they are shown, and names for runs: what tells them apart.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function count(value) { return grouped.format(value); }

function fixed(value, digits) {
  return typeof value === "number" && isFinite(value)
    ? value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })
    : "–";
}

function percent(value) { return `${parseFloat(value.toPrecision(3))} %`; }

// Microseconds in the unit in which they are easily read.
function duration(us) {
  if (typeof us !== "number" || !isFinite(us)) return "–";
  const units = [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]];
  const [size, unit] = units.find(([least]) => us >= least * 0.9995) || units[2];
  return `${parseFloat((us / size).toPrecision(3))} ${unit}`;
}

function large(value) {
  const [size, unit] = value >= 1e6 ? [1e6, " M"] : value >= 1e3 ? [1e3, " k"] : [1, ""];
  return `${parseFloat((value / size).toPrecision(3))}${unit}`;
}

// ---- Names of runs

const FIELDS = ["workload", "preset", "protocol", "stages", "auto_stages", "lock_mode", "calvin", "fabric",
  "nodes", "threads_per_node", "threads", "coroutines", "location_cache", "replicas", "rate", "latency_limit_ms",
  "transactions_per_coroutine", "warm_up_seconds", "verb_delays", "version", "seed"];
// Values that say by themselves what they are of.
const PLAIN = new Set(["workload", "preset", "protocol", "fabric"]);

function described(run) {
  const fields = {};
  for (const [name, value] of Object.entries(run.swept || {})) fields[name] = value;
  for (const name of FIELDS) {
    if (run[name] !== undefined && run[name] !== null && !(name in fields)) fields[name] = run[name];
  }
  return { ...fields, ...(run.settings || {}), ...(run.swept || {}) };
}

function wordsOf(name, value) {
  return PLAIN.has(name) ? String(value) : `${name.replaceAll("_", " ").replaceAll("-", " ")} ${value}`;
}

// Fields that tell runs apart, each of which tells some apart that those before it do not.
function tellingFields(all) {
  const names = [...new Set(all.flatMap(Object.keys))];
  const telling = [];
  let kinds = 1;
  for (const name of names) {
    const keys = new Set(all.map((fields) => JSON.stringify([...telling, name].map((each) => fields[each]))));
    if (keys.size > kinds) telling.push(name);
    kinds = Math.max(kinds, keys.size);
  }
  return telling;
}

function labelRuns(runs) {
  if (runs.length === 1) return [runs[0].name || run1(runs[0])];
  const all = runs.map(described);
  const telling = tellingFields(all);
  const workloads = new Set(runs.map((run) => run.workload)).size;
  const named = (run) => run.name && (workloads > 1 ? `${run.workload}: ${run.name}` : run.name);
  const labels = runs.map((run, i) => named(run) || telling
    .filter((name) => all[i][name] !== undefined && all[i][name] !== false)
    .map((name) => wordsOf(name, all[i][name])).join(", "));
  return labels.map((label, i) => {
    const alone = labels.filter((other) => other === label).length === 1;
    return alone && label ? label : [label, runs[i].source, `run ${i + 1}`].filter(Boolean).join(", ");
  });
}

function run1(run) {
  return [run.workload, run.protocol].filter(Boolean).join(", ") || "run";
}
