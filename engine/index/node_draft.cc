#include "engine/index/node_draft.h"

#include <algorithm>
#include <cstring>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

size_t item_bytes(const NodeDraft& node, size_t i) {
  return encoded_item_bytes(node.leaf(), node.items[i].bytes.size());
}

// Where the larger part is smallest; both get an item.
size_t middle_of(const NodeDraft& node) {
  size_t all = 0, left = 0;
  for (size_t i = 0; i < node.items.size(); i++) all += item_bytes(node, i);
  size_t best = 1, best_bytes = all;
  for (size_t cut = 1; cut < node.items.size(); cut++) {
    left += item_bytes(node, cut - 1);
    const size_t larger = std::max(left, all - left);
    if (larger >= best_bytes) continue;
    best = cut;
    best_bytes = larger;
  }
  return best;
}

char* put(char* at, const void* bytes, size_t count) {
  if (count > 0) memcpy(at, bytes, count);
  return at + count;
}

// Most items lie behind one another in the row that they were read from: such are copied at once.
char* put_bytes_of(const NodeItems& items, char* at) {
  std::string_view together;
  for (const NodeItem& item : items) {
    if (item.bytes.data() == together.data() + together.size()) {
      together = {together.data(), together.size() + item.bytes.size()};
      continue;
    }
    at = put(at, together.data(), together.size());
    together = item.bytes;
  }
  return put(at, together.data(), together.size());
}

}  // namespace

NodeDraft::NodeDraft(const TreeNode& node) : NodeFrame(node), items(node.size()) {
  for (size_t i = 0; i < items.size(); i++) {
    items[i].bytes = node.item(i);
    if (!leaf()) items[i].child = node.child(i);
  }
}

size_t NodeDraft::lower_bound(std::string_view entry) const {
  return first_not_below(entry, items.size(), [this](size_t i) { return items[i].bytes; });
}

size_t NodeDraft::encoded_bytes() const {
  size_t bytes = 0;
  for (const NodeItem& item : items) bytes += item.bytes.size();
  return kNodeHeadBytes + low.size() + high.size() + items.size() * encoded_item_bytes(leaf(), 0) +
         bytes;
}

std::string NodeDraft::encode(NodeNumber number) const {
  CHECK(items.size() <= UINT16_MAX && low.size() <= UINT16_MAX && high.size() <= UINT16_MAX);
  NodeHead head{};
  head.height = height;
  head.flags = high_bounded ? kNodeHighBounded : 0;
  head.count = static_cast<uint16_t>(items.size());
  head.low_bytes = static_cast<uint16_t>(low.size());
  head.high_bytes = static_cast<uint16_t>(high.size());
  std::string row(encoded_bytes(), '\0');
  char* at = put(row.data(), &head, sizeof(head));
  size_t end = 0;
  for (const NodeItem& item : items) {
    end += item.bytes.size();
    const auto encoded = static_cast<ItemEnd>(end);
    at = put(at, &encoded, sizeof(encoded));
  }
  CHECK(end <= UINT16_MAX);
  if (!leaf()) {
    for (const NodeItem& item : items) at = put(at, &item.child, sizeof(item.child));
  }
  at = put(at, low.data(), low.size());
  at = put(at, high.data(), high.size());
  at = put_bytes_of(items, at);
  CHECK(at == row.data() + row.size());
  const uint64_t checksum = checksum_of_node(number, row);
  memcpy(row.data(), &checksum, sizeof(checksum));
  return row;
}

std::string_view shortest_separator(std::string_view left, std::string_view right) {
  const auto end = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).second;
  return right.substr(0, static_cast<size_t>(end - right.begin()) + 1);
}

bool must_split(const NodeDraft& node) {
  return node.items.size() >= kItemsToSplit && node.encoded_bytes() > kNodeBytesInline;
}

void split(const NodeDraft& node, size_t added, SplitNode& out) {
  CHECK(added < node.items.size());
  CHECK(node.items.size() >= 2);
  const bool arrives_last = !node.high_bounded && added + 1 == node.items.size();
  const size_t cut = arrives_last ? node.items.size() - 1 : middle_of(node);
  out.separator = node.leaf() ? shortest_separator(node.items[cut - 1].bytes, node.items[cut].bytes)
                              : node.items[cut].bytes;
  out.left.height = out.right.height = node.height;
  out.left.low = node.low;
  out.left.high = out.right.low = out.separator;
  out.left.high_bounded = true;
  out.right.high = node.high;
  out.right.high_bounded = node.high_bounded;
  const auto middle = node.items.begin() + static_cast<ptrdiff_t>(cut);
  out.left.items.assign(node.items.begin(), middle);
  out.right.items.assign(middle, node.items.end());
  if (!node.leaf()) out.right.items.front().bytes = {};
}

}  // namespace rdmacc
