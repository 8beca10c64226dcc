// SPDX-License-Identifier: Apache-2.0
// The real jet files' layouts: prepared as MASE prepares them, fast, small, cached, and refused
// with a clear line when they are damaged.
#include "mase/data/jets.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/data/jsc_sim.h"
#include "mase/data/legacy_random.h"
#include "mase/data/table.h"
#include "support/support.h"
#include "support/table_files.h"

namespace mase::jets_test {
namespace {

const std::string original_name =
    "processed-pythia82-lhc13-all-pt1-50k-r1_h022_e0175_t220_nonu_truth.z";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto value = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return value(usage.ru_utime) + value(usage.ru_stime);
}

// A jet CSV with the class in words.
std::string jets_csv(int64_t rows) {
  std::string text;
  for (const std::string& name : jet_feature_names()) text += name + ",";
  text += "class\n";
  for (int64_t row = 0; row < rows; ++row) {
    const test::JetRow jet = test::made_up_jet(row);
    for (const float value : jet.features) text += fmt::format("{},", value);
    text += jet_class_names()[static_cast<size_t>(jet.label)] + "\n";
  }
  return text;
}

std::string complaint(const std::string& path) {
  try {
    load_jet_file(path, {});
  } catch (const Error& error) {
    return replace_all(error.what(), path, "FILE");
  }
  return "no error";
}

TEST(Jets, DropsDuplicatesAndSplitsAsScikitLearn) {
  const std::string folder = test::temporary_folder();
  // Rows 3, 4 and every tenth row repeat an earlier one: 1000 rows, 899 distinct or so.
  const auto source_row = [](int64_t row) { return row % 10 == 9 ? row - 9 : row; };
  test::write_jets_hdf5(folder + "/" + original_name, 1000, source_row);
  DatasetOptions options;
  options.data_dir = folder;
  options.validation_split = "train";
  const Dataset dataset = load_dataset("jsc", options);
  EXPECT_EQ(dataset.variant, "cernbox-like");
  EXPECT_TRUE(dataset.notice.empty());
  std::vector<int64_t> kept;
  for (int64_t row = 0; row < 1000; ++row)
    if (row % 10 != 9) kept.push_back(row);
  const SplitRows split = train_test_split(static_cast<uint32_t>(kept.size()), 0.2, 42);
  ASSERT_EQ(dataset.train.rows(), static_cast<int64_t>(split.first.size()));
  ASSERT_EQ(dataset.test.rows(), static_cast<int64_t>(split.second.size()));
  const Preprocessing& scaled = dataset.preprocessing;
  const auto check = [&](const Split& part, const std::vector<uint32_t>& rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const test::JetRow jet = test::made_up_jet(kept[rows[i]]);
      ASSERT_EQ(part.labels.data<int32_t>()[i], jet.label);
      for (size_t f = 0; f < 16; ++f)
        ASSERT_EQ(part.x.data<float>()[i * 16 + f],
                  (jet.features[f] - scaled.offset[f]) / scaled.scale[f]);
    }
  };
  check(dataset.train, split.first);
  check(dataset.test, split.second);
}

TEST(Jets, SecondStartMapsThePreparedFile) {
  const std::string folder = test::temporary_folder(), path = folder + "/jsc.h5";
  const std::string cache = test::temporary_folder();
  ::setenv("MASE_DATA", cache.c_str(), 1);
  test::write_jets_hdf5(path, 5000, [](int64_t row) { return row; });
  DatasetOptions options;
  std::vector<std::string> said;
  options.notify = [&](const std::string& line) { said.push_back(line); };
  const Dataset first = load_jet_file(path, options);
  const Dataset second = load_jet_file(path, options);
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(second.train.x.same_bits(first.train.x));
  EXPECT_TRUE(second.validation.labels.same_bits(first.validation.labels));
  EXPECT_EQ(second.identity, first.identity);
  EXPECT_EQ(second.preprocessing.description, first.preprocessing.description);

  // In the cache folder, not beside the file.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::string prepared;
  for (const auto& entry : std::filesystem::directory_iterator(cache + "/prepared"))
    if (ends_with(entry.path().string(), ".prepared")) prepared = entry.path().string();
  ASSERT_FALSE(prepared.empty());
  // A flipped bit anywhere, a cut, nonsense: rebuilt, with a line that says so.
  const std::string whole = test::read(prepared);
  for (const size_t at : {size_t{3}, size_t{100}, whole.size() / 2, whole.size() - 100}) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    test::write(prepared, bad);
    said.clear();
    EXPECT_TRUE(load_jet_file(path, options).test.x.same_bits(first.test.x));
    ASSERT_EQ(said.size(), 1u) << at;
    EXPECT_NE(said[0].find("preparing the data again"), std::string::npos);
    EXPECT_EQ(test::read(prepared), whole);
  }
  test::write(prepared, whole.substr(0, whole.size() / 3));
  EXPECT_TRUE(load_jet_file(path, options).test.x.same_bits(first.test.x));

  // Other content is noticed, also of the same size and time.
  test::write_jets_hdf5(
      path, 5000, [](int64_t row) { return row; }, false);
  const auto size = std::filesystem::file_size(path);
  const auto time = std::filesystem::last_write_time(path);
  EXPECT_TRUE(load_jet_file(path, options).train.x.same_bits(first.train.x));
  test::write_jets_hdf5(
      path, 5000, [](int64_t row) { return row + 5; }, false);
  ASSERT_EQ(std::filesystem::file_size(path), size);
  std::filesystem::last_write_time(path, time);
  const Dataset other = load_jet_file(path, options);
  EXPECT_FALSE(other.train.x.same_bits(first.train.x));
  EXPECT_NE(other.identity, first.identity);

  test::write_jets_hdf5(path, 4000, [](int64_t row) { return row; });
  said.clear();
  EXPECT_EQ(load_jet_file(path, options).train.rows(), 2880);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("made from other content"), std::string::npos);
  ::unsetenv("MASE_DATA");
}

