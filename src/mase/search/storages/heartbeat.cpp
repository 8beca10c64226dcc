// SPDX-License-Identifier: Apache-2.0
#include "mase/search/storages/heartbeat.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <vector>

#include "mase/base/text.h"

namespace mase::search {
namespace {

// When a process was started, in ticks since the machine was: field 22 of its line in /proc. Empty
// if there is no such process.
std::string start_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(file, line)) return {};
  // The second field is a name in parentheses, which may hold anything.
  const std::vector<std::string> fields = split(line.substr(line.rfind(')') + 1), ' ');
  constexpr size_t state = 1, start = 20;
  if (fields.size() <= start || fields[state] == "Z") return {};
  return fields[start];
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

std::string this_process() {
  const std::string pid = std::to_string(::getpid());
  return fmt::format("{}/{}/{}", host_name(), pid, start_of(pid));
}

bool may_live(const std::string& process) {
  const std::vector<std::string> parts = split(process, '/');
  if (parts.size() != 3 || parts[0].empty() || parts[0] != host_name()) return true;
  const std::string own = std::to_string(::getpid());
  if (start_of(own).empty()) return true;  // nothing can be known here
  return start_of(parts[1]) == parts[2];
}

Heartbeat::Heartbeat(std::function<std::unique_ptr<SqlConnection>()> connect, double seconds)
    : connect_(std::move(connect)), seconds_(seconds), thread_([this] { beat(); }) {}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Heartbeat::add(int64_t trial) {
  std::lock_guard lock(mutex_);
  trials_.insert(trial);
}

void Heartbeat::remove(int64_t trial) {
  std::lock_guard lock(mutex_);
  trials_.erase(trial);
}

void Heartbeat::beat() {
  std::unique_ptr<SqlConnection> connection;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(seconds_), [this] { return over_; })) {
    if (trials_.empty()) continue;
    const std::vector<int64_t> trials(trials_.begin(), trials_.end());
    lock.unlock();
    try {
      if (!connection) connection = connect_();
      connection->run("UPDATE trial_heartbeats SET heartbeat = CURRENT_TIMESTAMP WHERE " +
                          connection->among("trial_id", 1),
                      {connection->list(trials)});
    } catch (const std::exception&) {
      // Nobody here to tell: the search itself meets a database that is gone. The next beat tries
      // anew.
      connection.reset();
    }
    lock.lock();
  }
}

}  // namespace mase::search
