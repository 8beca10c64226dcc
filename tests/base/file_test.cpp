// SPDX-License-Identifier: Apache-2.0
// Files: writes are whole or not at all, and every failure names the path.
#include "mase/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "mase/base/cut_files.h"
#include "mase/base/error.h"
#include "support/support.h"

namespace mase::file_test {
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

TEST(File, OnlyRegularFilesAreRead) {
  const std::string folder = test::temporary_folder(), pipe = folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder, std::string("/dev/zero"), std::string("/dev/tty")})
    for (const auto& attempt : std::vector<std::function<void()>>{[&] { read_text_file(path); },
                                                                  [&] { MappedFile::open(path); },
                                                                  [&] { InputFile file(path); }})
      EXPECT_THROW(attempt(), Error) << path;
}

TEST(File, WritesFollowTheUmask) {
  const std::string folder = test::temporary_folder();
  for (const mode_t mask : {mode_t{077}, mode_t{022}, mode_t{002}}) {
    const mode_t before = ::umask(mask);
    write_file_atomically(folder + "/a", std::string("x"));
    ::umask(before);
    struct stat status {};
    ASSERT_EQ(::stat((folder + "/a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0666 & ~mask);
  }
}

TEST(File, WhatAKilledProcessLeftIsRemoved) {
  const std::string folder = test::temporary_folder(), path = folder + "/a.ckpt";
  const pid_t child = ::fork();
  if (child == 0)
    write_file_atomically(path, [&](int fd) {
      write_all(fd, "half", 4, path);
      ::raise(SIGKILL);
    });
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(entries(folder), 1u);  // its temporary file
  test::write(folder + "/b.tmp-notours", "the user's own");
  write_file_atomically(path, [&](int fd) {
    write_all(fd, "whole", 5, path);
    EXPECT_EQ(entries(folder), 2u);  // the old one is gone, ours and the user's are there
  });
  EXPECT_EQ(read_text_file(path), "whole");
  EXPECT_EQ(entries(folder), 2u);
}

TEST(File, KnowsWhatIsMapped) {
  const std::string path = test::temporary_folder() + "/map";
  test::write(path, "abc");
  auto map = MappedFile::open(path, 0);
  const std::byte* inside = map->bytes().data();
  EXPECT_STREQ(mapped_file_at(inside + 2), path.c_str());
  EXPECT_EQ(mapped_file_at(inside + 3), nullptr);
  map.reset();
  EXPECT_EQ(mapped_file_at(inside), nullptr);
}

// Zeros to the end of the page, and SIGBUS behind it, are what a map of such a file has.
TEST(File, WhatWasReadStaysWhenTheFileIsCut) {
  const std::string path = test::temporary_folder() + "/cut";
  const std::string content(100'000, 'x');
  for (const bool mapped : {false, true}) {
    test::write(path, content);
    const auto file = MappedFile::open(path, mapped ? 0 : MappedFile::largest_read);
    fs::resize_file(path, 10);
    std::string copy(content.size(), ' ');
    auto* to = reinterpret_cast<std::byte*>(copy.data());
    if (mapped) {
      EXPECT_THROW(read_if_mapped(to, file->bytes().data(), copy.size()), Error);
      EXPECT_TRUE(read_if_mapped(to, file->bytes().data() + 2, 8));
      EXPECT_EQ(copy.substr(0, 8), "xxxxxxxx");
    } else {
      EXPECT_FALSE(read_if_mapped(to, file->bytes().data(), copy.size()));
      EXPECT_EQ(std::memcmp(file->bytes().data(), content.data(), content.size()), 0);
    }
  }
}

// As the Python package does it: what is gone is zeros, and the reader is told.
void fill(int number, siginfo_t* info, void*) {
  if (!fill_cut_page(info->si_addr)) std::signal(number, SIG_DFL);
}

TEST(File, AMapThatIsCutIsAnErrorForWhoeverLivesOn) {
  const std::string path = test::temporary_folder() + "/gone";
  write_file_atomically(path, std::string(1 << 20, 'x'));
  const auto file = MappedFile::open(path, 0);
  struct sigaction action {
  }, before{};
  action.sa_sigaction = fill;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGBUS, &action, &before), 0);
  throw_if_cut();  // nothing yet
  ASSERT_EQ(::truncate(path.c_str(), 10), 0);
  volatile const std::byte* bytes = file->bytes().data();
  const std::byte last = bytes[(1 << 20) - 1], middle = bytes[1 << 19];
  EXPECT_EQ(last, std::byte{0});
  EXPECT_EQ(middle, std::byte{0});
  ASSERT_EQ(::sigaction(SIGBUS, &before, nullptr), 0);
  try {
    throw_if_cut();
    FAIL() << "nothing was told";
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), path);
    EXPECT_NE(error.cause().find("became shorter"), std::string::npos);
  }
  throw_if_cut();  // told once
}

TEST(File, MapsSeeTheContent) {
  const std::string path = test::temporary_folder() + "/map";
  test::write(path, "abc");
  EXPECT_EQ(MappedFile::open(path)->bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(MappedFile::open(path)->bytes()[2]), 'c');
  test::write(path, "");
  EXPECT_EQ(MappedFile::open(path)->bytes().size(), 0u);
}

TEST(File, NoFileComesInThePlaceOfAPipe) {
  const std::string path = test::temporary_folder() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Descriptor reader(::open(path.c_str(), O_RDWR | O_NONBLOCK));
  write_file_atomically(path, std::string("abc"));
  EXPECT_TRUE(fs::is_fifo(path));
  char got[4] = {};
  EXPECT_EQ(::read(reader.get(), got, sizeof got), 3);
  EXPECT_STREQ(got, "abc");
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
}  // namespace mase::file_test
