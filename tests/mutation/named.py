"""Faults written by hand: {file: [(name, original, mutated)]}. The original stands in the file
exactly once; FAULT in the mutated text asks the switch. Entries of one name are one fault."""

# A look for one key moved the access that it shares with others, and these were inserted into a
# group that did not hold them any more. Three places see to it now; this is the code without them.
MOVED = "an insert goes into the group that the look for another key has found"

UNLOCKED_FIRST = "the lock is given back before the record is written"
SWAP_UNLOCK = ("!FAULT ? as_listed : as_listed == Effect::kUnlock ? Effect::kRecord "
               ": as_listed == Effect::kRecord ? Effect::kUnlock : as_listed;")
RECORD_FIRST = "the record is written before its stamp"
SWAP_STAMP = ("!FAULT ? effect : effect == Effect::kStamp ? Effect::kRecord "
              ": effect == Effect::kRecord ? Effect::kStamp : effect")

FAULTS = {
    "engine/txn/stages/lock.cc": [
        (MOVED, "if (!claims(walk.post_read, placement.gap->table, entry_change->hash)) {",
         "if (!FAULT && !claims(walk.post_read, placement.gap->table, entry_change->hash)) {"),
    ],
    "engine/txn/stages/scan_slots.cc": [
        ("rows of a block that has been read may be others' by now",
         "same = same && sums == block.sums;", "same = same && (FAULT || sums == block.sums);"),
        ("rows of a block that has been read may be locked",
         "same = if_free_to_commit(", "same = FAULT || if_free_to_commit("),
    ],
    "engine/txn/transaction/write_plan.cc": [
        (MOVED, "write.gap != nullptr && !claims(*write.gap, write.hash)",
         "write.gap != nullptr && !FAULT && !claims(*write.gap, write.hash)"),
        (MOVED, "CHECK(claims(*lock.access, entry_change.hash));",
         "CHECK(FAULT || claims(*lock.access, entry_change.hash));"),
    ],
    "engine/storage/owner/group_split.cc": [
        ("a split asks whether it is worth it before it looks at the lock",
         "if (region_.lock_of(group) != 0) return Outcome::kBusy;",
         "if (FAULT && !worth_splitting(group, depth_wanted)) return Outcome::kNotNeeded; "
         "if (region_.lock_of(group) != 0) return Outcome::kBusy;"),
        ("a split does not end the leases of those that missed a key",
         "halves.sundial_wts = std::max(lease_end(low.sundial), lease_end(high.sundial)) + 1;",
         "halves.sundial_wts = FAULT ? 0 "
         ": std::max(lease_end(low.sundial), lease_end(high.sundial)) + 1;"),
        ("a split keeps the group's incarnation",
         "identity + (1ull << 32)", "identity + (FAULT ? 0 : 1ull << 32)"),
        ("a split keeps the group's stamp",
         "writer.store(group + kOffsetOfWts, halves.stamp);",
         "if (!FAULT) writer.store(group + kOffsetOfWts, halves.stamp);"),
    ],
    "engine/txn/driver/engine_context.h": [
        ("a reader is let through the lock of a split that moves entries",
         "if (passes_locks && (by_owner(before) || by_owner(after)))",
         "if (!FAULT && passes_locks && (by_owner(before) || by_owner(after)))"),
    ],
    "engine/txn/transaction/commit.cc": [
        ("what a round that failed was to release is taken for released",
         "if (!status.ok()) return true;", "if (!FAULT && !status.ok()) return true;"),
    ],
    "engine/txn/driver/driver_base.h": [
        ("one READ has header and record where no lock keeps them",
         "return (step.verbs & kReads) == (kPreRead | kReadRecord) &&",
         "return (step.verbs & (FAULT ? kReads & ~kPostRead : kReads)) == (kPreRead | kReadRecord) &&"),
    ],
    "engine/txn/transaction/read_batch.cc": [
        ("rows that are read and not kept are not validated",
         "accesses_.add_row(", "if (!FAULT) accesses_.add_row("),
        ("rows that are read and not kept hide own writes",
         "if (any_known && keys_.find(", "if (any_known && !FAULT && keys_.find("),
    ],
    "engine/txn/transaction/check_reads.cc": [
        ("what a scan has only read is not validated for a transaction that writes",
         "if (!accesses_.has_reads()) return Status();",
         "if (!accesses_.has_reads() || (FAULT && !writes_.empty())) return Status();"),
    ],
    "engine/txn/transaction/access_set.h": [
        ("what a scan has met is not found by what looks its table up later",
         "if (scan != nullptr && scan->own) share(*scan);",
         "if (!FAULT && scan != nullptr && scan->own) share(*scan);"),
        ("a read that is written is read once more",
         "if (kept != nullptr) kept->header = {};",
         "if (!FAULT && kept != nullptr) kept->header = {};"),
    ],
    "engine/txn/transaction/guests.cc": [
        ("what guests have scanned is not validated",
         "accesses_.borrow_reads(each.table, reads);",
         "if (!FAULT) accesses_.borrow_reads(each.table, reads);"),
        ("blocks that guests have scanned are not validated",
         "accesses_.borrow_blocks(each.table, blocks);",
         "if (!FAULT) accesses_.borrow_blocks(each.table, blocks);"),
        ("gaps of what guests have scanned are not validated",
         "accesses_.add_gap_again(access);", "if (!FAULT) accesses_.add_gap_again(access);"),
        ("what guests have looked up is not validated",
         "if (access.read) accesses.push_back(access);",
         "if (access.read && (!FAULT || access.gap)) accesses.push_back(access);"),
        ("a guest reads later than its host",
         "stamps_.ctts = ticket.ctts;", "stamps_.ctts = ticket.ctts + (FAULT ? 1ull << 24 : 0);"),
    ],
    "engine/protocols/drtm.cc": [
        ("a writer does not wait for what others have leased",
         "const bool free = own || awaited ||", "const bool free = own || FAULT || awaited ||"),
        ("leases are confirmed without a look at the clock",
         "return access.lease > txn.commit_tts;",
         "return FAULT ? access.lease != 0 : access.lease > txn.commit_tts;"),
        ("a lease is taken beside a writer that has looked before",
         "leaves_readable(after.lock, txn) &&", "(FAULT || leaves_readable(after.lock, txn)) &&"),
        ("a lease is noted that no writer is told of",
         "return Step::cas(kPostRead, kOffsetOfRts, word, taken);",
         "return FAULT ? Step::done_under(taken) : Step::cas(kPostRead, kOffsetOfRts, word, taken);"),
    ],
    "engine/txn/rule/access.h": [
        ("the table of a header is not compared",
         "return seen.table == access.table &&", "return (FAULT || seen.table == access.table) &&"),
        ("the hash of a header is not compared",
         "(access.tag_only || seen.key_hash == access.key_hash)",
         "(FAULT || access.tag_only || seen.key_hash == access.key_hash)"),
        ("the incarnation of a header is not compared",
         "(access.incarnation == 0 || seen.incarnation == access.incarnation)",
         "(FAULT || access.incarnation == 0 || seen.incarnation == access.incarnation)"),
        ("the depth of a gap header is not compared",
         "(!access.gap || seen.length == access.depth)",
         "(FAULT || !access.gap || seen.length == access.depth)"),
    ],
    "engine/txn/stages/row_lock.cc": [
        ("a quiet scan takes what a commit is about to change",
         "return !locked_by_another(lock, txn) || locked_early(lock);",
         "return FAULT || !locked_by_another(lock, txn) || locked_early(lock);"),
    ],
    "engine/txn/stages/install.cc": [
        (UNLOCKED_FIRST, "for (const Effect effect : options_.effects) {",
         "for (const Effect as_listed : options_.effects) { const Effect effect = " + SWAP_UNLOCK),
        (RECORD_FIRST, "carry_out(effect, write, words->effects, out)",
         "carry_out(" + SWAP_STAMP + ", write, words->effects, out)"),
    ],
    "engine/txn/stages/install_in_place.cc": [
        (UNLOCKED_FIRST, "for (const Effect effect : options_.effects) {",
         "for (const Effect as_listed : options_.effects) { const Effect effect = " + SWAP_UNLOCK),
        (RECORD_FIRST, "carry_out(effect, write, words, *this)",
         "carry_out(" + SWAP_STAMP + ", write, words, *this)"),
    ],
}
