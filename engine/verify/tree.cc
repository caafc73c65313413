#include "engine/verify/tree.h"

#include <algorithm>
#include <cstring>

#include "engine/index/index_scan.h"
#include "engine/verify/look_ups.h"

namespace rdmacc {

Status TreeCheck::run(std::vector<Finding>& findings) {
  findings_ = &findings;
  std::vector<Finding> found;
  // An attempt that does not commit has seen nothing.
  RDMACC_RETURN_IF_ERROR(transact(session_, options_, [&] {
    found.clear();
    return read_nodes(found);
  }));
  findings.insert(findings.end(), found.begin(), found.end());
  if (rows_.empty()) return Status();  // an empty table is an empty index
  std::vector<Place> places = {{kRootNumber, -1, "", "", false}};
  while (!places.empty()) {
    const Place place = std::move(places.back());
    places.pop_back();
    visit(place, places);
  }
  for (const auto& [number, row] : rows_) add(number, "the root does not lead to it");
  return Status();
}

Status TreeCheck::read_nodes(std::vector<Finding>& findings) {
  rows_.clear();
  Result<ScanHandle> scan = session_.scan(table_);
  if (!scan.ok()) return scan.status();
  std::vector<RowView> rows;
  do {
    if (options_.is_cancelled()) return Status(Code::kCancelled);
    RDMACC_RETURN_IF_ERROR(session_.scan_next(**scan, rows));
    for (const RowView& row : rows) {
      NodeNumber number = 0;
      if (row.key.size() != kNodeKeyBytes) {
        findings.push_back({kFindingTreeNode, table_, row.node, 0, std::string(row.key),
                            "its key is not a node's"});
        continue;
      }
      std::memcpy(&number, row.key.data(), sizeof(number));
      rows_[number] = row.row;
    }
  } while (!rows.empty());
  return Status();
}

void TreeCheck::visit(const Place& place, std::vector<Place>& children) {
  const auto found = rows_.find(place.number);
  if (found == rows_.end()) return add(place.number, "it is named, but absent or named twice");
  const std::string row = std::move(found->second);
  rows_.erase(found);
  const std::optional<TreeNode> node = TreeNode::parse_checked(place.number, row);
  if (!node) return add(place.number, "its bytes are no node's");
  if (place.height >= 0 && node->height != place.height) {
    add(place.number, "its height is " + std::to_string(node->height) + " in the place of " +
                          std::to_string(place.height));
    return;
  }
  const bool fences = node->low == place.low && node->high_bounded == place.high_bounded &&
                      (!node->high_bounded || node->high == place.high);
  if (!fences) add(place.number, "its fences are not those that its parent has for it");
  check_items(place, *node);
  if (node->leaf()) {
    entries_ += node->size();
    return;
  }
  for (size_t i = 0; i < node->size(); ++i) {
    const bool last = i + 1 == node->size();
    Place child{node->child(i), node->height - 1, std::string(node->low_of(i)), "", true};
    child.high = last ? std::string(node->high) : std::string(node->low_of(i + 1));
    child.high_bounded = !last || node->high_bounded;
    children.push_back(std::move(child));
  }
}

void TreeCheck::check_items(const Place& place, const TreeNode& node) {
  for (size_t i = 0; i < node.size(); ++i) {
    const std::string_view item = node.leaf() ? node.item(i) : node.low_of(i);
    const std::string which = "item " + std::to_string(i);
    if (item < node.low || (node.high_bounded && item >= node.high)) {
      add(place.number, which + " is outside of the fences");
    }
    if (i == 0) continue;
    const std::string_view before = node.leaf() ? node.item(i - 1) : node.low_of(i - 1);
    if (before >= item) add(place.number, which + " is not above the one before it");
  }
}

void TreeCheck::add(NodeNumber number, std::string detail) {
  const NodeKey key(number);
  findings_->push_back({kFindingTreeNode, table_, home_node_of(table_, key.view(), nodes_), 0,
                        std::string(key.view()),
                        "node " + std::to_string(number) + ": " + std::move(detail)});
}

// ---- A table and its index

namespace {

Status read_both(Session& session, const VerifyOptions& options, TableId table, TableId index,
                 const EntriesOf& entries_of, std::vector<std::string>& expected,
                 std::vector<std::string>& actual) {
  expected.clear();
  actual.clear();
  Result<ScanHandle> scan = session.scan(table);
  if (!scan.ok()) return scan.status();
  std::vector<RowView> rows;
  do {
    if (options.is_cancelled()) return Status(Code::kCancelled);
    RDMACC_RETURN_IF_ERROR(session.scan_next(**scan, rows));
    for (const RowView& row : rows) RDMACC_RETURN_IF_ERROR(entries_of(row, expected));
  } while (!rows.empty());
  IndexScan entries;
  entries.seek(IndexRef{index}, IndexRange{}, /*backward=*/false);
  std::vector<std::string_view> batch;
  do {
    if (options.is_cancelled()) return Status(Code::kCancelled);
    RDMACC_RETURN_IF_ERROR(entries.next(session, batch));
    actual.insert(actual.end(), batch.begin(), batch.end());
  } while (!batch.empty());
  return Status();
}

}  // namespace

Status check_entries(Session& session, const VerifyOptions& options, TableId table, TableId index,
                     const EntriesOf& entries_of, std::vector<Finding>& findings) {
  std::vector<std::string> expected, actual, missing, surplus;
  RDMACC_RETURN_IF_ERROR(transact(session, options, [&] {
    return read_both(session, options, table, index, entries_of, expected, actual);
  }));
  std::sort(expected.begin(), expected.end());
  std::sort(actual.begin(), actual.end());  // by right it is so already
  std::set_difference(expected.begin(), expected.end(), actual.begin(), actual.end(),
                      std::back_inserter(missing));
  std::set_difference(actual.begin(), actual.end(), expected.begin(), expected.end(),
                      std::back_inserter(surplus));
  const std::string of = "of the table " + std::to_string(table);
  for (std::string& entry : missing) {
    findings.push_back({kFindingNoEntry, index, 0, 0, std::move(entry), "for a row " + of});
  }
  for (std::string& entry : surplus) {
    findings.push_back({kFindingNoRow, index, 0, 0, std::move(entry), of});
  }
  return Status();
}

}  // namespace rdmacc
