// The driver that the others stand on: a pool, prepared statements, interactive transactions.
const { Pool } = require("pg");
const { run, connection, outcome, times } = require("./cases");

const CLIENTS = 8;
const ADDITIONS = 25;
const pool = new Pool({ ...connection, max: 16, statement_timeout: 20_000 });

async function transaction(body, begin = "BEGIN") {
  const client = await pool.connect();
  try {
    await client.query(begin);
    const result = await body(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

// Read, then write what was read: each client many times on the same row.
async function addInBlocks(begin, read) {
  await pool.query("UPDATE counter SET n = 0 WHERE id = 1");
  let conflicts = 0;
  await times(CLIENTS, async () => {
    for (let i = 0; i < ADDITIONS; i++) {
      for (let done = false; !done; ) {
        try {
          await transaction(async (client) => {
            if (read !== "") await client.query(read);
            await client.query("UPDATE counter SET n = n + 1 WHERE id = 1");
          }, begin);
          done = true;
        } catch (error) {
          if (error.code !== "40001" && error.code !== "40P01") throw error;
          conflicts++;
        }
      }
    }
  });
  const { rows } = await pool.query("SELECT n FROM counter WHERE id = 1");
  return { sum: rows[0].n, conflicts: conflicts > 0 ? "some" : "none" };
}

run({
  async schema() {
    await pool.query(`
      DROP TABLE IF EXISTS item, counter, job;
      CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL);
      INSERT INTO counter VALUES (1, 0), (2, 0);
      CREATE TABLE item (id serial PRIMARY KEY, name text UNIQUE, tags text[], data jsonb,
                         price numeric(10, 2) CHECK (price >= 0), made timestamptz DEFAULT now());
      CREATE TABLE job (id int PRIMARY KEY, state text NOT NULL DEFAULT 'new', worker int);`);
    return "made";
  },
  async types() {
    const { rows } = await pool.query(
      `INSERT INTO item (name, tags, data, price) VALUES ($1, $2, $3, $4)
       RETURNING id, name, tags, data, price, made IS NOT NULL AS made`,
      ["first", ["a", "b"], { deep: [1, { x: null }] }, "12.50"],
    );
    return rows;
  },
  async errors() {
    return [
      await outcome(() => pool.query("INSERT INTO item (name) VALUES ('first')")),
      await outcome(() => pool.query("INSERT INTO item (price) VALUES (-1)")),
      await outcome(() => pool.query("SELECT 1 / 0 FROM item")),
      await outcome(() => pool.query("INSERT INTO counter VALUES (3, NULL)")),
      await outcome(() => pool.query("SELECT * FROM nowhere")),
    ];
  },
  async preparedByName() {
    const found = [];
    for (let i = 0; i < 12; i++) {
      const query = { name: "find", text: "SELECT name FROM item WHERE id = $1", values: [1] };
      found.push((await pool.query(query)).rows.length);
    }
    return found;
  },
  async manyInParallel() {
    await times(200, (i) => pool.query("INSERT INTO item (name) VALUES ($1)", [`many ${i}`]));
    return (await pool.query("SELECT count(*)::int AS n FROM item")).rows;
  },
  async upsertsInParallel() {
    await times(100, (i) =>
      pool.query(
        `INSERT INTO item (name, price) VALUES ($1, 1)
         ON CONFLICT (name) DO UPDATE SET price = item.price + 1`,
        [`upsert ${i % 5}`],
      ),
    );
    const { rows } = await pool.query(
      "SELECT name, price FROM item WHERE name LIKE 'upsert%' ORDER BY name");
    return rows;
  },
  errorWithinBlock: () =>
    transaction(async (client) => {
      await client.query("SAVEPOINT a");
      const failed = await outcome(() => client.query("INSERT INTO item (name) VALUES ('first')"));
      await client.query("ROLLBACK TO a");
      await client.query("INSERT INTO item (name) VALUES ('after')");
      const { rows } = await client.query("SELECT name FROM item WHERE name = 'after'");
      return [failed, rows];
    }),
  async rolledBack() {
    await outcome(() =>
      transaction(async (client) => {
        await client.query("DELETE FROM item");
        throw new Error("changed its mind");
      }),
    );
    return (await pool.query("SELECT count(*)::int AS n FROM item")).rows;
  },
  addsInBlocks: () => addInBlocks("BEGIN", ""),
  addsAfterReading: () => addInBlocks("BEGIN", "SELECT count(*) FROM counter WHERE id = 2"),
  addsAfterLocking: () => addInBlocks("BEGIN", "SELECT n FROM counter WHERE id = 1 FOR UPDATE"),
  async addsSerializable() {
    return (await addInBlocks("BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT n FROM counter")).sum;
  },
  async jobs() {
    await pool.query("INSERT INTO job SELECT i FROM generate_series(1, 60) i");
    const taken = await times(6, async (worker) => {
      let count = 0;
      for (let more = true; more; ) {
        more = await transaction(async (client) => {
          const { rows } = await client.query(
            `SELECT id FROM job WHERE state = 'new' ORDER BY id
             LIMIT 1 FOR UPDATE SKIP LOCKED`);
          if (rows.length === 0) return false;
          await client.query("UPDATE job SET state = 'done', worker = $2 WHERE id = $1",
                             [rows[0].id, worker]);
          return true;
        });
        if (more) count++;
      }
      return count;
    });
    return taken.reduce((sum, count) => sum + count, 0);
  },
  async lockSeenByAnother() {
    return transaction(async (first) => {
      await first.query("SELECT * FROM counter WHERE id = 2 FOR UPDATE");
      return [
        await outcome(() => pool.query("SELECT * FROM counter WHERE id = 2 FOR UPDATE NOWAIT")),
        (await pool.query("SELECT id FROM counter ORDER BY id FOR UPDATE SKIP LOCKED")).rows,
      ];
    });
  },
}).finally(() => pool.end());
