#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "rdma/base/status.h"

// The cluster's shared secret and what is made of it and of chance; all cryptography is OpenSSL's.

namespace rdmacc {

using SecretKey = std::array<unsigned char, 32>;
using RandomToken = std::array<unsigned char, 16>;

constexpr size_t kSecretBytesMin = 32;
constexpr size_t kSecretBytesMax = 64 * 1024;

// The members' key: derived from the secret file and the cluster's name, so that two clusters
// with one secret do not know each other. kInvalidArgument unless the file belongs to this user
// (or root), has mode 0600 or 0400 and holds at least kSecretBytesMin bytes.
Result<SecretKey> load_cluster_key(const std::string& secret_file, const std::string& cluster);

// A new secret file of mode 0600; kInvalidArgument if it exists. For throw-away clusters.
Status create_secret_file(const std::string& path);

// HMAC-SHA-256 over the concatenation.
SecretKey keyed_digest(const SecretKey& key, std::string_view label,
                       std::span<const std::byte> first, std::span<const std::byte> second = {});
// In constant time.
bool same_secret(std::span<const unsigned char> a, std::span<const unsigned char> b);
// From the operating system's generator; ends the process when there is no entropy.
void fill_random(std::span<unsigned char> bytes);

template <typename Bytes>
Bytes random_secret() {
  Bytes bytes;
  fill_random(bytes);
  return bytes;
}

}  // namespace rdmacc
