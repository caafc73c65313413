/* engine/session.h for the files that include postgres.h, which see nothing else of the engine than
 * this and the plain data that it shares with it. Implemented by engine_bridge.cc and its
 * neighbours, which never see postgres.h. Nothing here throws, longjmps or calls PostgreSQL.
 *
 * One transaction at a time per backend. A command is started, then resumed until it is done:
 *
 *     bridge_start_get(...);
 *     rdmacc_pump();          (xact.cc: bridge_resume() and CHECK_FOR_INTERRUPTS() in a loop)
 *     bridge_error()->code    (rdmacc::Code, of which the comments below say the values alone)
 *
 * Arguments stay valid until the command is done: rdmacc_pump() cancels the command and resumes it
 * to its end before it lets an error pass. */
#pragma once
#include "engine/api/plain_data.h"

typedef struct BridgeError {
  rdmacc::Code code;
  char reason[48]; /* abort reason's name when kAborted, else "" */
  char message[256];
  bool outcome_unknown; /* commit only: the nodes may still finish it */
  bool held_by_another; /* kAborted by no more than a lock of another transaction */
} BridgeError;

typedef struct BridgeBytes {
  const char* data;
  size_t size;
} BridgeBytes;

typedef struct BridgeRow {
  bool found;
  BridgeBytes key;
  BridgeBytes row;
  uint64_t version; /* stamp; 0 for an own write */
  int node;
} BridgeRow;

/* Over what the members of a cluster talk, and where its nodes are: of the four texts below those
 * that the kind needs, the others NULL. */
typedef struct BridgeFabric {
  const char* kind;        /* a name of bridge_available_fabrics() */
  const char* cluster;     /* its name */
  const char* config;      /* a config file that says all that follows */
  const char* node_list;   /* "host:port, host:port" */
  const char* secret_file; /* of mode 0600 */
  int threads_per_node;
  int workers_max; /* node threads included */
  uint64_t region_bytes;
  const char* verbs_device; /* verbs alone: names by commas, sessions have the last */
  int verbs_port;           /* 0: the first active one */
  int verbs_gid_index;      /* -1: chosen */
} BridgeFabric;

typedef struct BridgeTxnOptions {
  int protocol;     /* number of rdmacc::Protocol; -1: join what the gate has open */
  uint16_t stages;  /* hybrid code */
  bool auto_stages; /* instead of `stages`: what this session's transactions have found cheapest */
  rdmacc::LockMode lock_mode;
  uint64_t gate_timeout_us;
  bool exclusive_gate; /* asks for the protocol gate in exclusive mode */
  bool needs_current_reads = false;
} BridgeTxnOptions;

/* What views show; of statistics in bridge_stats.h. Texts are static; protocols are numbers, -1 =
 * none. */
typedef struct BridgeLock {
  uint32_t table, database, relfilenode; /* database 0: the table is gone */
  bool gap;                              /* else a record */
  uint64_t key_hash;
  const char* mode;
  bool granted;
  uint32_t holders;
  int worker;     /* -1: unknown */
  int64_t age_us; /* since its transaction began; -1: unknown */
} BridgeLock;

/* A prepared transaction whose session has died, and which is not decided. */
typedef struct BridgeInDoubt {
  uint64_t system_id, xid; /* its gtid */
  int worker;              /* that was the session's */
  int node;                /* one that keeps its log */
  bool decided;            /* and about to be finished */
  int64_t age_us;          /* since it was prepared; -1: unknown */
} BridgeInDoubt;

typedef struct BridgeGate {
  int open, next;
  int exclusive_worker; /* has the gate in exclusive mode; -1: none */
  uint64_t exclusive_entries, switches, switch_us_sum, switch_us_max;
} BridgeGate;

typedef struct BridgeGateSession {
  int worker;
  int protocol;
  bool inside;        /* else it waits */
  int64_t waiting_us; /* 0 when inside */
} BridgeGateSession;

/* ---- Fabrics and clusters. They need no attachment; false: bridge_error() says why. */
const char* bridge_available_fabrics(void); /* "shm, tcp, verbs" */
bool bridge_fabric_available(const char* kind);
/* What can be wrong with a description before any node is asked, the secret file included. */
bool bridge_check_fabric(const BridgeFabric* fabric);
/* How many nodes a list names; -1 when it is none. */
int bridge_count_nodes(const char* node_list);
/* Where a node listens; false when that means nothing on its fabric. */
bool bridge_node_address(const BridgeFabric* fabric, int node, char* host, size_t host_bytes,
                         int* port);
