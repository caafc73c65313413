#include "pg_rdmacc/xact/held_cursors.h"

extern "C" {
#include "nodes/pg_list.h"
#include "utils/memutils.h"
#include "utils/portal.h"
}

namespace {

struct Place {
  uint64 row;
  bool at_start, at_end;

  bool operator==(const Place&) const = default;
};

struct HeldCursor {
  const char* name;
  bool there;
  Place place; /* if it is there */
};

List* cursors; /* HeldCursor*, in TopMemoryContext; some may be closed by now */

bool find(const HeldCursor* cursor, Place* place) {
  const PortalData* portal = GetPortalByName(cursor->name);
  if (portal == nullptr) return false;
  CHECK(strcmp(portal->name, cursor->name) == 0);
  *place = {portal->portalPos, portal->atStart, portal->atEnd};
  return true;
}

void forget(HeldCursor* cursor) {
  pfree(const_cast<char*>(cursor->name));
  pfree(cursor);
}

}  // namespace

void rdmacc_note_cursor(const DeclareCursorStmt* statement) {
  if ((statement->options & CURSOR_OPT_HOLD) == 0) return;
  CHECK(statement->portalname != nullptr);
  ListCell* cell;
  foreach (cell, cursors) {
    if (strcmp(static_cast<const HeldCursor*>(lfirst(cell))->name, statement->portalname) == 0) {
      return;
    }
  }
  const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
  auto* cursor = static_cast<HeldCursor*>(palloc0(sizeof(HeldCursor)));
  cursor->name = pstrdup(statement->portalname);
  cursors = lappend(cursors, cursor);
  MemoryContextSwitchTo(previous);
}

bool rdmacc_holds_cursors(void) { return cursors != NIL; }

void rdmacc_remember_cursors(void) {
  ListCell* cell;
  foreach (cell, cursors) {
    auto* cursor = static_cast<HeldCursor*>(lfirst(cell));
    cursor->there = find(cursor, &cursor->place);
    if (cursor->there) continue;
    forget(cursor);
    cursors = foreach_delete_current(cursors, cell);
  }
}

bool rdmacc_cursors_have_moved(void) {
  ListCell* cell;
  foreach (cell, cursors) {
    const auto* cursor = static_cast<const HeldCursor*>(lfirst(cell));
    Place now = {};
    if (cursor->there && !(find(cursor, &now) && now == cursor->place)) return true;
  }
  return false;
}
