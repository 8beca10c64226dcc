// SPDX-License-Identifier: Apache-2.0
#include "mase/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <string_view>

#include "mase/base/cut_files.h"
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

// Not blocking: a pipe in the place of a file must not hang the program.
int open_for_reading(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) system_failure(path, "cannot open the file", errno);
  return fd;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void sync_folder_of(const std::string& path) {
  const Descriptor directory(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0)
    ::fsync(directory.get());  // some file systems cannot: the data are synced
}

// What is mapped, for mapped_file_at(): without locks, so that a signal handler may look. Files
// beyond the number of places are read, whatever their size.
struct MapSlot {
  std::atomic<bool> taken{false};
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<size_t> size{0};
  std::atomic<const char*> path{nullptr};
  std::atomic<const MappedFile*> file{nullptr};
};
std::array<MapSlot, 256> map_slots;

const MapSlot* slot_of(const void* address) {
  for (const MapSlot& slot : map_slots) {
    const std::byte* begin = slot.begin;
    if (begin && address >= begin && address < begin + slot.size) return &slot;
  }
  return nullptr;
}

// The file that was cut; no more of its name than fits. Written once until it is told.
constexpr size_t longest_cut_path = 1024;
std::array<char, longest_cut_path> cut_path;
enum CutState { whole, noting, noted };
std::atomic<int> cut_state{whole};

constexpr std::string_view temporary_mark = ".tmp-";
constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr size_t random_letters = 6;

bool is_temporary_name(std::string_view name) {
  if (name.size() <= temporary_mark.size() + random_letters) return false;
  const std::string_view end = name.substr(name.size() - random_letters);
  return name.substr(name.size() - random_letters - temporary_mark.size(), temporary_mark.size()) ==
             temporary_mark &&
         end.find_first_not_of(letters) == std::string_view::npos;
}

// Temporary files are locked while they are written: one that nobody holds was left by a process
// that was killed. Once for each folder that a process writes to.
void remove_abandoned(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  {
    const std::lock_guard lock(mutex);
    if (!seen.insert(folder).second) return;
  }
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; at != end && !ignored;
       at.increment(ignored)) {
    if (!is_temporary_name(at->path().filename().native())) continue;
    const Descriptor file(
        ::open(at->path().c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (file.get() >= 0 && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
      ::unlink(at->path().c_str());
  }
}

// Made by open() rather than mkstemp(), so that its permissions follow the user's umask.
Descriptor create_temporary(const std::string& path, std::string& name) {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    name = path;
    name += temporary_mark;
    for (size_t i = 0; i < random_letters; ++i) name += letters[random() % letters.size()];
    Descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0 && errno == EEXIST) continue;
    if (file.get() < 0) system_failure(path, "cannot create the file", errno);
    // Another process may have taken it for abandoned before it was locked. File systems without
    // locks have no cleaning up either.
    struct stat status {};
    const bool locked = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && ::fstat(file.get(), &status) == 0 && status.st_nlink > 0) return file;
  }
  throw Error(path, "cannot create a temporary file beside it");
}