bool bridge_cluster_exists(const BridgeFabric* fabric);
/* Removes what a cluster of this host has left. */
void bridge_cluster_destroy(const BridgeFabric* fabric);
/* Writes the config and the secret of a new cluster on this host into a private folder. */
bool bridge_make_loopback(const BridgeFabric* fabric, int nodes, const char* folder);
void bridge_remove_loopback(const char* folder);

/* Whether nodes that others run answer; for the supervisor, which attaches to nothing. step()
 * never waits; `why` lives until the next one, and is NULL while that is not known yet. */
bool bridge_watch_open(const BridgeFabric* fabric);
void bridge_watch_step(void);
bool bridge_watch_answers(int node, const char** why);
/* Tells node 0's memory from what it may have after it was lost; 0: it has not answered yet.
 * *answers counts how often it has. */
uint64_t bridge_watch_memory(uint64_t* answers);

/* ---- Attaching. Done lazily, in the backend, after fork. Blocking but bounded (5 s), and ended
 * early (kUnavailable) when `interrupted` says so. `standstill_of` is asked while a command runs
 * that waits for others, on the stack of a coroutine: it raises nothing. */
bool bridge_attached(void);
bool bridge_attach(const BridgeFabric* fabric, uint32_t replicas, uint64_t write_set_bytes_max,
                   bool (*interrupted)(void), rdmacc::StandstillOf standstill_of);
void bridge_detach(void); /* leaves the worker slot; ends the transaction */
int bridge_worker_id(void);
int bridge_node_count(void);

/* ---- The command under way. */
const BridgeError* bridge_error(void); /* of the last finished command or failed attach */
bool bridge_busy(void);
bool bridge_resume(void);          /* true: no command is under way (any more) */
void bridge_wait(uint64_t us_max); /* sleep; a signal or progress ends it */
uint64_t bridge_progress(void);    /* grows while the command gets on */
void bridge_cancel(bool on);       /* the command ends soon with kCancelled; false: it has not */
/* How many workers keep it waiting at the gate, by transactions of another protocol, and which; as
 * of its last look, until it is resumed. */
size_t bridge_waited_for_at_gate(const uint16_t** workers);

/* ---- Transactions. */
bool bridge_txn_active(void);
void bridge_begin(const BridgeTxnOptions* options); /* no engine access yet; cannot fail */
void bridge_need_current_reads(void);
bool bridge_txn_touched(void);      /* the gate was entered */
uint64_t bridge_txn_began_us(void); /* when, by the session's clock; 0: it was not */
uint64_t bridge_txn_uses(void);     /* how often the engine has done something for it */
/* The transaction has lost: ends with kAborted. */
void bridge_start_lose(void);
bool bridge_txn_has_writes(void);
int bridge_txn_protocol(void); /* after the gate was entered; -1 before */
int bridge_txn_stages(void);   /* likewise: the hybrid code that it runs with */
void bridge_start_commit(void);
void bridge_start_abort(void);
/* Two phases: prepared under the gtid, a transaction that has written is committed or aborted by
 * what follows. Not ok: it has ended, aborted, but for kInvalidArgument. */
bool bridge_can_prepare(int protocol);
bool bridge_locks_what_it_reads(int protocol);
/* Of a time that is fixed when the transaction begins. */
bool bridge_reads_as_of_time(int protocol);
/* Of a logical time, which its commit finds. */
bool bridge_finds_its_time(int protocol);
void bridge_start_prepare(uint64_t system_id, uint64_t xid);
bool bridge_prepared(void);
/* What the prepared transaction writes; valid until it ends. */
typedef struct BridgeWrite {
  uint32_t table;
  bool deleted;
  BridgeBytes key;
  BridgeBytes row; /* unless deleted */
} BridgeWrite;
size_t bridge_prepared_writes(const BridgeWrite** writes);
void bridge_start_commit_prepared(void);
/* Gives the attachment up without leaving the cluster: nodes finish what this process has left once
 * it has ended. */
void bridge_detach_uncleanly(void);
/* A transaction of this process is left to resolution (engine/session.h): it has to end. */
bool bridge_left_to_resolution(void);
void bridge_set_command(uint32_t command);
uint32_t bridge_savepoint(void);
void bridge_rollback_to(uint32_t level);
/* After it, if it says so: other sessions get the rows that were locked in these levels. */
bool bridge_has_to_let_go(void);
void bridge_start_let_go(void);
void bridge_release(uint32_t level);
rdmacc::VerbCounters bridge_counters(void); /* of this transaction so far */

