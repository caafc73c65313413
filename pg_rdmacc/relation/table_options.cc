#include "pg_rdmacc/relation/table_options.h"

#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/table.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/seclabel.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace {

/* make_new_heap() calls a table that is being rewritten so. */
constexpr const char* kRewriteName = "pg_temp_";

struct OptionKind {
  const char* name;
  int RdmaccTableOptions::*field;
  int min;
  int max;
  int by_default;
  const bool* setting; /* or NULL: says what a new table gets, and RESET gives */
};
const OptionKind kOptions[] = {
    {"record_size", &RdmaccTableOptions::record_size, 32, 512, -1, nullptr},
    {"history", &RdmaccTableOptions::history, 0, 15, RDMACC_HISTORY_DEFAULT, nullptr},
    {"partition_by", &RdmaccTableOptions::partition_by, 0, INDEX_MAX_KEYS, 0, nullptr},
    {"ordered_key", &RdmaccTableOptions::ordered_key, 0, 1, RDMACC_ORDERED_KEY_UNSAID,
     &rdmacc_ordered_keys}};

/* ---- Values and their text */

void set_defaults(RdmaccTableOptions* options) {
  for (const OptionKind& kind : kOptions) options->*kind.field = kind.by_default;
}

int value_of_new_table(const OptionKind& kind) {
  return kind.setting == nullptr ? kind.by_default : *kind.setting ? 1 : 0;
}

const OptionKind* find_option(const char* name) {
  for (const OptionKind& kind : kOptions) {
    if (strcmp(kind.name, name) == 0) return &kind;
  }
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("unrecognized option \"%s\" of an rdmacc table", name),
                  errhint("Options are: record_size, history, partition_by, ordered_key.")));
}

/* "history=5, record_size=64"; NULL when all have their defaults. */
char* options_text(const RdmaccTableOptions* options) {
  StringInfoData text;
  initStringInfo(&text);
  for (const OptionKind& kind : kOptions) {
    if (options->*kind.field == kind.by_default) continue;
    appendStringInfo(&text, "%s%s=%d", text.len > 0 ? ", " : "", kind.name, options->*kind.field);
  }
  return text.len > 0 ? text.data : nullptr;
}

void parse_options(const char* label, RdmaccTableOptions* options) {
  set_defaults(options);
  if (label == nullptr) return;
  char* rest = pstrdup(label);
  for (char* item = strtok_r(rest, ", ", &rest); item != nullptr;
       item = strtok_r(nullptr, ", ", &rest)) {
    char* equals = strchr(item, '=');
    if (equals == nullptr) {
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("label \"%s\" is no list of rdmacc options", label),
                      errhint("Write name=value, name=value.")));
    }
    *equals = '\0';
    rdmacc_set_table_option(options, item, equals + 1);
  }
}

/* ---- Labels */

/* What it says comes first: a label that is no list of options was meant for something else. */
void check_label(const ObjectAddress* object, const char* label) {
  if (label == nullptr) return; /* it is taken away */
  RdmaccTableOptions options;
  parse_options(label, &options);
  if (object->classId != RelationRelationId || object->objectSubId != 0 ||
      !rdmacc_relation_is_ours(object->objectId) ||
      get_rel_relkind(object->objectId) == RELKIND_PARTITIONED_TABLE) {
    ereport(ERROR,
            (errcode(ERRCODE_WRONG_OBJECT_TYPE),
             errmsg("labels of the provider \"%s\" are for rdmacc tables", RDMACC_LABEL_PROVIDER)));
  }
}

/* Checks the owner, too. */
void set_label(Oid relation, const RdmaccTableOptions* options) {
  SecLabelStmt* statement = makeNode(SecLabelStmt);
  statement->objtype = get_rel_relkind(relation) == RELKIND_MATVIEW ? OBJECT_MATVIEW : OBJECT_TABLE;
  statement->object = reinterpret_cast<Node*>(
      list_make2(makeString(get_namespace_name(get_rel_namespace(relation))),
                 makeString(get_rel_name(relation))));
  statement->provider = pstrdup(RDMACC_LABEL_PROVIDER);
  statement->label = options_text(options);
  ExecSecLabelStmt(statement);
}

/* Of any table, without a look at it. */
void put_label(Oid relation, const char* label) {
  ObjectAddress address;
  ObjectAddressSet(address, RelationRelationId, relation);
  SetSecurityLabel(&address, RDMACC_LABEL_PROVIDER, label);
}

}  // namespace

void rdmacc_set_table_option(RdmaccTableOptions* options, const char* name,
                             const char* value_text) {
  const OptionKind* kind = find_option(name);
  int value = value_of_new_table(*kind);
  bool word = false;
  if (value_text != nullptr && kind->max == 1 && parse_bool(value_text, &word)) {
    value = word ? 1 : 0;
  } else if (value_text != nullptr) {
    char* end = nullptr;
    errno = 0;
    const long parsed = strtol(value_text, &end, 10);
    if (end == value_text || *end != '\0' || errno != 0 || parsed < kind->min ||
        parsed > kind->max) {
      ereport(
          ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
           errmsg("invalid value for option \"%s\" of an rdmacc table: \"%s\"", name, value_text),
           errdetail("Valid values are between \"%d\" and \"%d\".", kind->min, kind->max)));
    }
    value = static_cast<int>(parsed);
  }
  options->*kind->field = value;
}

void rdmacc_table_options_of(Oid relation, RdmaccTableOptions* options) {
  ObjectAddress address;
  ObjectAddressSet(address, RelationRelationId, relation);
  parse_options(GetSecurityLabel(&address, RDMACC_LABEL_PROVIDER), options);
}

void rdmacc_table_options(Relation relation, RdmaccTableOptions* options) {
  const char* name = RelationGetRelationName(relation);
  Oid source = InvalidOid;
  if (strncmp(name, kRewriteName, strlen(kRewriteName)) == 0) {
    source = static_cast<Oid>(strtoul(name + strlen(kRewriteName), nullptr, 10));
  }
  const bool rewritten = OidIsValid(source) && rdmacc_relation_is_ours(source);
  rdmacc_table_options_of(rewritten ? source : RelationGetRelid(relation), options);
}

bool rdmacc_change_table_options(Oid relation, const RdmaccTableOptions* options) {
  for (const OptionKind& kind : kOptions) {
    const int value = options->*kind.field;
    CHECK(value == kind.by_default || (value >= kind.min && value <= kind.max));
  }
  RdmaccTableOptions before;
  rdmacc_table_options_of(relation, &before);
  if (memcmp(&before, options, sizeof(before)) == 0) return false;
  set_label(relation, options);
  return true;
}

void rdmacc_label_new_table(Oid relation) {
  RdmaccTableOptions options;
  for (const OptionKind& kind : kOptions) options.*kind.field = value_of_new_table(kind);
  put_label(relation, options_text(&options));
}

void rdmacc_unlabel_table(Oid relation) { put_label(relation, nullptr); }

void rdmacc_table_options_init(void) {
  register_label_provider(RDMACC_LABEL_PROVIDER, check_label);
}
