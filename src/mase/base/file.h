// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, memory maps, and writes that are never half done (temporary file, sync,
// rename). Every failure is an Error naming the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace mase {

// An open descriptor, closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// All of these bytes; a file that ends before them is an Error at `place`.
void read_at(int fd, std::byte* to, size_t size, uint64_t offset, const std::string& place);

// A file opened for reading. Only regular files: a folder, a pipe or a device in the place of a
// file is an Error, and never hangs the program.
class InputFile {
 public:
  explicit InputFile(const std::string& path);

  int fd() const { return fd_.get(); }
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  void read(std::byte* to, size_t size, uint64_t offset, const std::string& place) const {
    read_at(fd(), to, size, offset, place);
  }
  int release() { return fd_.release(); }  // the caller closes it

 private:
  std::string path_;
  Descriptor fd_;
  uint64_t size_ = 0;
};

std::string read_text_file(const std::string& path);

// Writes to a temporary file beside `path`, syncs it, renames it and syncs the folder. On any
// failure the old file, if there was one, is untouched and the temporary file is gone.
void write_file_atomically(const std::string& path, std::span<const std::byte> content);
void write_file_atomically(const std::string& path, const std::string& content);

// The same for content that is produced piece by piece: `produce` gets the open descriptor.
void write_file_atomically(const std::string& path, const std::function<void(int fd)>& produce);
void write_all(int fd, const void* data, size_t size, const std::string& path);

void make_directories(const std::string& path);

// The path of the mapped file that an address lies in, or null. May be called in a signal handler:
// a file that is cut while it is mapped answers with SIGBUS, and the program's handler says which.
const char* mapped_file_at(const void* address);

// Bytes of a mapped file read from the file itself, so that one that was cut meanwhile is an Error;
// false: they lie in no mapped file, and are there to stay.
bool read_if_mapped(std::byte* to, const std::byte* from, size_t size);

// The bytes of a whole file, shared by everything that views into it. Files of up to `largest_read`
// bytes are read: nobody can change or cut them under who looks. Larger ones are mapped.
class MappedFile {
 public:
  static constexpr uint64_t largest_read = uint64_t{256} << 20;
  static std::shared_ptr<const MappedFile> open(const std::string& path,
                                                uint64_t read_up_to = largest_read);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  void read(std::byte* to, std::span<const std::byte> part) const;  // of a map, by the file
  // Pages of a map count as the program's memory as long as they are there; what is needed again
  // comes back from the system's cache.
  void forget_pages() const;

 private:
  explicit MappedFile(const std::string& path) : file_(path), path_(path) {}
  bool enter();  // makes it known to mapped_file_at; false: there is no place left

  std::optional<InputFile> file_;  // of a map
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mase
