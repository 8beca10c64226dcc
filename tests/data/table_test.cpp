// SPDX-License-Identifier: Apache-2.0
// Any table as a data set: targets, categories, weights, scaling, TOML descriptions, and the same
// preparation applied to later files.
#include "mase/data/table.h"

#include <sys/resource.h>

#include <cmath>
#include <filesystem>

#include "mase/data/row_hash.h"
#include "support/support.h"
#include "support/table_files.h"

namespace mase::table_test {
namespace {

std::string people(int rows) {
  std::string text = "age,city,score,group\n";
  for (int i = 0; i < rows; ++i)
    text += fmt::format("{},{},{},{}\n", 20 + i % 31,
                        i % 3 == 0   ? "Rome"
                        : i % 3 == 1 ? "Oslo"
                                     : "Bern",
                        0.5 * i, i % 4 == 0 ? "yes" : "no");
  return text;
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = test::temporary_folder() + "/" + name;
  test::write(path, text);
  return path;
}

std::string complaint(const std::string& path, const DatasetOptions& options) {
  try {
    load_dataset(path, options);
  } catch (const Error& error) {
    return replace_all(error.what(), path, "FILE");
  }
  return "no error";
}

TEST(Table, WordsAreClassesAndCategoriesOneHot) {
  DatasetOptions options;
  options.target = "group";
  const Dataset dataset = load_dataset(written("p.csv", people(100)), options);
  EXPECT_TRUE(dataset.classification);
  EXPECT_EQ(dataset.class_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(dataset.preprocessing.feature_names,
            (std::vector<std::string>{"age", "city=Bern", "city=Oslo", "city=Rome", "score"}));
  EXPECT_EQ(dataset.train.rows() + dataset.validation.rows() + dataset.test.rows(), 100);
}

TEST(Table, NumbersAreRegressionUnlessFewAndWhole) {
  DatasetOptions options;
  options.target = "score";
  options.categorical = "ordinal";
  options.scaling = "none";
  const std::string path = written("p.csv", people(100));
  const Dataset regression = load_dataset(path, options);
  EXPECT_FALSE(regression.classification);
  EXPECT_EQ(regression.outputs(), 1);
  EXPECT_EQ(regression.preprocessing.feature_names,
            (std::vector<std::string>{"age", "city", "group"}));
  options.target = "age";
  EXPECT_EQ(load_dataset(path, options).class_names.size(), 31u);
  options.task = "regression";
  EXPECT_FALSE(load_dataset(path, options).classification);
  options.target = "age,score";
  EXPECT_EQ(load_dataset(path, options).outputs(), 2);
}

TEST(Table, ScalesByTrainingRowsAndWeighsClasses) {
  DatasetOptions options;
  options.target = "group";
  options.scaling = "min-max";
  options.class_weighting = "balanced";
  const Dataset dataset = load_dataset(written("p.csv", people(200)), options);
  float least = 1e9f, most = -1e9f;
  for (const float value : dataset.train.x.values<float>()) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_EQ(least, 0.0f);
  EXPECT_EQ(most, 1.0f);
  ASSERT_EQ(dataset.class_weights.size(), 2u);
  EXPECT_NEAR(double{dataset.class_weights[1] / dataset.class_weights[0]}, 3, 0.6);
}

TEST(Table, TheStoredPreparationReadsLaterFilesTheSameWay) {
  DatasetOptions options;
  options.target = "group";
  const Dataset dataset = load_dataset(written("p.csv", people(100)), options);
  const Preprocessing restored = preprocessing_from_value(
      parse_json(to_json(preprocessing_to_value(dataset.preprocessing)), "x"));
  // Fewer categories, another order of columns, no target: the same numbers.
  const std::string later =
      written("later.csv", "city,score,extra,age\nOslo,1.5,7,23\nOslo,2,7,24\n");
  const Split rows = load_rows(later, restored, {});
  EXPECT_EQ(rows.x.shape(), (Shape{2, 5}));
  EXPECT_EQ(rows.labels.numel(), 0);
  const Preprocessing& p = dataset.preprocessing;
  const float expected[] = {23, 0, 1, 0, 1.5f};
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(rows.x.data<float>()[i], (expected[i] - p.offset[i]) / p.scale[i]) << i;
  EXPECT_EQ(load_rows(written("p.csv", people(40)), restored, {}).labels.numel(), 40);
  try {
    load_rows(written("p.csv", "age,city,score\n1,Paris,2\n"), restored, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("category 'Paris' is unknown; known: Bern, Oslo, Rome"),
        std::string::npos)
        << error.what();
  }
}

TEST(Table, AStoredPreparationIsNotBelieved) {
  DatasetOptions options;
  options.target = "group";
  const Dataset dataset = load_dataset(written("p.csv", people(100)), options);
  const auto with_target = [&](Dict target) {
    Preprocessing changed = dataset.preprocessing;
    changed.description.dict().set("target", std::move(target));
    load_rows(written("p.csv", people(40)), changed, {});
  };
  const Value two = Value::of(std::vector<std::string>{"group", "age"}), none = List{};
  for (const char* kind : {"words", "codes", "undecided", "one-hot"})
    EXPECT_THROW(with_target({{"columns", two}, {"classes", none}, {"kind", kind}}), Error) << kind;
  EXPECT_THROW(with_target({{"columns", none}, {"classes", none}, {"kind", "numbers"}}), Error);
}

TEST(Table, AWideRowCostsWhatItHolds) {
  // Three rows of 262,144 columns: a block of them must not be thousands of rows long.
  const int64_t width = 1 << 18;
  const std::string path = test::temporary_folder() + "/wide.npy";
  test::write(path, test::npy_text("'|u1'", false, fmt::format("(3, {})", width),
                                   std::string(static_cast<size_t>(3 * width), 'a')));
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto source = open_table(path);
  TablePlan plan = make_plan(*source, {.target = {"column_1"}, .task = "regression"});
  EXPECT_EQ(read_table(*source, std::move(plan), {}).table.features(), width - 1);
  ::getrusage(RUSAGE_SELF, &after);
  if (!test::sanitized) {
    EXPECT_LT((after.ru_maxrss - before.ru_maxrss) / 1024, 300);
  }
}

TEST(Table, SaysWhatIsWrong) {
  DatasetOptions options;
  options.target = "grop";
  EXPECT_EQ(complaint(written("p.csv", people(20)), options),
            "FILE: there is no column 'grop'; did you mean 'group'?");
  options.target = "";
  EXPECT_EQ(complaint(written("p.csv", people(20)), options),
            "FILE: which column is the target is not said; name it with --target: age, city, "
            "score, group");
  options.target = "group";
  EXPECT_EQ(complaint(written("p.csv", people(2)), options), "FILE: 2 rows are too few to split");
  std::string text = people(20);
  text.replace(text.find("0.5"), 3, "1e99");
  EXPECT_EQ(
      complaint(written("p.csv", text), options),
      "FILE:3: column 'score' is too large for float32; --drop-bad-rows leaves such rows out");
  EXPECT_NE(complaint("no-such-data", {}).find("unknown dataset 'FILE'"), std::string::npos);
  EXPECT_NE(complaint("missing.csv", {}).find("cannot open the file"), std::string::npos);
}

TEST(Table, IsDescribedInToml) {
  const std::string folder = test::temporary_folder();
  test::write(folder + "/p.csv", people(100));
  test::write(folder + "/p.toml",
              "name = 'people'\nfile = 'p.csv'\ntarget = 'group'\nignore = ['city']\n"
              "scaling = 'none'\nclass_weights = [1.0, 3.0]\nshape = [1, 2]\nval_split = 0.25\n");
  const Dataset dataset = load_dataset(folder + "/p.toml", {});
  EXPECT_EQ(dataset.name, "people");
  EXPECT_EQ(dataset.sample_shape(), (Shape{1, 2}));
  EXPECT_EQ(dataset.class_weights, (std::vector<float>{1, 3}));
  EXPECT_EQ(dataset.validation.rows(), 20);
  test::write(folder + "/p.toml", "file = 'p.csv'\ntaget = 'group'\n");
  EXPECT_EQ(complaint(folder + "/p.toml", {}),
            "FILE:2: unknown key 'taget'; did you mean 'target'?");
}

TEST(Table, ReadsScikitLearnsFiles) {
  const std::string folder = "/usr/lib/python3/dist-packages/sklearn/datasets/data/";
  if (!std::filesystem::exists(folder + "iris.csv")) GTEST_SKIP() << "python3-sklearn is absent";
  DatasetOptions options;
  options.target = "target";
  const struct {
    const char* file;
    int64_t rows, features;
    size_t classes;
  } known[] = {
      {"iris.csv", 150, 4, 3}, {"wine_data.csv", 178, 13, 3}, {"breast_cancer.csv", 569, 30, 2}};
  for (const auto& one : known) {
    const Dataset dataset = load_dataset(folder + one.file, options);
    EXPECT_EQ(dataset.train.rows() + dataset.validation.rows() + dataset.test.rows(), one.rows);
    EXPECT_EQ(dataset.train.x.dim(1), one.features);
    EXPECT_EQ(dataset.class_names.size(), one.classes);
  }
  options.target = "column_65";
  const Dataset digits = load_dataset(folder + "digits.csv.gz", options);
  EXPECT_EQ(digits.train.rows() + digits.validation.rows() + digits.test.rows(), 1797);
  EXPECT_EQ(digits.class_names.size(), 10u);
}

TEST(RowHash, TreatsRowsAsPandasDoes) {
  const double nan1 = std::nan("1"), nan2 = -std::nan("2");
  EXPECT_EQ(hash_row(std::vector<double>{1, nan1, 0.0}),
            hash_row(std::vector<double>{1, nan2, -0.0}));
  EXPECT_FALSE(hash_row(std::vector<double>{1, 2}) == hash_row(std::vector<double>{2, 1}));
  EXPECT_FALSE(hash_row(std::vector<double>{0.1}) ==
               hash_row(std::vector<double>{double{0.1f}}));  // the file's own precision
  RowSet set(2);
  int kept = 0;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 5000; ++i)
      kept += set.insert(hash_row(std::vector<double>{static_cast<double>(i), 0}));
  EXPECT_EQ(kept, 5000);
}

}  // namespace
}  // namespace mase::table_test
