#include "engine/workloads/tpcc_random.h"

namespace rdmacc::tpcc {

uint64_t non_uniform(Random& random, uint64_t a, uint64_t c, uint64_t least, uint64_t most) {
  const uint64_t some = random.below(a + 1);
  return ((some | random.between(least, most)) + c) % (most - least + 1) + least;
}

uint64_t draw_customer(Random& random, uint32_t customers) {
  return non_uniform(random, 1'023, kCustomerConstant, 1, customers);
}

uint64_t draw_item(Random& random, uint32_t items) {
  return non_uniform(random, 8'191, kItemConstant, 1, items);
}

uint64_t draw_last_name(Random& random, uint64_t constant, uint32_t customers) {
  return non_uniform(random, 255, constant, 0, kLastNames - 1) % std::min(kLastNames, customers);
}

std::string last_name(uint64_t number) {
  CHECK(number < kLastNames);
  constexpr std::array<const char*, 10> kSyllables = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                                      "ESE", "ANTI",  "CALLY", "ATION", "EING"};
  return std::string(kSyllables[number / 100]) + kSyllables[number / 10 % 10] +
         kSyllables[number % 10];
}

std::string letters(Random& random, uint64_t least, uint64_t most) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string text(random.between(least, most), ' ');
  for (char& letter : text) letter = kLetters[random.below(kLetters.size())];
  return text;
}

std::string digits(Random& random, uint64_t count) {
  std::string text(count, ' ');
  for (char& digit : text) digit = static_cast<char>('0' + random.below(10));
  return text;
}

std::string item_text(Random& random) {
  constexpr std::string_view kOriginal = "ORIGINAL";
  std::string text = letters(random, 26, 50);
  if (random.percent(10)) {
    text.replace(random.below(text.size() - kOriginal.size() + 1), kOriginal.size(), kOriginal);
  }
  return text;
}

Address random_address(Random& random) {
  Address address;
  set_text(address.street_1, letters(random, 10, 20));
  set_text(address.street_2, letters(random, 10, 20));
  set_text(address.city, letters(random, 10, 20));
  set_text(address.state, letters(random, 2, 2));
  set_text(address.zip, digits(random, 4) + "11111");
  return address;
}

uint32_t random_tax(Random& random) { return static_cast<uint32_t>(random.below(2'001)); }

}  // namespace rdmacc::tpcc
