#include "engine/index/index_loader.h"

#include "engine/index/ordered_index.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Of a record, so that the first entries that come later split no node.
constexpr size_t kBytesFilled = kNodeBytesInline * 85 / 100;

}  // namespace

// The high fence is not known yet: it is about as long as the item.
bool IndexLoader::has_room(size_t height, size_t bytes) const {
  const OpenNode& node = open_[height];
  if (node.items.size() + 1 < kItemsToSplit) return true;
  const size_t filled = kNodeHeadBytes + node.low.size() + node.item_bytes;
  return filled + encoded_item_bytes(height == 0, bytes) + bytes <= kBytesFilled;
}

Status IndexLoader::add(std::string_view entry) {
  RDMACC_RETURN_IF_ERROR(check_index_entry(entry));
  if (!open_.empty() && entry <= last_) {
    return Status(Code::kInvalidArgument, "entries to load are not in order");
  }
  last_ = entry;
  return add_item(0, entry, 0);
}

Status IndexLoader::add_item(size_t height, std::string_view bytes, NodeNumber child) {
  CHECK(height <= open_.size());
  if (height == open_.size()) open_.emplace_back();
  if (!has_room(height, bytes.size())) {
    const std::string_view before = open_[height].items.back().bytes;
    const std::string separator(height == 0 ? shortest_separator(before, bytes) : bytes);
    RDMACC_RETURN_IF_ERROR(close(height, separator));
  }
  OpenNode& node = open_[height];
  // A node's first child needs no separator: its low fence is the node's.
  const bool first_child = height > 0 && node.items.empty();
  node.items.push_back({first_child ? std::string() : std::string(bytes), child});
  node.item_bytes += encoded_item_bytes(height == 0, node.items.back().bytes.size());
  return Status();
}

NodeDraft IndexLoader::node_at(size_t height) const {
  const OpenNode& open = open_[height];
  CHECK(!open.items.empty());
  NodeDraft node;
  node.height = static_cast<uint8_t>(height);
  node.low = open.low;
  for (const Item& item : open.items) node.items.push_back({item.bytes, item.child});
  return node;
}

// The node ends below `high`, where the next one of its height begins.
Status IndexLoader::close(size_t height, const std::string& high) {
  NodeDraft node = node_at(height);
  node.high = high;
  node.high_bounded = true;
  RDMACC_RETURN_IF_ERROR(write(height, node));
  open_[height] = OpenNode{.low = high, .items = {}, .item_bytes = 0};
  return Status();
}

// Below the root: its parent is told.
Status IndexLoader::write(size_t height, const NodeDraft& node) {
  NodeNumber number = 0;
  if (gathers_) {
    while (number <= kRootNumber) number = session_.draw_number();
    gather(number, node);
  } else {
    RDMACC_RETURN_IF_ERROR(insert_new_node(session_, index_, node, number));
  }
  return add_item(height + 1, node.low, number);
}

void IndexLoader::gather(NodeNumber number, const NodeDraft& node) {
  CHECK(gathers_);
  gathered_.emplace_back(NodeKey(number).view(), node.encode(number));
}

Status IndexLoader::put_in_place() {
  std::vector<std::string_view> keys, rows;
  for (const auto& [key, row] : gathered_) {
    keys.push_back(key);
    rows.push_back(row);
  }
  size_t duplicate = 0;
  const Status status = session_.load_rows(index_.table, keys, rows, true, &duplicate);
  if (status.code() == Code::kDuplicateKey) return session_.abort_on_conflict();
  RDMACC_RETURN_IF_ERROR(status);
  in_place_ = std::move(gathered_);
  gathered_.clear();
  return Status();
}

Status IndexLoader::finish() {
  for (size_t height = 0; height < open_.size(); height++) {
    const NodeDraft node = node_at(height);
    if (height + 1 < open_.size()) {
      RDMACC_RETURN_IF_ERROR(write(height, node));
      continue;
    }
    if (gathers_) {
      gather(kRootNumber, node);
    } else {
      RDMACC_RETURN_IF_ERROR(
          session_.insert(index_.table, NodeKey(kRootNumber).view(), node.encode(kRootNumber)));
    }
    break;
  }
  open_.clear();
  return Status();
}

}  // namespace rdmacc
