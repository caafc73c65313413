// Cases of one program: each does something and gives what it found, which is printed as a line of
// JSON, so that two runs can be compared. An error is a result as well: its SQLSTATE.

const LIMIT_MS = 60_000;

function outcomeOf(error) {
  const cause = error.original ?? error.driverError ?? error.parent ?? error;
  return `error ${cause.code ?? error.message}`;
}

async function run(cases) {
  for (const [name, body] of Object.entries(cases)) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("no end within its limit")), LIMIT_MS);
    });
    let result;
    try {
      result = await Promise.race([body(), late]);
    } catch (error) {
      result = outcomeOf(error);
    }
    clearTimeout(timer);
    console.log(JSON.stringify({ name, result }));
  }
}

// Of libpq's environment.
const connection = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
};

async function outcome(body) {
  try {
    return await body();
  } catch (error) {
    return outcomeOf(error);
  }
}

const times = (count, body) => Promise.all(Array.from({ length: count }, (_, i) => body(i)));

module.exports = { run, connection, outcome, times };