TEST(Jets, OtherFormatsGiveTheSameRows) {
  const std::string folder = test::temporary_folder();
  test::write_jets_hdf5(folder + "/a.h5", 500, [](int64_t row) { return row; });
  test::write(folder + "/a.csv", jets_csv(500));
  std::string arff = "@relation jets\n";
  for (const std::string& name : jet_feature_names()) arff += "@attribute " + name + " real\n";
  arff += "@attribute class {g,q,w,z,t}\n@data\n";
  const std::string csv = jets_csv(500);
  arff += csv.substr(csv.find('\n') + 1);
  test::write(folder + "/a.arff", arff);
  const Dataset hdf5 = load_dataset(folder + "/a.h5", {});
  for (const char* name : {"/a.csv", "/a.arff"}) {
    const Dataset other = load_dataset(folder + name, {});
    EXPECT_EQ(other.name, "a");
    EXPECT_EQ(other.class_names, jet_class_names());
    EXPECT_TRUE(other.train.x.same_bits(hdf5.train.x)) << name;
    EXPECT_TRUE(other.test.labels.same_bits(hdf5.test.labels)) << name;
    // A checkpoint of one reads the other for prediction.
    const Split rows = load_rows(folder + name, hdf5.preprocessing, {});
    EXPECT_EQ(rows.rows(), 500);
    EXPECT_EQ(rows.labels.numel(), 500);
  }
}

TEST(Jets, SayWhatIsWrong) {
  const std::string folder = test::temporary_folder(), path = folder + "/jsc.csv";
  const std::string good = jets_csv(50);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    test::write(path, text);
    return complaint(path);
  };
  EXPECT_NE(with("mass_mmdt", "mass").find("FILE: there is no column 'mass_mmdt'; known: zlogz"),
            std::string::npos);
  EXPECT_NE(
      with(",q\n", ",x\n").find("FILE:3: class 'x' is unknown; the classes are g, q, w, z, t"),
      std::string::npos)
      << with(",q\n", ",x\n");
  const size_t second = good.find('\n') + 1;
  const std::string first_cell = good.substr(second, good.find(',', second) - second);
  EXPECT_NE(
      with("\n" + first_cell, "\nsome").find("FILE:2: column 'zlogz': 'some' is not a number"),
      std::string::npos);
  for (const char* bad : {"nan", "inf", ""})
    EXPECT_NE(with("\n" + first_cell, std::string("\n") + bad).find("--drop-bad-rows"),
              std::string::npos);
  DatasetOptions dropping;
  dropping.drop_bad_rows = true;
  std::string said;
  dropping.notify = [&](const std::string& line) { said += line; };
  EXPECT_EQ(load_jet_file(path, dropping).train.rows() + 10 + 4, 49);
  EXPECT_NE(said.find("1 row with missing or infinite values left out"), std::string::npos);

  std::string no_top = good.substr(0, second);
  for (size_t at = second; at < good.size();) {
    const size_t end = good.find('\n', at) + 1;
    if (good.substr(end - 3, 2) != ",t") no_top += good.substr(at, end - at);
    at = end;
  }
  test::write(path, no_top);
  EXPECT_NE(complaint(path).find("class 't' has no rows"), std::string::npos) << complaint(path);
  EXPECT_EQ(complaint(folder), "FILE: is a folder, not a file");
}

TEST(Jets, NearlyAMillionRowsAreReadFastAndSmall) {
  const bool sanitized = test::sanitized;
  const int64_t rows = sanitized ? 98680 : 986806;
  const std::string path = test::temporary_folder() + "/" + original_name;
  // Every fifth row repeats an earlier one.
  test::write_jets_hdf5(
      path, rows, [](int64_t row) { return row % 5 == 4 ? row / 2 : row; }, false);
  DatasetOptions options;
  const double before = processor_seconds();
  const auto start = std::chrono::steady_clock::now();
  const Dataset dataset = load_jet_file(path, options);
  const double spent = processor_seconds() - before, wall = seconds_since(start);
  EXPECT_GT(dataset.train.rows(), rows / 2);
  if (!sanitized) {
    EXPECT_EQ(dataset.variant, "cernbox");
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  RecordProperty("seconds", fmt::format("{:.2f}", wall));
  RecordProperty("megabytes", fmt::format("{}", usage.ru_maxrss / 1024));
  fmt::print("{} rows: {:.2f} s ({:.2f} s of processor), {} MB\n", rows, wall, spent,
             usage.ru_maxrss / 1024);
  // Processor time, because a busy machine says nothing about this program.
  if (!sanitized) {
    EXPECT_LT(spent, 4.0);
    EXPECT_LT(usage.ru_maxrss / 1024, 400);
  }
  const double again = processor_seconds();
  const Dataset mapped = load_jet_file(path, options);
  if (!sanitized) {
    EXPECT_LT(processor_seconds() - again, 0.2);
  }
  fmt::print("second start: {:.3f} s\n", processor_seconds() - again);
  EXPECT_EQ(mapped.test.rows(), dataset.test.rows());
}

}  // namespace
}  // namespace mase::jets_test
