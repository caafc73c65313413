// The page: the runs are in it as JSON.

const CURVES_AT_FIRST = 8;

function main() {
  const runs = JSON.parse(document.getElementById("runs").textContent);
  const labels = labelRuns(runs);
  const shown = new Set(runs.map((_, i) => i).filter((i) => hasCurves(runs[i])).slice(0, CURVES_AT_FIRST));
  let redraw = () => {};
  showOrigin(runs);
  showTable(runs, labels, colour, shown, () => redraw());
  sweeps(runs);
  compareRuns(runs);
  redraw = curves(runs, labels, shown);
  breakdowns(runs, labels);
  showLicence();
}

main();
