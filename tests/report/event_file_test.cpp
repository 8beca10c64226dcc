// SPDX-License-Identifier: Apache-2.0
#include "mase/report/events/event_file.h"

#include <cmath>
#include <filesystem>

#include "mase/base/error.h"
#include "mase/base/file.h"
#include "mase/report/text/utf8.h"
#include "support/support.h"

namespace mase::event_file_test {
namespace {

TEST(Crc32c, MatchesThePublishedVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST(Utf8, KeepsValidTextAndReplacesTheRest) {
  EXPECT_EQ(valid_utf8("Gewicht µ → 😀"), "Gewicht µ → 😀");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("a\xFF"), "a" + bad);
  EXPECT_EQ(valid_utf8("\xC0\xAF"), bad + bad);              // longer than needed
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), bad + bad + bad);    // surrogate
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80").size(), 4u * 3);  // above U+10FFFF
  EXPECT_EQ(valid_utf8("\xE2\x82"), bad + bad);              // cut
}

std::string write_sample() {
  EventWriter writer = EventWriter::open(test::temporary_folder() + "/lightning_logs/version_0");
  for (int step = 0; step < 1000; ++step)
    writer.scalar("train_loss_step", step, 1.0 / (1 + step), 1000.0 + step);
  writer.scalar("val_loss_epoch", -1, NAN, 5);
  writer.scalar(std::string("<img onerror=alert(1)>\xFF\n\0x", 27), 7, 2, 6);
  writer.histogram("seq_blocks.2.weight", 3, std::vector<float>{-1, 0, 0, 1, NAN, INFINITY, 0.5f},
                   7);
  writer.histogram("empty", 3, {}, 8);
  writer.histogram("constant", 3, std::vector<float>{2, 2, 2}, 9);
  return writer.path();
}

TEST(EventFile, ReadsBackWhatWasWritten) {
  const std::vector<EventRecord> records = read_event_file(write_sample());
  ASSERT_EQ(records.size(), 1u + 1000 + 2 + 3);
  EXPECT_EQ(records[11].step, 10);
  EXPECT_EQ(records[11].wall_time, 1010.0);
  EXPECT_EQ(records[11].scalars.at(0), std::make_pair(std::string("train_loss_step"), 1.0f / 11));
  EXPECT_EQ(records[1001].step, -1);
  EXPECT_TRUE(std::isnan(records[1001].scalars.at(0).second));
  const std::string tag = records[1002].scalars.at(0).first;
  EXPECT_EQ(tag, valid_utf8(tag));
  const EventHistogram& histogram = records[1003].histograms.at(0).second;
  EXPECT_EQ(histogram.count, 5);
  EXPECT_EQ(histogram.lowest, -1);
  EXPECT_EQ(histogram.largest, 1);
  EXPECT_EQ(histogram.limits.size(), histogram.counts.size());
  double total = 0;
  for (double count : histogram.counts) total += count;
  EXPECT_EQ(total, 5);
  EXPECT_EQ(records[1004].histograms.at(0).second.count, 0);
  EXPECT_EQ(records[1005].histograms.at(0).second.counts, std::vector<double>{3});
}

TEST(EventFile, AnyChangedByteIsFound) {
  std::string content;
  const std::string folder = test::temporary_folder();
  {
    EventWriter writer = EventWriter::open(folder + "/a");
    writer.scalar("loss", 1, 0.5, 1);
    writer.histogram("w", 1, std::vector<float>{1, 2, 3}, 2);
    writer.flush();
    content = read_text_file(writer.path());
  }
  const std::string copy = folder + "/copy";
  for (size_t i = 0; i < content.size(); ++i) {
    std::string changed = content;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    test::write(copy, changed);
    EXPECT_THROW(read_event_file(copy), Error) << "byte " << i;
  }
  for (size_t size : {size_t{0}, size_t{5}, content.size() / 2, content.size() - 1}) {
    test::write(copy, content.substr(0, size));
    EXPECT_THROW(read_event_file(copy), Error) << "size " << size;
  }
}

TEST(EventFile, WritersAndVersionsNeverCollide) {
  const std::string logs = test::temporary_folder() + "/lightning_logs";
  EXPECT_EQ(new_event_folder(logs), logs + "/version_0");
  EXPECT_EQ(new_event_folder(logs), logs + "/version_1");
  const EventWriter one = EventWriter::open(logs + "/version_0");
  const EventWriter two = EventWriter::open(logs + "/version_0");
  EXPECT_NE(one.path(), two.path());
  EXPECT_NE(std::filesystem::path(one.path()).filename().string().find("tfevents"),
            std::string::npos);
}

TEST(EventFile, AFolderThatCannotBeMadeIsOneClearError) {
  EXPECT_THROW(EventWriter::open("/proc/none/here"), Error);
}

// TensorBoard itself, where the package is installed.
TEST(EventFile, TensorBoardReadsIt) {
  const char* python = std::getenv("MASE_TENSORBOARD_PYTHON");
  const std::string script =
      "import sys\n"
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "a = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0, 'histograms': 0})\n"
      "a.Reload()\n"
      "s = a.Scalars('train_loss_step')\n"
      "h = a.Histograms('seq_blocks.2.weight')[0].histogram_value\n"
      "print(len(s), s[10].step, s[10].value, h.num, h.min, h.max, len(a.Tags()['scalars']))\n";
  const std::string interpreter = python ? python : "/usr/bin/python3";
  if (test::run({interpreter, "-c", "import tensorboard"}).exit_code != 0)
    GTEST_SKIP() << "the tensorboard package is not installed";
  const test::RunResult result = test::run({interpreter, "-c", script, write_sample()});
  EXPECT_EQ(result.out, "1000 10 0.09090909361839294 5.0 -1.0 1.0 3\n") << result.err;
}

}  // namespace
}  // namespace mase::event_file_test
