// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, memory maps, and writes that are never half done (temporary file, sync,
// rename). Every failure is an Error naming the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace mase {

std::string read_text_file(const std::string& path);

// Writes to a temporary file beside `path`, syncs it, renames it and syncs the folder. On any
// failure the old file, if there was one, is untouched and the temporary file is gone.
void write_file_atomically(const std::string& path, std::span<const std::byte> content);
void write_file_atomically(const std::string& path, const std::string& content);

// The same for content that is produced piece by piece: `produce` gets the open descriptor.
void write_file_atomically(const std::string& path, const std::function<void(int fd)>& produce);
void write_all(int fd, const void* data, size_t size, const std::string& path);

void make_directories(const std::string& path);

// A read-only map of a whole file, shared by everything that views into it.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

}  // namespace mase