/* ---- Rows. `out` is filled when the command is done; views live until the transaction ends (gets)
 * or the next batch of the scan. Own writes of commands >= visible_before are not seen. */
void bridge_start_get(uint32_t table, BridgeBytes key, uint32_t visible_before, BridgeRow* out);
/* `to_write`: rows that others have locked are in its way. */
void bridge_start_get_many(uint32_t table, const BridgeBytes* keys, size_t count,
                           uint32_t visible_before, bool to_write, BridgeRow* out);
/* Rows that are most likely read this once, as those of a range (Session::read_batch). Views live
 * until the batch is used again, and as long as the keys that were given. Freed by
 * bridge_read_batch_free, with all scans of its owner, or when the transaction ends. */
typedef struct BridgeReadBatch BridgeReadBatch;
BridgeReadBatch* bridge_read_batch_create(const void* owner);
void bridge_start_read_batch(BridgeReadBatch* batch, uint32_t table, const BridgeBytes* keys,
                             size_t count, uint32_t visible_before, BridgeRow* out);
void bridge_read_batch_free(BridgeReadBatch* batch); /* also of one that is gone already */
/* kAborted when what the transaction has read is of different moments, or, from
 * bridge_need_current_reads() on, is not what is there. */
void bridge_start_check_reads(void);
/* Before what is not run again when it loses reads a table whole (Session::wait_for_splits). */
void bridge_start_wait_for_splits(void);
/* Rows that the transaction knows are put and removed before these return. */
void bridge_start_put(uint32_t table, BridgeBytes key, BridgeBytes row);
void bridge_start_insert(uint32_t table, BridgeBytes key, BridgeBytes row, bool check_absent);
void bridge_start_remove(uint32_t table, BridgeBytes key);
/* Rows of one table, all new. */
typedef struct BridgeRows {
  uint32_t table;
  bool check_absent;
  const BridgeBytes* keys;
  const BridgeBytes* rows;
  size_t count;
} BridgeRows;
/* In their order, in one batch. After kDuplicateKey those before *duplicate are inserted. */
void bridge_start_insert_many(const BridgeRows* rows, size_t* duplicate);
/* Rows as they are to be, whatever there is now: for a copy that is loaded or replayed. */
void bridge_start_apply(const BridgeWrite* writes, size_t count);

/* As bridge_start_get(), and the row is locked at once as the mode says. `out` is not filled when
 * the row is busy, which does the transaction no harm. */
void bridge_start_try_lock(uint32_t table, BridgeBytes key, rdmacc::RowLockMode mode,
                           uint32_t visible_before, BridgeRow* out, rdmacc::RowLock* result);

/* Whose lock the last of these commands has met, or the last batch of a scan: after a busy row, or
 * an error that says held_by_another. Neither does the transaction harm: a row may be asked for
 * once more by bridge_start_try_lock(), a scan by bridge_start_scan_next(). */
typedef struct BridgeLockHolder {
  uint64_t transaction; /* 0: not known */
  int worker;           /* its worker id; -1 */
} BridgeLockHolder;
BridgeLockHolder bridge_lock_holder(void);

/* ---- Loads into a table that the transaction has made, and that goes if it aborts: the nodes put
 * rows in place before the commit (Session::load_rows). */
/* *possible: the protocol lets it, and the transaction has not met the table. */
void bridge_start_ask_for_load(uint32_t table, bool* possible);
/* The table is about to have that many rows: its index grows now, and this waits for it. */
void bridge_start_expect_rows(uint32_t table, uint64_t rows);
/* Sends rows, of which the nodes put some in place while the session goes on; one load at a time.
 * Commands on rows wait until they are there, but for scans of other tables that have begun.
 * *in_place false: the transaction has met the table since, and has inserted them as it does
 * others. After any error, kDuplicateKey included, the transaction has to be aborted. */
void bridge_start_post_load(const BridgeRows* rows, bool* in_place, size_t* duplicate);
/* How the load that was sent last has ended; its *duplicate. Ok where none was sent. Until then
 * the transaction cannot commit if it has failed, or it is given up with its table. */
