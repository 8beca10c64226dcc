// SPDX-License-Identifier: Apache-2.0
// SHA-256 of memory and of files: what identifies data in records and checks downloads.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace mase {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::span<const std::byte> bytes);
  std::string hex();  // ends it

 private:
  void* context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_of_file(const std::string& path);

}  // namespace mase
