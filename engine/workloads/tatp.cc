#include "engine/workloads/tatp.h"

#include <bit>

#include "engine/workloads/bulk_load.h"

namespace rdmacc {
namespace {

using tatp::kForwardingHours;
using tatp::kForwardingsMax;
using tatp::kTypes;

constexpr uint32_t kFirstTableNumber = 61;
constexpr uint64_t kSubscribersPerPart = 250;

constexpr std::array kSettings = {
    WorkloadSetting{"records", "subscribers", "subscribers", 1, 4'294'967'296, 100'000},
    kHistorySetting,
};

Result<std::unique_ptr<Workload>> make_tatp(const WorkloadSettings& settings,
                                            const WorkloadCluster&) {
  TatpOptions options;
  options.subscribers = settings.number("records");
  options.history = settings.number32("history");
  return Result<std::unique_ptr<Workload>>(std::make_unique<Tatp>(options));
}

uint8_t draw_byte(Random& random) { return static_cast<uint8_t>(random.below(256)); }
uint32_t draw_location(Random& random) { return static_cast<uint32_t>(random.next()); }

// So many of the first `of` numbers, each with the same chance, as bits.
uint32_t draw_subset(Random& random, uint64_t count, uint64_t of) {
  uint32_t chosen = 0;
  for (uint64_t i = 0; i < of; ++i) {
    if (random.below(of - i) >= count) continue;
    chosen |= 1u << i;
    --count;
  }
  return chosen;
}

// Which rows a subscriber has at first: one to four types of access and of facilities, and for each
// of these none to three forwardings.
struct Loaded {
  explicit Loaded(uint64_t subscriber) : random(subscriber * 2 + 1) {
    accesses = draw_subset(random, random.between(1, kTypes), kTypes);
    facilities = draw_subset(random, random.between(1, kTypes), kTypes);
    for (uint64_t f = 0; f < kTypes; ++f) {
      if ((facilities >> f & 1) == 0) continue;
      forwardings[f] = draw_subset(random, random.below(kForwardingsMax + 1), kForwardingsMax);
    }
  }

  Random random;  // for what the rows hold
  uint32_t accesses = 0, facilities = 0;
  std::array<uint32_t, kTypes> forwardings{};
};

}  // namespace

namespace tatp {

Digits digits_of(uint64_t subscriber) {
  Digits digits;
  for (size_t i = digits.size(); i > 0; --i, subscriber /= 10) {
    digits[i - 1] = static_cast<char>('0' + subscriber % 10);
  }
  return digits;
}

uint32_t loaded_forwardings(uint64_t subscriber) {
  uint32_t count = 0;
  for (const uint32_t of : Loaded(subscriber).forwardings) {
    count += static_cast<uint32_t>(std::popcount(of));
  }
  return count;
}

}  // namespace tatp

const WorkloadKind kTatpKind = {"tatp", "TATP's seven transactions in its mix", kSettings,
                                make_tatp};

Tatp::Tatp(const TatpOptions& options) : options_(options) { CHECK(options.subscribers >= 1); }

std::vector<TableSpec> Tatp::table_specs() const {
  const std::array<uint64_t, tatp::kTableCount> bytes = {
      record_bytes(sizeof(NumberKey), sizeof(tatp::SubscriberRow)),
      record_bytes(sizeof(tatp::Digits), sizeof(tatp::SubscriberByNumberRow)),
      record_bytes(sizeof(NumberKey), sizeof(tatp::AccessInfoRow)),
      record_bytes(sizeof(NumberKey), sizeof(tatp::SpecialFacilityRow)),
      record_bytes(sizeof(NumberKey), sizeof(tatp::CallForwardingRow))};
  std::vector<TableSpec> specs;
  for (uint32_t t = 0; t < tatp::kTableCount; ++t) {
    specs.push_back(native_table(kFirstTableNumber + t, bytes[t], options_.history));
  }
  return specs;
}

// ---- Loading

uint64_t Tatp::load_parts() const { return options_.subscribers / kSubscribersPerPart + 1; }

Status Tatp::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  BulkLoad rows(session, options);
  const LoadPart subscribers = part_of_load(options_.subscribers, part, parts);
  for (uint64_t s = subscribers.begin + 1; s <= subscribers.end; ++s) {
    RDMACC_RETURN_IF_ERROR(load_subscriber(rows, s));
  }
  return rows.finish();
}