void bridge_start_finish_load(size_t* duplicate);
void bridge_give_up_load(void);
/* No command is under way: sends what there was no room for before. Does not wait. */
void bridge_go_on(void);

typedef struct BridgeScan BridgeScan;
/* Freed by bridge_scan_free, with all others of its owner, or when the transaction ends. */
BridgeScan* bridge_scan_create(const void* owner);
/* `shared_walk`: NULL, or a word, 0 or bridge_start_share_scan()'s, that lasts as long as the scan:
 * with scans that have the same one, of guests, it gets each row once among them all. */
void bridge_start_scan(BridgeScan* scan, uint32_t table, uint32_t visible_before,
                       rdmacc::ScanMode mode, rdmacc::ScanWants wants, uint64_t* shared_walk);
/* Before guests begin such scans (Session::share_scan); and the word for them from their beginning.
 */
void bridge_start_share_scan(uint32_t table, uint64_t* shared_walk);
uint64_t bridge_shared_walk_anew(uint64_t shared_walk);
void bridge_start_scan_next(BridgeScan* scan);
size_t bridge_scan_rows(BridgeScan* scan, const BridgeRow** rows); /* 0 rows: the end */
void bridge_scan_free(BridgeScan* scan); /* also of a scan that is gone already */
void bridge_scans_free_of(const void* owner);

/* ---- Guests (engine/session.h). Of a protocol, -1 for the default, and a hybrid code: may others
 * read for its transactions? */
bool bridge_may_host(int protocol, int stages);
/* The ticket's ctts is 0 if they may not for this one. */
void bridge_start_host(uint32_t table, rdmacc::HostTicket* ticket);
/* Begins as a guest: in place of bridge_begin(). Ended by bridge_start_abort(), after what it has
 * read was lent: so many bytes, from an address that is a multiple of 64; none if there are none.
 * False: there was no memory to find that out, or to do it. */
void bridge_start_guest(const rdmacc::HostTicket* ticket);
bool bridge_bytes_to_lend(size_t* bytes);
bool bridge_lend(void* to);
/* No command: bridge_error() is set. The bytes stay where they are until the transaction ends. */
void bridge_borrow(const void* lent, size_t bytes);

/* ---- Ordered indexes. An index is a table of its own (record_size 512) that nothing else writes;
 * its entries are bytes in memcmp order, each once, without a value, of at most 4,352 bytes
 * (kTooLarge). */
void bridge_start_index_insert(uint32_t index, BridgeBytes entry); /* kDuplicateKey */
/* Changes that are made when the transaction commits or, before that, when it reads the index or
 * changes it at once, or when those that wait are many: in the order of entries then, and a leaf
 * that all sessions want is read when it is about to be locked. What should not be there and is, or
 * should be and is not, makes the transaction lose. `if_there`: an index under construction need
 * not have it. No command is started: true when so many wait that bridge_start_flush_indexes() is
 * due; bridge_error(): kTooLarge, kNoSpace. */
bool bridge_index_insert_late(uint32_t index, BridgeBytes entry);
bool bridge_index_remove_late(uint32_t index, BridgeBytes entry, bool if_there);
/* Those that wait have to be made before a savepoint. */
bool bridge_changes_wait(void);
void bridge_start_flush_indexes(void);

typedef struct BridgeIndexLoad BridgeIndexLoad;
/* Fills an empty index with entries that come in memcmp order, in parts; it is there with the last
 * part, when the transaction commits. Freed by bridge_index_load_free, with all scans of its owner,
 * or when the transaction ends. `in_place`: as by bridge_start_load_rows(), and what each call has
 * put there is listed by bridge_index_loaded() until the next one. */
BridgeIndexLoad* bridge_index_load_create(const void* owner, uint32_t index, bool in_place);
void bridge_start_index_load(BridgeIndexLoad* load, const BridgeBytes* entries, size_t count,
                             bool last);
size_t bridge_index_loaded(BridgeIndexLoad* load, const BridgeWrite** writes);
void bridge_index_load_free(BridgeIndexLoad* load); /* also of one that is gone already */

/* low <= entry < high; where it is not bounded, all entries. */
typedef struct BridgeRange {
  BridgeBytes low;
  BridgeBytes high;
  bool low_bounded, high_bounded;
} BridgeRange;

/* What verification has found. */
typedef struct BridgeFinding {
  const char* kind;
  uint32_t table; /* 0: of none */
  int node;
  BridgeBytes key; /* empty: not of one key */
  const char* detail;
} BridgeFinding;

