// SPDX-License-Identifier: Apache-2.0
#include "mase/data/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "mase/base/error.h"

namespace mase {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  MASE_CHECK(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr) == 1,
             "SHA-256 is not available");
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

void Sha256::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  unsigned char digest[32];
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_), digest, nullptr);
  return fmt::format("{:02x}", fmt::join(digest, digest + 32, ""));
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

std::string sha256_of_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(path, fmt::format("cannot open the file: {}", std::strerror(errno)));
  Sha256 hash;
  std::vector<std::byte> chunk(size_t{1} << 20);
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int reason = errno;
      ::close(fd);
      if (got < 0)
        throw Error(path, fmt::format("cannot read the file: {}", std::strerror(reason)));
      return hash.hex();
    }
    hash.add({chunk.data(), static_cast<size_t>(got)});
  }
}

}  // namespace mase
