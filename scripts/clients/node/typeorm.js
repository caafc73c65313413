// TypeORM: entities, relations, query builder, locks.
require("reflect-metadata");
const { DataSource, EntitySchema, In } = require("typeorm");
const { run, connection, outcome, times } = require("./cases");

const Author = new EntitySchema({
  name: "Author",
  columns: {
    id: { type: "uuid", primary: true, generated: "uuid" },
    name: { type: "varchar", unique: true },
    books: { type: "int", default: 0 },
    since: { type: "timestamptz", createDate: true },
  },
  relations: { titles: { type: "one-to-many", target: "Title", inverseSide: "author" } },
});
const Title = new EntitySchema({
  name: "Title",
  columns: {
    id: { type: "int", primary: true, generated: "increment" },
    text: { type: "text" },
    year: { type: "int", nullable: true },
    facts: { type: "jsonb", nullable: true },
    version: { type: "int", version: true },
  },
  relations: {
    author: { type: "many-to-one", target: "Author", joinColumn: true, onDelete: "CASCADE",
              inverseSide: "titles" },
    genres: { type: "many-to-many", target: "Genre", joinTable: true },
  },
  indices: [{ columns: ["year", "text"] }],
});
const Genre = new EntitySchema({
  name: "Genre",
  columns: { name: { type: "varchar", primary: true } },
});

const db = new DataSource({
  type: "postgres", ...connection, username: connection.user, synchronize: false,
  uuidExtension: "pgcrypto", installExtensions: false,
  entities: [Author, Title, Genre], extra: { max: 10 },
});
const of = (name) => db.getRepository(name);

run({
  async synchronize() {
    await db.initialize();
    await db.query("CREATE EXTENSION IF NOT EXISTS pgcrypto");
    await db.dropDatabase();
    await db.synchronize();
    return db.entityMetadatas.map((each) => each.tableName).sort();
  },
  async cascadeOfSaves() {
    await of("Genre").save([{ name: "poem" }, { name: "novel" }]);
    for (const name of ["ann", "bob", "cid"]) {
      const author = await of("Author").save({ name });
      for (let i = 0; i < 4; i++) {
        await of("Title").save({ text: `${name} ${i}`, year: 1990 + i, facts: { pages: 100 * i },
                                 author, genres: [{ name: i % 2 ? "poem" : "novel" }] });
      }
    }
    return of("Title").count();
  },
  relations: async () => {
    const authors = await of("Author").find({
      relations: { titles: { genres: true } }, order: { name: "ASC", titles: { id: "ASC" } } });
    return authors.map((a) => [a.name, a.titles.map((t) => `${t.text}/${t.genres[0].name}`)]);
  },
  queryBuilder: async () =>
    of("Title").createQueryBuilder("t").innerJoin("t.author", "a").select("a.name", "name")
      .addSelect("sum((t.facts->>'pages')::int)", "pages").where("t.year > :year", { year: 1990 })
      .groupBy("a.name").having("count(*) > 1").orderBy("a.name").getRawMany(),
  pages: async () => {
    const [rows, count] = await of("Title").findAndCount({ order: { id: "DESC" }, skip: 3, take: 4 });
    return [rows.map((row) => row.text), count];
  },
  upsert: async () => {
    await of("Author").upsert([{ name: "ann", books: 4 }, { name: "dan", books: 1 }], ["name"]);
    return (await of("Author").find({ order: { name: "ASC" } })).map((a) => [a.name, a.books]);
  },
  versions: async () => {
    const title = await of("Title").findOneByOrFail({ text: "bob 1" });
    title.year = 2000;
    await of("Title").save(title);
    return (await of("Title").findOneByOrFail({ text: "bob 1" })).version;
  },
  async counters() {
    await times(6, async () => {
      for (let i = 0; i < 10; i++) {
        await db.transaction(async (manager) => {
          const author = await manager.findOne("Author", {
            where: { name: "cid" }, lock: { mode: "pessimistic_write" } });
          await manager.update("Author", { id: author.id }, { books: author.books + 1 });
        });
      }
    });
    return (await of("Author").findOneByOrFail({ name: "cid" })).books;
  },
  async increments() {
    await times(8, async () => {
      for (let i = 0; i < 10; i++) await of("Author").increment({ name: "bob" }, "books", 1);
    });
    return (await of("Author").findOneByOrFail({ name: "bob" })).books;
  },
  lockSeenByAnother: () =>
    db.transaction(async (manager) => {
      const lock = { mode: "pessimistic_write" };
      await manager.findOne("Author", { where: { name: "ann" }, lock });
      return outcome(() =>
        db.transaction((other) =>
          other.findOne("Author", { where: { name: "ann" }, lock: { ...lock, onLocked: "nowait" } }),
        ),
      );
    }),
  nested: () =>
    db.transaction(async (manager) => {
      await outcome(() =>
        manager.transaction(async (inner) => {
          await inner.save("Genre", { name: "essay" });
          throw new Error("inner");
        }),
      );
      return manager.count("Genre");
    }),
  violations: async () => [
    await outcome(() => of("Author").insert({ name: "ann" })),
    await outcome(() => of("Title").insert({ text: null })),
  ],
  deletes: async () => {
    await of("Author").delete({ name: In(["ann", "bob"]) });
    return of("Title").count();
  },
}).finally(() => db.destroy());
