/* The settings that a transaction samples at its first engine access: protocol, stages, how it
 * locks, and presets of these (engine/protocols/presets.h). A preset sets no other variable: what
 * counts is found anew whenever PostgreSQL assigns one of them, so that SET LOCAL, RESET,
 * functions' SET clauses and rollbacks do with a preset what they do with any setting. A setting of
 * one's own wins over a preset that comes from the same place or from a more general one (the
 * configuration file, the database, the role, the session, in PostgreSQL's order). */
#include "pg_rdmacc/server/guc.h"

extern "C" {
#include "utils/guc.h"
}

int rdmacc_protocol = -1;
uint16 rdmacc_stages_code = 0;
bool rdmacc_stages_auto = false;
int rdmacc_lock_mode = 0;
int rdmacc_lock_writes = RDMACC_LOCK_AT_COMMIT;

namespace {

constexpr const char* kDefaultProtocol = "occ";
constexpr int kProtocolsMax = 16;
constexpr int kLockModesMax = 8;
constexpr int kPresetsMax = 32;
constexpr int kNoPreset = 0; /* others are the bridge's number + 1 */
constexpr size_t kStagesTextBytes = 256;

/* PostgreSQL's own variables. */
int protocol_variable;
int lock_mode_variable;
int lock_writes_variable = RDMACC_LOCK_AT_COMMIT;
int preset_variable = kNoPreset;
char* stages_variable = nullptr;

config_enum_entry protocol_entries[kProtocolsMax + 1];
config_enum_entry lock_mode_entries[kLockModesMax + 1];
config_enum_entry preset_entries[kPresetsMax + 2];
constexpr config_enum_entry kLockWritesEntries[] = {{"at_commit", RDMACC_LOCK_AT_COMMIT, false},
                                                    {"at_write", RDMACC_LOCK_AT_WRITE, false},
                                                    {nullptr, 0, false}};

/* What was asked for, and where. PostgreSQL keeps one beside each value that it may come back to.
 */
struct Asked {
  GucSource source;
  int value;      /* of stages: their code, unless they are */
  bool automatic; /* auto */
};
Asked protocol_asked, stages_asked, lock_mode_asked, lock_writes_asked, preset_asked;

/* Of the preset that is set; false: none is. */
bool get_preset(BridgePreset* preset) {
  return preset_asked.value != kNoPreset && bridge_preset(preset_asked.value - 1, preset);
}

bool outranked(const Asked& asked) { return asked.source < preset_asked.source; }

void resolve(void) {
  BridgePreset preset = {};
  const bool is_set = get_preset(&preset);
  const auto chosen = [is_set](const Asked& asked, int of_preset) {
    return is_set && outranked(asked) ? of_preset : asked.value;
  };
  const bool any_protocol = protocol_asked.source == PGC_S_DEFAULT && !is_set;
  rdmacc_protocol = any_protocol ? -1 : chosen(protocol_asked, preset.protocol);
  rdmacc_lock_mode = chosen(lock_mode_asked, static_cast<int>(preset.lock_mode));
  rdmacc_lock_writes = chosen(lock_writes_asked,
                              preset.locks_at_write ? RDMACC_LOCK_AT_WRITE : RDMACC_LOCK_AT_COMMIT);
  rdmacc_stages_code = static_cast<uint16>(chosen(stages_asked, preset.stages));
  rdmacc_stages_auto =
      is_set && outranked(stages_asked) ? preset.auto_stages : stages_asked.automatic;
}

bool refuse_within_transaction(const char* setting) {
  if (!bridge_txn_active() || !bridge_txn_touched()) return true;
  GUC_check_errcode(ERRCODE_ACTIVE_SQL_TRANSACTION);
  GUC_check_errmsg("cannot change \"%s\" after the transaction has used an rdmacc table", setting);
  GUC_check_errhint("Set it before the transaction's first access to an rdmacc table.");
  return false;
}

bool keep(const Asked& asked, void** extra) {
  auto* kept = static_cast<Asked*>(malloc(sizeof(Asked)));
  if (kept == nullptr) return false;
  *kept = asked;
  *extra = kept;
  return true;
}

void take(void* extra, Asked* into) {
  CHECK(extra != nullptr);
  *into = *static_cast<const Asked*>(extra);
  resolve();
}

bool check_protocol(int* newval, void** extra, GucSource source) {
  const bool changes = rdmacc_protocol >= 0 ? rdmacc_protocol != *newval
                                            : bridge_txn_active() && bridge_txn_touched() &&
                                                  bridge_txn_protocol() != *newval;
  if (source >= PGC_S_INTERACTIVE && changes && !refuse_within_transaction("rdmacc.protocol")) {
    return false;
  }
  return keep({source, *newval, false}, extra);
}

void assign_protocol(int, void* extra) { take(extra, &protocol_asked); }

const char* show_protocol(void) {
  return bridge_protocol_name(rdmacc_protocol >= 0 ? rdmacc_protocol : protocol_asked.value);
}

bool check_stages(char** newval, void** extra, GucSource source) {
  const bool automatic = pg_strcasecmp(*newval, "auto") == 0;
  uint16 code = 0;
  const char* why = nullptr;
  if (!automatic && !bridge_parse_stages(*newval, &code, &why)) {
    GUC_check_errdetail("%s; or auto", why);
    return false;
  }
  const bool changes =
      automatic != rdmacc_stages_auto || (!automatic && code != rdmacc_stages_code);
  if (source >= PGC_S_INTERACTIVE && changes && !refuse_within_transaction("rdmacc.stages")) {
    return false;
  }
  return keep({source, code, automatic}, extra);
}

void assign_stages(const char*, void* extra) { take(extra, &stages_asked); }

/* As it was written, or the preset's, of which the stages that the protocol has are told. */
const char* show_stages(void) {
  static char text[kStagesTextBytes];
  BridgePreset preset;
  if (!get_preset(&preset) || !outranked(stages_asked)) return stages_variable;
  if (rdmacc_stages_auto) return "auto";
  const int protocol = rdmacc_protocol >= 0 ? rdmacc_protocol : protocol_asked.value;
  bridge_stages_text(protocol, rdmacc_stages_code, text, sizeof(text));
  return text;
}

bool check_lock_mode(int* newval, void** extra, GucSource source) {
  if (source >= PGC_S_INTERACTIVE && *newval != rdmacc_lock_mode &&
      !refuse_within_transaction("rdmacc.lock_mode")) {
    return false;
  }
  return keep({source, *newval, false}, extra);
}

void assign_lock_mode(int, void* extra) { take(extra, &lock_mode_asked); }

const char* show_lock_mode(void) { return bridge_lock_mode_name(rdmacc_lock_mode); }

bool check_lock_writes(int* newval, void** extra, GucSource source) {
  return keep({source, *newval, false}, extra);
}

void assign_lock_writes(int, void* extra) { take(extra, &lock_writes_asked); }

const char* show_lock_writes(void) { return kLockWritesEntries[rdmacc_lock_writes].name; }

bool check_preset(int* newval, void** extra, GucSource source) {
  if (source >= PGC_S_INTERACTIVE && *newval != preset_asked.value &&
      !refuse_within_transaction("rdmacc.preset")) {
    return false;
  }
  return keep({source, *newval, false}, extra);
}

void assign_preset(int, void* extra) { take(extra, &preset_asked); }

void define_protocol(void) {
  int count = 0;
  /* Names come from the engine's registry: those that are not there are no values. */
  for (int number = 0; number < kProtocolsMax; ++number) {
    if (!bridge_protocol_available(number)) continue;
    protocol_entries[count++] = {bridge_protocol_name(number), number, false};
  }
  CHECK(count > 0 && !bridge_protocol_available(kProtocolsMax)); /* all have their place */
  protocol_entries[count] = {nullptr, 0, false};
  int boot = bridge_parse_protocol(kDefaultProtocol);
  if (!bridge_protocol_available(boot) && count > 0) boot = protocol_entries[0].val;
  protocol_variable = boot;
  DefineCustomEnumVariable(
      "rdmacc.protocol", "Concurrency control protocol of transactions on rdmacc tables.",
      "Sampled at a transaction's first access. A session that never set it joins the protocol "
      "that is in use.",
      &protocol_variable, boot, protocol_entries, PGC_USERSET, 0, check_protocol, assign_protocol,
      show_protocol);
}

void define_stages(void) {
  DefineCustomStringVariable(
      "rdmacc.stages", "Which primitive carries out each stage of a transaction.",
      "one_sided, rpc, a hybrid code 0 .. 511, a list such as \"lock=rpc,log=one_sided\", or auto: "
      "whatever takes the session's transactions the least time.",
      &stages_variable, "one_sided", PGC_USERSET, 0, check_stages, assign_stages, show_stages);
}

void define_locks(void) {
  int count = 0;
  while (count < kLockModesMax && bridge_lock_mode_name(count) != nullptr) {
    lock_mode_entries[count] = {bridge_lock_mode_name(count), count, false};
    ++count;
  }
  CHECK(count > 0 && count < kLockModesMax);
  lock_mode_entries[count] = {nullptr, 0, false};
  DefineCustomEnumVariable(
      "rdmacc.lock_mode", "How two-phase locking locks rows that a transaction has only read.",
      "exclusive, or shared with other readers. Protocols that do not lock what they read do not "
      "use it.",
      &lock_mode_variable, 0, lock_mode_entries, PGC_USERSET, 0, check_lock_mode, assign_lock_mode,
      show_lock_mode);
  DefineCustomEnumVariable(
      "rdmacc.lock_writes", "When UPDATE and DELETE lock their rows.",
      "at_write: as SELECT FOR UPDATE does. Protocols that lock what they read do not use it.",
      &lock_writes_variable, RDMACC_LOCK_AT_COMMIT, kLockWritesEntries, PGC_USERSET, 0,
      check_lock_writes, assign_lock_writes, show_lock_writes);
}

void define_preset(void) {
  BridgePreset preset;
  int count = 0;
  preset_entries[count++] = {"none", kNoPreset, false};
  for (int number = 0; bridge_preset(number, &preset); ++number) {
    CHECK(number < kPresetsMax);
    preset_entries[count++] = {preset.name, number + 1, false};
  }
  preset_entries[count] = {nullptr, 0, false};
  DefineCustomEnumVariable(
      "rdmacc.preset", "A system that transactions on rdmacc tables emulate.",
      "Gives rdmacc.protocol, stages, lock_mode and lock_writes, unless they are set themselves in "
      "the same place or a more special one.",
      &preset_variable, kNoPreset, preset_entries, PGC_USERSET, 0, check_preset, assign_preset,
      nullptr);
}

}  // namespace

void rdmacc_guc_define_sampled(void) {
  define_protocol();
  define_stages();
  define_locks();
  define_preset();
}
