// SPDX-License-Identifier: Apache-2.0
#include "mase/data/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <new>
#include <vector>

#include "mase/base/error.h"
#include "mase/base/file.h"

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
  const InputFile file(path);
  Sha256 hash;
  std::vector<std::byte> chunk(size_t{1} << 20);
  for (uint64_t at = 0; at < file.size();) {
    const size_t size = std::min<uint64_t>(chunk.size(), file.size() - at);
    file.read(chunk.data(), size, at, path);
    hash.add({chunk.data(), size});
    at += size;
  }
  return hash.hex();
}

}  // namespace mase
