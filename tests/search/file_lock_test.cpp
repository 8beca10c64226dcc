// SPDX-License-Identifier: Apache-2.0
// The journal's lock: one holder, the dead's is taken over once, and an owner that was taken for
// dead leaves its successor's alone.
#include "mase/search/storages/file_lock.h"

#include <sys/stat.h>
#include <sys/time.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "support/support.h"

namespace mase::search::file_lock_test {
namespace {

namespace fs = std::filesystem;

void grow_old(const std::string& path) {
  const timeval times[2] = {{std::time(nullptr) - 100, 0}, {std::time(nullptr) - 100, 0}};
  ASSERT_EQ(::utimes(path.c_str(), times), 0);
}

TEST(FileLock, AnOwnerTakenForDeadLeavesTheNextOnesLock) {
  const std::string folder = test::temporary_folder();
  const std::string path = folder + "/journal.log";
  auto slow = std::make_unique<FileLock>(path);
  grow_old(path + ".lock");
  const FileLock next(path);  // takes it over
  slow.reset();
  EXPECT_TRUE(fs::exists(path + ".lock"));
}

TEST(FileLock, OfManyThatFindTheDeadsLockOneHoldsIt) {
  const std::string folder = test::temporary_folder();
  const std::string path = folder + "/journal.log";
  for (int round = 0; round < 20; ++round) {
    test::write(path + ".lock", "");
    grow_old(path + ".lock");
    std::atomic<int> inside = 0, most = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        const FileLock lock(path);
        const int now = ++inside;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        --inside;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(most, 1);
    EXPECT_FALSE(fs::exists(path + ".lock"));
  }
}

}  // namespace
}  // namespace mase::search::file_lock_test
