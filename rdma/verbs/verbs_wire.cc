#include "rdma/verbs/verbs_wire.h"

#include <cstring>
#include <type_traits>

namespace rdmacc {
namespace {

constexpr uint16_t kThreadsMax = 1024;

template <typename T>
void append(Membership::Bytes& bytes, const T& object) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* start = reinterpret_cast<const std::byte*>(&object);
  bytes.insert(bytes.end(), start, start + sizeof(T));
}

template <typename T>
void append_all(Membership::Bytes& bytes, const std::vector<T>& objects) {
  for (const T& object : objects) append(bytes, object);
}

// Takes objects off the front; false when there are not that many bytes.
template <typename T>
bool take(std::span<const std::byte>& bytes, T* object) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(object, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return true;
}

template <typename T>
bool take_all(std::span<const std::byte>& bytes, size_t count, std::vector<T>* objects) {
  if (bytes.size() / sizeof(T) < count) return false;
  objects->resize(count);
  for (T& object : *objects) {
    if (!take(bytes, &object)) return false;
  }
  return true;
}

bool ours(uint32_t magic, uint16_t version) {
  return magic == kVerbsMagic && version == kVerbsVersion;
}

}  // namespace

Membership::Bytes VerbsRequest::encode() {
  CHECK(queue_pairs.size() <= kVerbsQueuePairsMax);
  header.queue_pairs = static_cast<uint16_t>(queue_pairs.size());
  Membership::Bytes bytes;
  append(bytes, header);
  append_all(bytes, queue_pairs);
  return bytes;
}

std::optional<VerbsRequest> VerbsRequest::decode(std::span<const std::byte> bytes) {
  VerbsRequest request;
  if (!take(bytes, &request.header)) return std::nullopt;
  const VerbsRequestHeader& header = request.header;
  const bool connects = header.kind == VerbsRequestKind::kConnect;
  if (!ours(header.magic, header.version) || header.queue_pairs > kVerbsQueuePairsMax ||
      (!connects && header.kind != VerbsRequestKind::kLookup) ||
      connects != (header.queue_pairs > 0) || header.datagrams.incarnation == 0) {
    return std::nullopt;
  }
  if (!take_all(bytes, header.queue_pairs, &request.queue_pairs) || !bytes.empty()) {
    return std::nullopt;
  }
  return request;
}

Membership::Bytes VerbsAnswer::encode() {
  CHECK(queue_pairs.size() <= kVerbsQueuePairsMax && domains.size() <= kVerbsDomainsMax);
  CHECK(threads.size() <= kThreadsMax);
  header.queue_pairs = static_cast<uint16_t>(queue_pairs.size());
  header.domains = static_cast<uint16_t>(domains.size());
  header.threads = static_cast<uint16_t>(threads.size());
  Membership::Bytes bytes;
  append(bytes, header);
  append_all(bytes, queue_pairs);
  append_all(bytes, domains);
  append_all(bytes, threads);
  return bytes;
}

std::optional<VerbsAnswer> VerbsAnswer::decode(std::span<const std::byte> bytes) {
  VerbsAnswer answer;
  if (!take(bytes, &answer.header)) return std::nullopt;
  const VerbsAnswerHeader& header = answer.header;
  if (!ours(header.magic, header.version) || header.queue_pairs > kVerbsQueuePairsMax ||
      header.domains > kVerbsDomainsMax || header.threads > kThreadsMax) {
    return std::nullopt;
  }
  if (!take_all(bytes, header.queue_pairs, &answer.queue_pairs) ||
      !take_all(bytes, header.domains, &answer.domains) ||
      !take_all(bytes, header.threads, &answer.threads) || !bytes.empty()) {
    return std::nullopt;
  }
  return answer;
}

bool VerbsAnswer::covers(uint64_t region_bytes) const {
  uint64_t end = 0;
  for (const VerbsDomainKey& domain : domains) {
    if (domain.offset != end || domain.bytes == 0 || domain.bytes > region_bytes - end) {
      return false;
    }
    end += domain.bytes;
  }
  return end == region_bytes;
}

}  // namespace rdmacc