// A terminal, /dev/null or a pipe, which is written to as it is: no file may come in its place.
// A negative descriptor: `path` is none of them.
Descriptor open_stream(const std::string& path) {
  struct stat status {};
  struct stat itself {};
  if (::stat(path.c_str(), &status) != 0) return Descriptor(-1);
  // /dev/stdout is a link to whatever that is, a file perhaps.
  const bool linked_device =
      path.rfind("/dev/", 0) == 0 && ::lstat(path.c_str(), &itself) == 0 && S_ISLNK(itself.st_mode);
  if (S_ISBLK(status.st_mode) || S_ISSOCK(status.st_mode))
    throw Error(path, "is not a regular file", "name another one");
  if (!S_ISCHR(status.st_mode) && !S_ISFIFO(status.st_mode) && !linked_device)
    return Descriptor(-1);
  Descriptor stream(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
  if (stream.get() < 0) system_failure(path, "cannot write the file", errno);
  return stream;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(const std::string& path) : path_(path), fd_(open_for_reading(path)) {
  struct stat status {};
  if (::fstat(fd(), &status) != 0) system_failure(path, "cannot read the file", errno);
  if (S_ISDIR(status.st_mode)) throw Error(path, "is a folder, not a file");
  if (!S_ISREG(status.st_mode))
    throw Error(path, "is not a regular file", "save what it holds as a file first");
  size_ = static_cast<uint64_t>(status.st_size);
}

void read_at(int fd, std::byte* to, size_t size, uint64_t offset, const std::string& place) {
  while (size > 0) {
    const ssize_t got = ::pread(fd, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) system_failure(place, "cannot read the file", errno);
    if (got == 0) throw Error(place, "the file ends too early", "it was cut short or damaged");
    to += got;
    size -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
}

std::string read_text_file(const std::string& path) {
  const InputFile file(path);
  std::string text;
  char chunk[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.fd(), chunk, sizeof chunk);
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
  if (const Descriptor stream = open_stream(path); stream.get() >= 0) return produce(stream.get());
  remove_abandoned(folder_of(path));
  std::string temporary;
  const Descriptor file = create_temporary(path, temporary);
  try {
    produce(file.get());
    if (::fsync(file.get()) != 0) system_failure(path, "cannot write the file", errno);
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

const char* mapped_file_at(const void* address) {
  const MapSlot* slot = slot_of(address);
  return slot ? slot->path.load() : nullptr;
}

bool fill_cut_page(void* address) {
  const MapSlot* slot = slot_of(address);
  if (!slot) return false;
  const auto page = static_cast<uintptr_t>(::getpagesize());
  const uintptr_t at = reinterpret_cast<uintptr_t>(address) / page * page;
  if (::mmap(reinterpret_cast<void*>(at), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0) == MAP_FAILED)
    return false;
  int expected = whole;
  if (cut_state.compare_exchange_strong(expected, noting)) {
    const char* path = slot->path;
    size_t i = 0;
    for (; i + 1 < longest_cut_path && path[i]; ++i) cut_path[i] = path[i];
    cut_path[i] = 0;
    cut_state = noted;
  }
  return true;
}

void throw_if_cut() {
  if (cut_state != noted) return;
  const std::string path = cut_path.data();
  cut_state = whole;
  throw Error(path, "became shorter while it was read", "try again when nobody writes it");
}

bool read_if_mapped(std::byte* to, const std::byte* from, size_t size) {
  const MapSlot* slot = slot_of(from);
  if (!slot) return false;
  slot->file.load()->read(to, {from, size});
  return true;
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, uint64_t read_up_to) {
  std::shared_ptr<MappedFile> whole(new MappedFile(path));
  const auto size = static_cast<size_t>(whole->file_->size());
  if (size == 0) return whole;  // mmap refuses empty files
  const auto take = [&](int protection, int flags, int fd) {
    void* data = ::mmap(nullptr, size, protection, flags, fd, 0);
    if (data == MAP_FAILED) system_failure(path, "cannot map the file", errno);
    whole->data_ = static_cast<const std::byte*>(data);
    whole->size_ = size;
    return static_cast<std::byte*>(data);
  };
  if (size > read_up_to) {
    take(PROT_READ, MAP_PRIVATE, whole->file_->fd());
    if (whole->enter()) return whole;
    ::munmap(const_cast<std::byte*>(whole->data_), size);
  }
  std::byte* memory = take(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  whole->file_->read(memory, size, 0, path);
  whole->file_.reset();
  return whole;
}

void MappedFile::read(std::byte* to, std::span<const std::byte> part) const {
  file_->read(to, part.size(), static_cast<uint64_t>(part.data() - data_), path_);
}

void MappedFile::forget_pages() const {
  if (file_ && data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

bool MappedFile::enter() {
  for (MapSlot& slot : map_slots) {
    if (slot.taken.exchange(true)) continue;
    slot.size = size_;
    slot.path = path_.c_str();
    slot.file = this;
    slot.begin = data_;
    return true;
  }
  return false;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  for (MapSlot& slot : map_slots) {
    if (slot.begin != data_) continue;
    slot.begin = nullptr;
    slot.taken = false;
    break;
  }
  ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace mase
