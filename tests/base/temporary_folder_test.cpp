// SPDX-License-Identifier: Apache-2.0
// Folders that are filled and renamed: those of killed processes go, those in use stay.
#include "mase/base/temporary_folder.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support/support.h"

namespace mase::temporary_folder_test {
namespace {
namespace fs = std::filesystem;

size_t folders_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(TemporaryFolder, IsRemovedOrRenamed) {
  const std::string above = test::temporary_folder();
  {
    const TemporaryFolder gone(above + "/.new-");
    EXPECT_EQ(folders_in(above), 1u);
  }
  EXPECT_EQ(folders_in(above), 0u);
  const mode_t before = ::umask(027);
  {
    TemporaryFolder kept(above + "/.new-");
    fs::rename(kept.path(), above + "/run");
    kept.release();
  }
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((above + "/run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0750u);
}

TEST(TemporaryFolder, CleansUpAfterTheKilled) {
  const std::string above = test::temporary_folder();
  fs::create_directory(above + "/.new-theusersown");
  const TemporaryFolder mine(above + "/.new-");
  const pid_t child = ::fork();
  if (child == 0) {
    const TemporaryFolder lost(above + "/.new-");
    test::write(lost.path() + "/run.json", "{}");
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(folders_in(above), 3u);
  const TemporaryFolder next(above + "/.new-");
  EXPECT_EQ(folders_in(above), 3u);  // the lost one gave way to this one
  EXPECT_TRUE(fs::exists(mine.path()));
}

}  // namespace
}  // namespace mase::temporary_folder_test
