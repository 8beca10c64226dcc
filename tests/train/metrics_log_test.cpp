// SPDX-License-Identifier: Apache-2.0
// Metrics files that were cut or damaged between two parts of a run: whole rows stay, the others
// are left out and named, and a new row never joins half an old one.
#include "mase/train/metrics_log.h"

#include <filesystem>

#include "mase/base/text.h"
#include "mase/base/value.h"
#include "support/support.h"

namespace mase::metrics_log_test {
namespace {

struct Lengths {
  int64_t csv, jsonl;
};

MetricsRow row_of(int64_t step) {
  MetricsRow row{};
  row.epoch = 0;
  row.step = step;
  row.train_loss = 0.5;
  row.learning_rate = 1e-3;
  return row;
}

Lengths write_rows(const std::string& folder, Lengths from, int64_t first, int64_t count,
                   std::string* notice = nullptr) {
  MetricsLog log(folder, {"train_loss_epoch", "val_loss_epoch"}, from.csv, from.jsonl);
  if (notice) *notice = log.notice();
  for (int64_t step = first; step < first + count; ++step) log.add(row_of(step));
  log.flush();
  return {log.csv_bytes(), log.jsonl_bytes()};
}

// Every line is whole; the steps there are.
std::vector<std::string> steps_of(const std::string& folder) {
  std::vector<std::string> steps, lines = split(test::read(folder + "/metrics.csv"), '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  const size_t columns = split(lines.at(0), ',').size();
  EXPECT_TRUE(starts_with(lines[0], "epoch,step,"));
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(split(lines[i], ',').size(), columns) << lines[i];
    steps.push_back(split(lines[i], ',')[1]);
  }
  for (const std::string& line : split(strip(test::read(folder + "/metrics.jsonl")), '\n'))
    EXPECT_TRUE(parse_json(line, "line").is_dict());
  return steps;
}

using Steps = std::vector<std::string>;

TEST(MetricsLog, GoesOnWhereItWas) {
  const std::string folder = test::temporary_folder();
  const Lengths after = write_rows(folder, {0, 0}, 1, 3);
  write_rows(folder, after, 4, 1);  // lost: the next run begins at the checkpoint
  std::string notice;
  write_rows(folder, after, 4, 2, &notice);
  EXPECT_EQ(notice, "");
  EXPECT_EQ(steps_of(folder), (Steps{"1", "2", "3", "4", "5"}));
}

TEST(MetricsLog, CutAnywhereItIsRepairedAndNamed) {
  const std::string folder = test::temporary_folder(), path = folder + "/metrics.csv";
  const Lengths after = write_rows(folder, {0, 0}, 1, 3);
  const std::string whole = test::read(path);
  for (size_t size = 0; size < whole.size(); size += 7) {
    test::write(path, whole.substr(0, size));
    std::string notice;
    write_rows(folder, after, 4, 1, &notice);
    EXPECT_NE(notice.find("metrics.csv: "), std::string::npos) << size;
    EXPECT_EQ(steps_of(folder).back(), "4") << size;
  }
  std::filesystem::remove(path);
  write_rows(folder, after, 4, 1);
  EXPECT_EQ(steps_of(folder), (Steps{"4"}));
}

TEST(MetricsLog, DamagedRowsAreLeftOutAndNamed) {
  const std::string folder = test::temporary_folder(), path = folder + "/metrics.csv";
  const Lengths after = write_rows(folder, {0, 0}, 1, 3);
  std::string whole = test::read(path);
  const size_t second = whole.find("\n0,2,") + 1;
  whole.replace(second, 4, std::string(4, '\0'));  // as a file system leaves it
  test::write(path, whole);
  std::string notice;
  write_rows(folder, after, 4, 1, &notice);
  EXPECT_NE(notice.find("metrics.csv: 1 damaged row left out"), std::string::npos) << notice;
  EXPECT_EQ(steps_of(folder), (Steps{"1", "3", "4"}));
}

}  // namespace
}  // namespace mase::metrics_log_test