typedef struct BridgeIndexScan BridgeIndexScan;
/* Freed by bridge_index_scan_free, with all scans of its owner (bridge_scans_free_of), or when the
 * transaction ends. */
BridgeIndexScan* bridge_index_scan_create(const void* owner);
/* To the beginning of a range, or backward to its end; reads the first batch as _next() does the
 * others. The range is copied. A scan may be sought as often as one likes. */
void bridge_start_index_seek(BridgeIndexScan* scan, uint32_t index, const BridgeRange* range,
                             bool backward, uint32_t visible_before);
void bridge_start_index_next(BridgeIndexScan* scan);
/* The batch that was read last, in the scan's order; 0 entries: the end. Good until the next. */
size_t bridge_index_entries(BridgeIndexScan* scan, const BridgeBytes** entries);
void bridge_index_scan_free(BridgeIndexScan* scan); /* also of a scan that is gone already */

/* ---- Tables; not transactional (see Session). `id` is filled when done. */
void bridge_start_create_table(const rdmacc::TableSpec* spec, uint32_t* id);
/* Makes a table again, with the id that it had. */
void bridge_start_create_again(const rdmacc::ListedTable* table);
/* `made_us`: when it was made, by node 0's clock; may be NULL. */
void bridge_start_find_table(const rdmacc::TableSpec* identity, uint32_t* id, uint64_t* made_us);
void bridge_start_drop_table(uint32_t id);
void bridge_start_list_tables(rdmacc::TableList which);
size_t bridge_tables(const rdmacc::ListedTable** tables); /* of the last list; of all front ends */
/* Ends with kAborted if the transaction reads as of a time, and the table was used since. */
void bridge_start_lose_if_used(uint32_t id);
/* Whether another transaction has locked anything in them, where it locks what it reads. */
void bridge_start_locked_by_others(const uint32_t* ids, size_t count, bool* locked);
/* Bytes of memory in all nodes together. */
void bridge_start_table_size(uint32_t id, uint64_t* bytes);
void bridge_start_node_statistics(int node, rdmacc::NodeStatistics* out);
/* Did the node that was asked last, for its statistics or its locks, give a sign of life within
 * BRIDGE_SILENCE_US_MAX? If not, there is no answer, and no error that would end a transaction. */
#define BRIDGE_SILENCE_US_MAX 1200000
bool bridge_node_answered(void);

/* ---- What goes on in the cluster. The results live until the next command of their kind. */
void bridge_start_locks(int node, uint64_t from); /* from: 0, or *next of the answer before */
size_t bridge_locks(const BridgeLock** locks, uint64_t* next); /* *next is 0 at the end */
/* Of these tables; `units`: and of what no table of the nodes leads to. The tables stay until the
 * command has ended. */
void bridge_start_verify(const rdmacc::TableToVerify* tables, size_t count, bool units);
size_t bridge_findings(const BridgeFinding** findings); /* none: sound */
void bridge_start_gate(BridgeGate* out);
void bridge_start_in_doubt(void);
/* *unresolved: dead sessions that node 0 has not looked at yet. */
size_t bridge_in_doubt(const BridgeInDoubt** transactions, uint64_t* unresolved);
/* kNotFound: no such transaction is in doubt. */
void bridge_start_decide(uint64_t system_id, uint64_t xid, bool commit);
size_t bridge_gate_sessions(const BridgeGateSession** sessions);

/* ---- Names. -1 / false when unknown or not available; text functions return static storage. */
int bridge_parse_protocol(const char* name);
const char* bridge_protocol_name(int protocol);
bool bridge_protocol_available(int protocol);
const char* bridge_lock_mode_name(int mode); /* NULL when there is none of that number */
/* Settings that emulate a system (engine/protocols/presets.h). */
typedef struct BridgePreset {
  const char* name; /* static storage */
  int protocol;
  uint16_t stages; /* a hybrid code, unless: */
  bool auto_stages;
  rdmacc::LockMode lock_mode;
  bool locks_at_write;
} BridgePreset;
bool bridge_preset(int number, BridgePreset* preset); /* false when there is none of that number */
/* False with a message (in *why, static storage) when `text` is no stage plan. */
bool bridge_parse_stages(const char* text, uint16_t* code, const char** why);
/* Canonical text of a code under a protocol, into `out`. */
void bridge_stages_text(int protocol, uint16_t code, char* out, size_t out_bytes);
