#include "rdma/bootstrap/cluster_secret.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace rdmacc {
namespace {

Status invalid(std::string what) { return Status(Code::kInvalidArgument, std::move(what)); }

struct FileDescriptor {
  int fd;
  ~FileDescriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

Result<SecretKey> load_cluster_key(const std::string& secret_file, const std::string& cluster) {
  const std::string name = "secret file " + secret_file;
  const FileDescriptor file{open(secret_file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return invalid(name + " cannot be opened");
  struct stat attributes;
  if (fstat(file.fd, &attributes) != 0) return Status::from_errno("fstat");
  if (!S_ISREG(attributes.st_mode)) return invalid(name + " is not a file");
  if (attributes.st_uid != geteuid() && attributes.st_uid != 0) {
    return invalid(name + " belongs to another user");
  }
  if ((attributes.st_mode & 07177) != 0) return invalid(name + " must have mode 0600");
  std::vector<unsigned char> secret(kSecretBytesMax + 1);
  size_t length = 0;
  while (length < secret.size()) {
    const ssize_t got = read(file.fd, secret.data() + length, secret.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::from_errno("read of the secret file");
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  Status status;
  if (length < kSecretBytesMin) {
    status = invalid(name + " holds less than " + std::to_string(kSecretBytesMin) + " bytes");
  } else if (length > kSecretBytesMax) {
    status = invalid(name + " is too long");
  }
  SecretKey key{};
  if (status.ok()) {
    const std::string label = "rdmacc members 1 " + cluster;
    unsigned int bytes = 0;
    CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(length),
               reinterpret_cast<const unsigned char*>(label.data()), label.size(), key.data(),
               &bytes) != nullptr &&
          bytes == key.size());
  }
  OPENSSL_cleanse(secret.data(), secret.size());
  if (!status.ok()) return status;
  return key;
}

Status create_secret_file(const std::string& path) {
  const FileDescriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (file.fd < 0) return invalid("secret file " + path + " cannot be created");
  auto secret = random_secret<std::array<unsigned char, 48>>();
  const ssize_t written = write(file.fd, secret.data(), secret.size());
  OPENSSL_cleanse(secret.data(), secret.size());
  if (written != static_cast<ssize_t>(secret.size())) {
    return Status::from_errno("write of the secret file");
  }
  return Status();
}

SecretKey keyed_digest(const SecretKey& key, std::string_view label,
                       std::span<const std::byte> first, std::span<const std::byte> second) {
  std::vector<unsigned char> text(label.begin(), label.end());
  for (const std::span<const std::byte> part : {first, second}) {
    const auto* start = reinterpret_cast<const unsigned char*>(part.data());
    text.insert(text.end(), start, start + part.size());
  }
  SecretKey digest{};
  unsigned int bytes = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(), text.size(),
             digest.data(), &bytes) != nullptr &&
        bytes == digest.size());
  return digest;
}

bool same_secret(std::span<const unsigned char> a, std::span<const unsigned char> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_random(std::span<unsigned char> bytes) {
  CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
}

}  // namespace rdmacc
