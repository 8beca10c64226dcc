// SPDX-License-Identifier: Apache-2.0
// Memory that can be taken, by the files of a system: none of a container, of version 1 and 2.
#include "mase/base/memory.h"

#include <filesystem>

#include "support/support.h"

namespace mase::memory_test {
namespace {

std::string system_with(const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string root = test::temporary_folder();
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = root + name;
    std::filesystem::create_directories(path.parent_path());
    test::write(path.string(), text);
  }
  return root;
}

const std::pair<std::string, std::string> free_8_megabytes = {
    "/proc/meminfo", "MemTotal: 16384 kB\nMemFree: 100 kB\nMemAvailable: 8192 kB\n"};
constexpr uint64_t megabyte = 1 << 20;

TEST(Memory, TheSystemsOwnWord) {
  EXPECT_EQ(available_memory(test::temporary_folder()), std::nullopt);
  EXPECT_EQ(available_memory(system_with({free_8_megabytes})), 8 * megabyte);
  const auto here = available_memory();
  ASSERT_TRUE(here);
  EXPECT_GT(*here, megabyte);
}

TEST(Memory, TheLeastThatAGroupLeaves) {
  const std::string groups = "/sys/fs/cgroup";
  // 5 MB, of which 3 are taken, 1 by files that nobody needs.
  EXPECT_EQ(available_memory(
                system_with({free_8_megabytes,
                             {"/proc/self/cgroup", "0::/\n"},
                             {groups + "/memory.max", "5242880\n"},
                             {groups + "/memory.current", "3145728\n"},
                             {groups + "/memory.stat", "anon 2097152\ninactive_file 1048576\n"}})),
            3 * megabyte);
  // A group above has the smaller limit; "max" is none.
  EXPECT_EQ(available_memory(system_with({free_8_megabytes,
                                          {"/proc/self/cgroup", "0::/a/b\n"},
                                          {groups + "/a/b/memory.max", "max\n"},
                                          {groups + "/a/b/memory.current", "4096\n"},
                                          {groups + "/a/memory.max", "2097152\n"},
                                          {groups + "/a/memory.current", "1048576\n"}})),
            megabyte);
  // Version 1, whose path is the host's: the container sees its own group at the root.
  EXPECT_EQ(available_memory(system_with(
                {free_8_megabytes,
                 {"/proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:hugetlb,memory:/docker/1\n"},
                 {groups + "/memory/memory.limit_in_bytes", "4194304\n"},
                 {groups + "/memory/memory.usage_in_bytes", "2097152\n"},
                 {groups + "/memory/memory.stat", "total_inactive_file 0\n"}})),
            2 * megabyte);
  // No limit of version 1 is a huge number; more taken than allowed leaves nothing.
  EXPECT_EQ(available_memory(
                system_with({free_8_megabytes,
                             {"/proc/self/cgroup", "4:memory:/\n"},
                             {groups + "/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                             {groups + "/memory/memory.usage_in_bytes", "2097152\n"}})),
            8 * megabyte);
  EXPECT_EQ(available_memory(system_with({free_8_megabytes,
                                          {"/proc/self/cgroup", "4:memory:/\n"},
                                          {groups + "/memory/memory.limit_in_bytes", "1000\n"},
                                          {groups + "/memory/memory.usage_in_bytes", "2000\n"}})),
            0u);
}

}  // namespace
}  // namespace mase::memory_test
