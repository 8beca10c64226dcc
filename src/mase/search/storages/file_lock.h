// SPDX-License-Identifier: Apache-2.0
// FILE.lock, as Optuna's journal has it: made so that only one maker can succeed, on network disks
// too. One older than half a minute was left by the dead and is taken over. Whoever removes a lock
// file, its owner or who takes it over, holds the file it guards by flock meanwhile and looks
// whether it is still the one that is meant: two can never take over the same one, and an owner
// that was taken for dead leaves its successor's alone.
#pragma once

#include <string>

namespace mase::search {

class FileLock {
 public:
  explicit FileLock(const std::string& path);  // of the file that it guards; waits
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string path_, lock_path_;
  int fd_ = -1;  // open as long as it is held: no other file has its number
};

}  // namespace mase::search
