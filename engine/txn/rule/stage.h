#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "engine/api/plain_data.h"
#include "engine/cluster/gate.h"
#include "engine/txn/rule/protocol_list.h"
#include "rdma/base/status.h"

// The stages of a transaction, the primitive of each (the hybrid code, docs/protocols.md §1) and
// the protocols' numbers and names.

namespace rdmacc {

// The values are the bits of the hybrid code (RCC's own).
enum class Stage : uint16_t {
  kLock = 1,
  kRead = 2,
  kLog = 4,
  kRelease = 8,
  kCommit = 16,
  kValidate = 32,
  kRenew = 64,
  kBroadcast = 128,
  kForward = 256,
};
constexpr uint32_t kStageCount = 9;
constexpr uint32_t kStageCodeMax = 511;
constexpr uint32_t stage_index(Stage stage) {
  return static_cast<uint32_t>(__builtin_ctz(static_cast<unsigned>(stage)));
}
const char* stage_name(Stage stage);  // "lock"

enum class Primitive : uint8_t { kRpc = 0, kOneSided = 1 };
const char* primitive_name(Primitive primitive);  // "rpc", "one_sided"

#define RDMACC_NUMBERED(id, name, number) k##id = number,
enum class Protocol : ProtocolId { RDMACC_PROTOCOLS(RDMACC_NUMBERED) };
#undef RDMACC_NUMBERED
#define RDMACC_COUNTED(id, name, number) +1
constexpr uint32_t kProtocolCount = RDMACC_PROTOCOLS(RDMACC_COUNTED);
#undef RDMACC_COUNTED
const char* protocol_name(Protocol protocol);                   // "nowait"
std::optional<Protocol> parse_protocol(std::string_view name);  // any case

const char* lock_mode_name(LockMode mode);                       // "exclusive"
std::optional<LockMode> parse_lock_mode(std::string_view name);  // any case

// Which primitive carries out each stage: a run-time value.
class StagePlan {
 public:
  constexpr StagePlan() = default;  // all one-sided
  constexpr explicit StagePlan(uint16_t code) : code_(code) {}

  // "one_sided", "rpc", a code 0 .. 511, or "lock=rpc,log=one_sided,…" (stages that are not named
  // are one-sided). kInvalidArgument says what is wrong and what is possible.
  static Result<StagePlan> parse(std::string_view text);

  constexpr uint16_t code() const { return code_; }
  constexpr Primitive of(Stage stage) const {
    return (code_ & static_cast<uint16_t>(stage)) != 0 ? Primitive::kOneSided : Primitive::kRpc;
  }
  bool asks_owners(Stage stage) const { return of(stage) == Primitive::kRpc; }
  // The code with the stages that the protocol does not have cleared (nowait: 29 when all
  // one-sided).
  StagePlan canonical(uint16_t protocol_stages) const {
    return StagePlan(static_cast<uint16_t>(code_ & protocol_stages));
  }
  // "one_sided", "rpc" or "lock=one_sided,log=rpc,…" over the stages in `protocol_stages`.
  std::string to_string(uint16_t protocol_stages) const;

 private:
  uint16_t code_ = kStageCodeMax;
};

}  // namespace rdmacc
