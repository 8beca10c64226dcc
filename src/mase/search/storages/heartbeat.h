// SPDX-License-Identifier: Apache-2.0
// Signs of life of the trials that a process runs, from a thread and a connection of their own:
// training must not hold them up.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "mase/search/storages/sql_storage.h"

namespace mase::search {

class Heartbeat {
 public:
  Heartbeat(std::function<std::unique_ptr<SqlConnection>()> connect, double seconds);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void add(int64_t trial);
  void remove(int64_t trial);

 private:
  void beat();

  std::function<std::unique_ptr<SqlConnection>()> connect_;
  double seconds_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::set<int64_t> trials_;
  std::thread thread_;
};

// This process among all: "host/pid/start". Kept with its trials, so that others on the same
// machine know at once when it is gone.
std::string this_process();
// False only if it ran on this machine and no longer does.
bool may_live(const std::string& process);

}  // namespace mase::search
