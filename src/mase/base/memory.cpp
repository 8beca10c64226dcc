// SPDX-License-Identifier: Apache-2.0
#include "mase/base/memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "mase/base/text.h"

namespace mase {
namespace {

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;  // version 2 writes "max" where there is no limit
  return {};
}

// The number behind a word: "inactive_file 4096".
std::optional<uint64_t> number_behind(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    uint64_t number = 0;
    if (words >> word && word == wanted && words >> number) return number;
  }
  return {};
}

void take_least(std::optional<uint64_t>& least, const std::optional<uint64_t>& other) {
  if (other) least = least ? std::min(*least, *other) : *other;
}

struct GroupFiles {
  const char *limit, *usage, *reclaimable;
};
constexpr GroupFiles version_1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles version_2{"memory.max", "memory.current", "inactive_file"};

// What one group leaves. Files that it read and nobody uses are given up when memory is short.
std::optional<uint64_t> left_in(const std::string& folder, const GroupFiles& files) {
  const auto limit = number_in(folder + "/" + files.limit);
  if (!limit) return {};
  const uint64_t usage = number_in(folder + "/" + files.usage).value_or(0);
  const uint64_t files_read = number_behind(folder + "/memory.stat", files.reclaimable).value_or(0);
  const uint64_t used = usage - std::min(usage, files_read);
  return *limit - std::min(*limit, used);
}

// The group and those above it, each of which has a limit of its own. Inside a container the path
// may be the host's, of which only the end of the walk is there.
std::optional<uint64_t> left_above(const std::string& mount, std::string path,
                                   const GroupFiles& files) {
  std::optional<uint64_t> least;
  while (true) {
    take_least(least, left_in(mount + path, files));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.erase(slash);
  }
}

}  // namespace

std::optional<uint64_t> available_memory(const std::string& root) {
  std::optional<uint64_t> least;
  if (const auto kilobytes = number_behind(root + "/proc/meminfo", "MemAvailable:"))
    least = *kilobytes << 10;
  const std::string groups = root + "/sys/fs/cgroup";
  std::ifstream own(root + "/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {  // "4:cpu,memory:/path", "0::/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    const std::vector<std::string> kinds = split(line.substr(first + 1, second - first - 1), ',');
    if (first + 1 == second) {
      take_least(least, left_above(groups, path, version_2));
      take_least(least, left_above(groups + "/unified", path, version_2));
    } else if (std::count(kinds.begin(), kinds.end(), "memory") > 0) {
      take_least(least, left_above(groups + "/memory", path, version_1));
    }
  }
  return least;
}

}  // namespace mase
