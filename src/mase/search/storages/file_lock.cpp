// SPDX-License-Identifier: Apache-2.0
#include "mase/search/storages/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

#include "mase/base/error.h"
#include "mase/base/file.h"

namespace mase::search {
namespace {

constexpr time_t seconds_of_the_dead = 30;

// Removes the lock file if it is the open one, and `only_stale` says what is asked besides.
void remove_lock(const std::string& guarded, const std::string& path, int fd, bool only_stale) {
  // Where that cannot be had, a look alone must do.
  const Descriptor turn(::open(guarded.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0666));
  if (turn.get() >= 0) ::flock(turn.get(), LOCK_EX);
  struct stat open {
  }, there{};
  if (::fstat(fd, &open) != 0 || ::stat(path.c_str(), &there) != 0) return;
  if (open.st_ino != there.st_ino || open.st_dev != there.st_dev) return;
  if (only_stale && ::time(nullptr) - there.st_mtime <= seconds_of_the_dead) return;
  ::unlink(path.c_str());
}

}  // namespace

FileLock::FileLock(const std::string& path) : path_(path), lock_path_(path + ".lock") {
  while (true) {
    fd_ = ::open(lock_path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd_ >= 0) return;
    if (errno != EEXIST) throw Error(lock_path_, std::strerror(errno));
    const Descriptor held(::open(lock_path_.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (held.get() >= 0 && ::fstat(held.get(), &status) == 0 &&
        ::time(nullptr) - status.st_mtime > seconds_of_the_dead)
      remove_lock(path_, lock_path_, held.get(), true);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

FileLock::~FileLock() {
  remove_lock(path_, lock_path_, fd_, false);
  ::close(fd_);
}

}  // namespace mase::search
