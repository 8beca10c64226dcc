// SPDX-License-Identifier: Apache-2.0
// Files: writes are whole or not at all, and every failure names the path.
#include "mase/base/file.h"

#include <sys/stat.h>

#include <filesystem>

#include "mase/base/error.h"
#include "support/support.h"

namespace mase {
namespace {
namespace fs = std::filesystem;

size_t entries(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(File, AtomicWriteReplacesTheWhole) {
  const std::string folder = test::temporary_folder(), path = folder + "/a.txt";
  write_file_atomically(path, std::string("first and long"));
  write_file_atomically(path, std::string("second"));
  EXPECT_EQ(read_text_file(path), "second");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(File, AFailureLeavesTheOldFileAndNothingElse) {
  const std::string folder = test::temporary_folder(), path = folder + "/a.txt";
  write_file_atomically(path, std::string("old"));
  EXPECT_THROW(write_file_atomically(path,
                                     [&](int fd) {
                                       write_all(fd, "half", 4, path);
                                       throw Error(path, "the disk is full");
                                     }),
               Error);
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(File, ErrorsNameThePath) {
  for (const auto& attempt : std::vector<std::function<void()>>{
           [] { read_text_file("/nowhere/file"); },
           [] { write_file_atomically("/nowhere/file", std::string("x")); },
           [] { MappedFile::open("/nowhere/file"); },
           [] { read_text_file("/"); },
       }) {
    try {
      attempt();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find('/'), std::string::npos) << error.what();
    }
  }
}

TEST(File, MapsSeeTheContent) {
  const std::string path = test::temporary_folder() + "/map";
  test::write(path, "abc");
  EXPECT_EQ(MappedFile::open(path)->bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(MappedFile::open(path)->bytes()[2]), 'c');
  test::write(path, "");
  EXPECT_EQ(MappedFile::open(path)->bytes().size(), 0u);
}

TEST(File, DirectoriesAreMadeOnce) {
  const std::string path = test::temporary_folder() + "/a/b/c";
  make_directories(path);
  make_directories(path);
  EXPECT_TRUE(fs::is_directory(path));
  test::write(path + "/file", "x");
  EXPECT_THROW(make_directories(path + "/file/d"), Error);
}

}  // namespace
}  // namespace mase
