// Sequelize: models, associations, managed transactions.
const { Sequelize, DataTypes, Op, Transaction } = require("sequelize");
const { run, connection, outcome, times } = require("./cases");

const db = new Sequelize({
  dialect: "postgres", logging: false, ...connection, username: connection.user,
  pool: { max: 10, acquire: 30_000 },
});
const Account = db.define("account", {
  owner: { type: DataTypes.STRING, unique: true, allowNull: false },
  balance: { type: DataTypes.INTEGER, defaultValue: 0, validate: { min: 0 } },
}, { version: true, indexes: [{ fields: ["balance"] }] });
const Entry = db.define("entry", {
  amount: DataTypes.INTEGER,
  note: DataTypes.TEXT,
  kind: DataTypes.ENUM("in", "out"),
  labels: DataTypes.ARRAY(DataTypes.STRING),
}, { paranoid: true });
const Group = db.define("group", { name: { type: DataTypes.STRING, unique: true } });
Account.hasMany(Entry, { onDelete: "CASCADE" });
Entry.belongsTo(Account);
Account.belongsToMany(Group, { through: "membership" });
Group.belongsToMany(Account, { through: "membership" });

const plain = (rows, ...names) =>
  rows.map((row) => Object.fromEntries(names.map((name) => [name, row.get(name)])));

run({
  async sync() {
    await db.sync({ force: true });
    return (await db.getQueryInterface().showAllTables()).sort();
  },
  async bulkCreate() {
    const rows = Array.from({ length: 20 }, (_, i) => ({ owner: `o${i}`, balance: 10 * i }));
    return plain(await Account.bulkCreate(rows), "id", "balance");
  },
  findOrCreate: async () => {
    const made = await times(6, () =>
      outcome(async () => (await Group.findOrCreate({ where: { name: "g" } }))[0].name));
    return [new Set(made).size, await Group.count()];
  },
  upsert: async () => {
    await Account.upsert({ owner: "o3", balance: 999 });
    return plain(await Account.findAll({ where: { owner: "o3" } }), "balance");
  },
  associations: async () => {
    const account = await Account.findOne({ where: { owner: "o1" } });
    await account.createEntry({ amount: 5, kind: "in", labels: ["a", "b"] });
    await account.createEntry({ amount: 2, kind: "out" });
    await account.addGroup(await Group.findOne());
    const found = await Account.findAll({
      include: [{ model: Entry, required: true }, Group], order: ["id", [Entry, "id"]] });
    return found.map((each) => [each.owner, each.entries.map((e) => e.amount),
                                each.groups.map((g) => g.name)]);
  },
  operators: async () =>
    plain(await Account.findAll({
      where: { balance: { [Op.between]: [50, 90] }, owner: { [Op.like]: "o%" } }, order: ["id"] }),
          "owner"),
  aggregate: async () => [await Account.sum("balance"), await Account.max("balance")],
  paranoid: async () => {
    await Entry.destroy({ where: { kind: "out" } });
    return [await Entry.count(), await Entry.count({ paranoid: false })];
  },
  stale: async () => {
    const [one, other] = [await Account.findByPk(2), await Account.findByPk(2)];
    await one.update({ balance: 1 });
    return outcome(async () => await other.update({ balance: 2 }));
  },
  async transfers() {
    const before = await Account.sum("balance");
    await times(6, async (client) => {
      for (let i = 0; i < 10; i++) {
        await db.transaction(async (transaction) => {
          const lock = transaction.LOCK.UPDATE;
          const options = { transaction, lock };
          const from = await Account.findByPk(5 + ((client + i) % 3), options);
          await from.decrement("balance", { by: 1, transaction });
          await Account.increment("balance", { by: 1, where: { id: 10 }, transaction });
        });
      }
    });
    return (await Account.sum("balance")) - before;
  },
  serializable: async () =>
    db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (transaction) =>
      Account.count({ transaction })),
  violations: async () => [
    await outcome(() => Account.create({ owner: "o1" })),
    await outcome(() => Entry.create({ accountId: 4711 })),
    await outcome(() => db.query("INSERT INTO entries (kind) VALUES ('neither')")),
  ],
  cascade: async () => {
    await Account.destroy({ where: { owner: "o1" } });
    return Entry.count({ paranoid: false });
  },
  alter: async () => {
    const tables = db.getQueryInterface();
    await tables.addColumn("accounts", "region", { type: DataTypes.STRING, defaultValue: "eu" });
    await tables.addIndex("accounts", ["region", "balance"]);
    await tables.renameColumn("accounts", "region", "area");
    await tables.changeColumn("accounts", "balance", { type: DataTypes.BIGINT });
    const [rows] = await db.query("SELECT area, balance FROM accounts WHERE owner = 'o9'");
    return rows;
  },
}).finally(() => db.close());
