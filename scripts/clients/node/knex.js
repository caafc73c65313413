// knex: a query builder with migrations.
const { run, connection, outcome, times } = require("./cases");
const knex = require("knex")({ client: "pg", connection, pool: { min: 0, max: 10 } });

const migrations = [
  {
    name: "1_users",
    up: (db) =>
      db.schema.createTable("users", (t) => {
        t.increments("id");
        t.string("email", 100).notNullable().unique();
        t.integer("logins").notNullable().defaultTo(0);
        t.timestamps(true, true);
      }),
    down: (db) => db.schema.dropTable("users"),
  },
  {
    name: "2_posts",
    up: (db) =>
      db.schema
        .createTable("posts", (t) => {
          t.bigIncrements("id");
          t.integer("user_id").references("users.id").onDelete("CASCADE").index();
          t.text("title").notNullable();
          t.jsonb("meta");
        })
        .alterTable("users", (t) => t.boolean("active").defaultTo(true)),
    down: (db) => db.schema.dropTable("posts"),
  },
];
const migrationSource = {
  getMigrations: async () => migrations,
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => migration,
};

run({
  async migrate() {
    await knex.migrate.rollback({ migrationSource }, true);
    await knex.migrate.latest({ migrationSource });
    return knex.migrate.currentVersion({ migrationSource });
  },
  async insertReturning() {
    const rows = [1, 2, 3, 4, 5].map((i) => ({ email: `u${i}@example.org` }));
    return knex("users").insert(rows).returning(["id", "email", "active"]);
  },
  async batchInsert() {
    const rows = Array.from({ length: 250 }, (_, i) => ({
      user_id: (i % 5) + 1, title: `post ${i}`, meta: { i, even: i % 2 === 0 } }));
    await knex.batchInsert("posts", rows, 40);
    return knex("posts").count({ n: "*" });
  },
  joins: () =>
    knex("users").join("posts", "users.id", "posts.user_id").groupBy("users.email")
      .select("users.email").count({ n: "*" }).max({ last: "posts.id" }).orderBy("users.email"),
  subqueries: () =>
    knex("users").whereIn("id", knex("posts").select("user_id").where("title", "post 7"))
      .orWhereExists(knex("posts").whereRaw("posts.user_id = users.id AND posts.id = 1"))
      .orderBy("id").select("email"),
  json: () =>
    knex("posts").whereRaw("meta @> ?", [{ even: true }]).orderBy("id").limit(3).select("title"),
  pages: async () => {
    const pages = [];
    for (let last = 0; pages.length < 4; ) {
      const page = await knex("posts").where("id", ">", last).orderBy("id").limit(30).pluck("id");
      last = page.at(-1);
      pages.push([page.length, last]);
    }
    return pages;
  },
  upsert: () =>
    knex("users").insert({ email: "u1@example.org", logins: 7 })
      .onConflict("email").merge(["logins"]).returning(["id", "logins"]),
  ignored: () =>
    knex("users").insert({ email: "u2@example.org" }).onConflict("email").ignore().returning("id"),
  duplicate: () => outcome(() => knex("users").insert({ email: "u2@example.org" })),
  noParent: () => outcome(() => knex("posts").insert({ user_id: 999, title: "nobody's" })),
  nested: () =>
    knex.transaction(async (outer) => {
      await outer("users").where("id", 1).update({ active: false });
      await outcome(() =>
        outer.transaction(async (inner) => {
          await inner("users").where("id", 2).update({ active: false });
          throw new Error("inner");
        }),
      );
      return outer("users").orderBy("id").select("id", "active");
    }),
  async counters() {
    await times(8, async () => {
      for (let i = 0; i < 20; i++) {
        await knex.transaction(async (trx) => {
          await trx("posts").where("user_id", 2).first("id");
          await trx("users").where("id", 1).increment("logins", 1);
        });
      }
    });
    return knex("users").where("id", 1).select("logins");
  },
  async readModifyWriteLocked() {
    await times(6, async () => {
      for (let i = 0; i < 10; i++) {
        await knex.transaction(async (trx) => {
          const user = await trx("users").where("id", 3).forUpdate().first();
          await trx("users").where("id", 3).update({ logins: user.logins + 1 });
        });
      }
    });
    return knex("users").where("id", 3).select("logins");
  },
  async cascade() {
    await knex("users").where("id", 5).del();
    return knex("posts").count({ n: "*" });
  },
  stream: async () => {
    let rows = 0;
    for await (const _ of knex("posts").select("*").stream()) rows++;
    return rows;
  },
  truncate: async () => {
    await knex("posts").truncate();
    return knex("posts").insert({ user_id: 1, title: "again" }).returning("title");
  },
}).finally(() => knex.destroy());
