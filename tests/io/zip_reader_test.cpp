// SPDX-License-Identifier: Apache-2.0
// The zip container: what is good is viewed in place, what disagrees with itself is refused.
#include "mase/io/zip/zip_reader.h"

#include <cstring>

#include "mase/io/zip/zip_writer.h"
#include "support/support.h"

namespace mase::zip_reader_test {
namespace {

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string file;
  ZipWriter zip(
      [&](const void* data, size_t n) { file.append(static_cast<const char*>(data), n); });
  for (const auto& [name, content] : entries) zip.add(name, content);
  zip.finish();
  return file;
}

std::string fault(const std::string& file, const ReadLimits& limits = {}) {
  try {
    MemoryBudget budget(limits, file.size());
    const ZipReader zip(std::as_bytes(std::span(file)), "x.zip", budget, limits);
    for (const ZipReader::Entry& entry : zip.entries()) zip.content(entry, nullptr, budget);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string with(std::string file, size_t at, const std::string& bytes) {
  return file.replace(at, bytes.size(), bytes);
}

// What deflate makes of 1,000 zeros, as Python's zipfile writes it.
std::string python_zip(const std::string& script) {
  const std::string folder = test::temporary_folder();
  const test::RunResult result =
      test::run({"/usr/bin/python3", "-c", "import zipfile, struct\n" + script}, folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return test::read(folder + "/a.zip");
}

TEST(ZipReader, StoredEntriesAreViewedAligned) {
  const std::string file = zip_of({{"b", "second"}, {"a/x", "first"}, {"empty", ""}});
  MemoryBudget budget({}, file.size());
  const ZipReader zip(std::as_bytes(std::span(file)), "x.zip", budget);
  ASSERT_EQ(zip.entries().size(), 3u);
  const ZipReader::Entry* entry = zip.find("a/x");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->data_offset % 64, 0u);
  const auto bytes = zip.stored(*entry);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "first");
  EXPECT_FALSE(zip.find("a"));
}

TEST(ZipReader, ReadsWhatPythonPacks) {
  EXPECT_EQ(fault(python_zip("z = zipfile.ZipFile('a.zip', 'w', zipfile.ZIP_DEFLATED)\n"
                             "z.writestr('a/b', b'ab' * 500); z.writestr('c', b''); z.close()")),
            "no error");
  EXPECT_EQ(fault(python_zip("z = zipfile.ZipFile('a.zip', 'w')\n"
                             "with z.open('a', 'w', force_zip64=True) as f: f.write(b'x' * 99)\n"
                             "z.close()")),
            "no error");
}

TEST(ZipReader, InflatingIsBounded) {
  const std::string zeros = python_zip(
      "z = zipfile.ZipFile('a.zip', 'w', zipfile.ZIP_DEFLATED)\n"
      "z.writestr('a', bytes(10_000_000)); z.close()");
  EXPECT_HAS(fault(zeros), "would inflate to 10000000");
  EXPECT_EQ(fault(zeros, {.inflate_ratio = 2000}), "no error");
  EXPECT_HAS(fault(zeros, {.memory = 1000000, .inflate_ratio = 2000}), "limit allows");
  // A directory that claims less, or more, than the data inflate to.
  for (const char* size : {"100", "9_999_999", "10_000_001"})
    EXPECT_HAS(
        fault(python_zip(std::string("z = zipfile.ZipFile('a.zip', 'w', zipfile.ZIP_DEFLATED)\n"
                                     "z.writestr('a', bytes(10_000_000)); z.close()\n"
                                     "d = open('a.zip', 'rb').read()\n"
                                     "d = d.replace(struct.pack('<I', 10_000_000), "
                                     "struct.pack('<I', ") +
                         size + "))\nopen('a.zip', 'wb').write(d)"),
              {.inflate_ratio = 2000}),
        "cannot be inflated to the size");
}

TEST(ZipReader, NamesMustStayInside) {
  for (const char* name : {"../x", "a/../../x", "/etc/passwd", "a\\b", "C:x", ".."})
    EXPECT_HAS(fault(zip_of({{name, "x"}})), "the entry name");
  EXPECT_HAS(fault(zip_of({{std::string("a\0b", 3), "x"}})), "zero byte");
  EXPECT_HAS(fault(zip_of({{std::string(2000, 'a'), "x"}})), "too long");
  EXPECT_HAS(fault(zip_of({{"a", "x"}, {"a", "y"}})), "two entries are named 'a'");
  EXPECT_HAS(fault(zip_of({{"\x1b[2J/../x", "x"}})), "\\x1b[2J");
}

TEST(ZipReader, EntriesMustAgreeWithTheDirectory) {
  const std::string good = zip_of({{"aaaa", "content"}, {"bbbb", "other"}});
  ASSERT_EQ(fault(good), "no error");
  const size_t directory = good.find("PK\1\2");
  EXPECT_HAS(fault(with(good, 30, "x")), "disagree");    // local name
  EXPECT_HAS(fault(with(good, 8, "\x08")), "disagree");  // method
  EXPECT_HAS(fault(with(good, 14, "zz")), "disagree about its size or checksum");
  EXPECT_HAS(fault(with(good, 18, "\x06")), "disagree about its size or checksum");
  EXPECT_HAS(fault(with(good, 64, "C")), "checksum is wrong");
  EXPECT_HAS(fault(with(good, directory + 24, "\x08")), "two sizes for stored data");
  EXPECT_HAS(fault(with(good, directory + 8, "\x01")), "is encrypted");
  EXPECT_HAS(fault(with(good, directory + 10, "\x0c")), "unknown method 12");
  EXPECT_HAS(fault(with(good, directory + 42, "\x01")), "no entry where the directory says");
  EXPECT_HAS(fault(with(good, directory + 42, "\xff\xff\xff\x7f")), "outside the zip's data");
  EXPECT_HAS(fault(with(good, directory + 42, "\xff\xff\xff\xff")), "64-bit size field is missing");
  EXPECT_HAS(fault(good + "x"), "no directory at its end");
  EXPECT_HAS(fault(with(good, good.size() - 2, "\x01")), "comment");
  EXPECT_HAS(fault(with(good, good.size() - 12, "\x03")), "several files");
  EXPECT_HAS(fault(with(good, good.size() - 6, "\x01")), "not where it should be");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(fault(good.substr(0, size)), "no error");
}

TEST(ZipReader, EntriesMustNotOverlap) {
  // Two directory entries for the same local entry.
  const std::string good = zip_of({{"aaaa", "content"}, {"aaab", "content"}});
  const size_t first = good.find("PK\1\2"), second = good.find("PK\1\2", first + 4);
  std::string twice = good;
  twice.replace(second, second - first, good.substr(first, second - first));
  EXPECT_NE(fault(twice), "no error");
  // An entry that lies inside another one's data.
  const std::string inner = zip_of({{"in", "x"}});
  const std::string local = inner.substr(0, inner.find("PK\1\2"));
  std::string outer = zip_of({{"out", local}, {"in", "x"}});
  const size_t entry = outer.rfind("PK\1\2");
  outer.replace(entry + 42, 4, std::string("\x40\0\0\0", 4));
  EXPECT_HAS(fault(outer), "overlap");
}

}  // namespace
}  // namespace mase::zip_reader_test