Status Tatp::load_subscriber(BulkLoad& rows, uint64_t s) const {
  Loaded loaded(s);
  Random& random = loaded.random;
  tatp::SubscriberRow row;
  row.number = tatp::digits_of(s);
  for (uint8_t& bit : row.bits) bit = static_cast<uint8_t>(random.below(2));
  for (uint8_t& hex : row.hexes) hex = static_cast<uint8_t>(random.below(16));
  for (uint8_t& byte : row.bytes) byte = draw_byte(random);
  row.msc_location = draw_location(random);
  row.vlr_location = draw_location(random);
  RDMACC_RETURN_IF_ERROR(
      rows.add(table(tatp::kSubscriber), tatp::subscriber_key(s), bytes_of(row)));
  RDMACC_RETURN_IF_ERROR(rows.add(table(tatp::kSubscriberByNumber), tatp::key_of(row.number),
                                  bytes_of(tatp::SubscriberByNumberRow{s})));
  for (uint64_t type = 1; type <= kTypes; ++type) {
    const NumberKey key = tatp::typed_key(s, type);
    if ((loaded.accesses >> (type - 1) & 1) != 0) {
      tatp::AccessInfoRow access{draw_byte(random), draw_byte(random), {}, {}};
      draw_letters(random, access.data3);
      draw_letters(random, access.data4);
      RDMACC_RETURN_IF_ERROR(rows.add(table(tatp::kAccessInfo), key, bytes_of(access)));
    }
    if ((loaded.facilities >> (type - 1) & 1) != 0) {
      tatp::SpecialFacilityRow facility{static_cast<uint8_t>(random.percent(85) ? 1 : 0),
                                        draw_byte(random),
                                        draw_byte(random),
                                        {}};
      draw_letters(random, facility.data_b);
      RDMACC_RETURN_IF_ERROR(rows.add(table(tatp::kSpecialFacility), key, bytes_of(facility)));
    }
    for (uint64_t f = 0; f < kForwardingsMax; ++f) {
      if ((loaded.forwardings[type - 1] >> f & 1) == 0) continue;
      const uint64_t start = f * kForwardingHours;
      const tatp::CallForwardingRow forwarding{
          static_cast<uint8_t>(start + random.between(1, kForwardingHours)),
          tatp::digits_of(random.between(1, options_.subscribers))};
      RDMACC_RETURN_IF_ERROR(rows.add(table(tatp::kCallForwarding),
                                      tatp::forwarding_key(s, type, start), bytes_of(forwarding)));
    }
  }
  return Status();
}

// ---- Drawing

// Not uniformly: the constant depends on how many subscribers there are.
uint64_t Tatp::draw_subscriber(Random& random) const {
  const uint64_t n = options_.subscribers;
  const uint64_t a = n <= 1'000'000 ? 65'535 : n <= 10'000'000 ? 1'048'575 : 2'097'151;
  return (random.below(a + 1) | random.between(1, n)) % n + 1;
}

TxnInputs Tatp::draw(Random& random) const {
  constexpr std::array<uint64_t, 7> kUpTo{35, 45, 80, 82, 96, 98, 100};
  TxnInputs inputs;
  const uint64_t drawn = random.below(100);
  while (drawn >= kUpTo[inputs.kind]) ++inputs.kind;
  inputs.add(draw_subscriber(random));
  inputs.add(random.between(1, kTypes));
  const uint64_t start = random.below(kForwardingsMax) * kForwardingHours;
  inputs.add(start);
  // A new forwarding ends after it starts; a call that is looked for, at any hour.
  const bool inserts = inputs.kind == kInsertCallForwarding;
  inputs.add(inserts ? start + random.between(1, kForwardingHours) : random.between(1, 24));
  inputs.add(inserts ? random.between(1, options_.subscribers) : draw_location(random));
  return inputs;
}

bool Tatp::knows(const TxnInputs& inputs) const {
  if (inputs.kind > kDeleteCallForwarding || inputs.count != kValues) return false;
  const auto& values = inputs.values;
  return values[kSubscriber] >= 1 && values[kSubscriber] <= options_.subscribers &&
         values[kType] >= 1 && values[kType] <= kTypes && values[kStart] % kForwardingHours == 0 &&
         values[kStart] < kForwardingsMax * kForwardingHours && values[kEnd] <= 24;
}

}  // namespace rdmacc
