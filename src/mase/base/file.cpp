// SPDX-License-Identifier: Apache-2.0
#include "mase/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "mase/base/error.h"

namespace mase {
namespace {

[[noreturn]] void system_failure(const std::string& path, const std::string& what, int code) {
  std::string remedy;
  if (code == ENOSPC || code == EDQUOT) remedy = "free some space or choose another folder";
  if (code == EACCES || code == EPERM || code == EROFS)
    remedy = "check the permissions or choose another folder";
  throw Error(path, fmt::format("{}: {}", what, std::strerror(code)), remedy);
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// `flags` may add O_NONBLOCK, so that a pipe in the place of a file does not hang the program.
int open_for_reading(const std::string& path, int flags = 0) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) system_failure(path, "cannot open the file", errno);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || S_ISDIR(status.st_mode)) {
    ::close(fd);
    throw Error(path, "is a folder, not a file");
  }
  return fd;
}

void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Descriptor directory{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY)};
  if (directory.fd >= 0) ::fsync(directory.fd);  // some file systems cannot: the data are synced
}

}  // namespace

std::string read_text_file(const std::string& path) {
  Descriptor file{open_for_reading(path)};
  std::string text;
  char chunk[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) system_failure(path, "cannot read the file", errno);
    if (got == 0) return text;
    text.append(chunk, static_cast<size_t>(got));
  }
}

void write_all(int fd, const void* data, size_t size, const std::string& path) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) system_failure(path, "cannot write the file", errno);
    at += written;
    size -= static_cast<size_t>(written);
  }
}

void write_file_atomically(const std::string& path, const std::function<void(int fd)>& produce) {
  std::string temporary = path + ".tmp-XXXXXX";
  Descriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};
  if (file.fd < 0) system_failure(path, "cannot create the file", errno);
  try {
    produce(file.fd);
    if (::fchmod(file.fd, 0644) != 0 || ::fsync(file.fd) != 0)
      system_failure(path, "cannot write the file", errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      system_failure(path, "cannot write the file", errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder_of(path);
}

void write_file_atomically(const std::string& path, std::span<const std::byte> content) {
  write_file_atomically(path, [&](int fd) { write_all(fd, content.data(), content.size(), path); });
}

void write_file_atomically(const std::string& path, const std::string& content) {
  write_file_atomically(path, std::as_bytes(std::span(content)));
}

void make_directories(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) system_failure(path, "cannot create the folder", failure.value());
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file{open_for_reading(path, O_NONBLOCK)};
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) system_failure(path, "cannot read the file", errno);
  if (!S_ISREG(status.st_mode)) throw Error(path, "is not a regular file");
  std::shared_ptr<MappedFile> map(new MappedFile);
  map->path_ = path;
  map->size_ = static_cast<size_t>(status.st_size);
  if (map->size_ == 0) return map;  // mmap refuses empty files
  void* data = ::mmap(nullptr, map->size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) {
    map->size_ = 0;
    system_failure(path, "cannot map the file", errno);
  }
  map->data_ = static_cast<const std::byte*>(data);
  return map;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace mase
