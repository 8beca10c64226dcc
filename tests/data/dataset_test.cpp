// SPDX-License-Identifier: Apache-2.0
// Splits, scaling and the record of how they were made.
#include "mase/data/dataset.h"

#include <cmath>

#include "mase/base/random.h"
#include "mase/data/prepare.h"
#include "support/support.h"

namespace mase::dataset_test {
namespace {

DatasetOptions small() {
  DatasetOptions options;
  options.arguments = Dict{{"rows", 1000}};
  options.data_dir = test::temporary_folder();
  return options;
}

TEST(Jsc, FallsBackToTheSimulationAndSaysSo) {
  DatasetOptions options = small();
  std::string said;
  options.notify = [&](const std::string& line) { said += line + "\n"; };
  const Dataset dataset = load_dataset("jsc", options);
  EXPECT_NE(said.find("not comparable"), std::string::npos) << said;
  EXPECT_NE(dataset.notice.find("not comparable"), std::string::npos);
  EXPECT_EQ(dataset.variant, "simulated");
  EXPECT_EQ(dataset.sample_shape(), Shape{16});
  EXPECT_EQ(dataset.outputs(), 5);
  EXPECT_EQ(dataset.train.rows(), 720);
  EXPECT_EQ(dataset.validation.rows(), 80);
  EXPECT_EQ(dataset.test.rows(), 200);
}

TEST(Jsc, ValidatesOnTheTrainingRowsWhenAsked) {
  DatasetOptions options = small();
  options.validation_split = "train";
  const Dataset dataset = load_dataset("jsc-sim", options);
  EXPECT_EQ(dataset.train.rows(), 800);
  EXPECT_TRUE(dataset.validation.x.same_bits(dataset.train.x));
}

TEST(Prepare, StandardisesByTheTrainingRows) {
  const Dataset dataset = load_dataset("jsc-sim", small());
  const float* x = dataset.train.x.data<float>();
  for (size_t feature = 0; feature < 16; ++feature) {
    double sum = 0, squares = 0;
    for (size_t row = 0; row < 720; ++row) {
      sum += double{x[row * 16 + feature]};
      squares += double{x[row * 16 + feature]} * double{x[row * 16 + feature]};
    }
    EXPECT_NEAR(sum / 720, 0, 1e-4);
    EXPECT_NEAR(squares / 720, 1, 1e-4);
  }
}

TEST(Prepare, AppliesAGivenPreprocessing) {
  DatasetOptions options = small();
  const Dataset fitted = load_dataset("jsc-sim", options);
  const Preprocessing restored = preprocessing_from_value(
      parse_json(to_json(preprocessing_to_value(fitted.preprocessing)), "x"));
  EXPECT_EQ(restored.offset, fitted.preprocessing.offset);
  EXPECT_EQ(restored.scale, fitted.preprocessing.scale);
  options.apply = &restored;
  options.validation_split = "0.2";
  EXPECT_TRUE(load_dataset("jsc-sim", options).test.x.same_bits(fitted.test.x));
}

TEST(Prepare, RefusesAnotherSplit) {
  EXPECT_THROW(validation_share("1.5"), Error);
  EXPECT_THROW(validation_share("some"), Error);
  EXPECT_FALSE(validation_share("train"));
}

// An image has as many features as pixels: what is kept of them is short, and comes back exactly.
TEST(Preprocessing, OfImagesAndLongRowsIsShortAndExact) {
  const auto restored = [](const Preprocessing& given, size_t longest) {
    const std::string text = to_json(preprocessing_to_value(given));
    EXPECT_LT(text.size(), longest);
    const Preprocessing back = preprocessing_from_value(parse_json(text, "x"));
    EXPECT_EQ(back.feature_names, given.feature_names);
    EXPECT_EQ(back.offset, given.offset);
    EXPECT_EQ(back.scale, given.scale);
  };
  Preprocessing images;
  images.description = Dict{{"kind", "images"}};
  images.feature_names = FeatureNames::of_places("pixel", {3, 224, 224});
  for (const float value : {0.1f, 0.2f, 127.48028f}) {
    images.offset.insert(images.offset.end(), 224 * 224, value);
    images.scale.insert(images.scale.end(), 224 * 224, value + 1);
  }
  restored(images, 1000);
  Preprocessing rows;
  rows.description = Dict{{"kind", "arrays"}};
  rows.feature_names = FeatureNames::of_places("x", {100, 100});
  Random random(1, "rows");
  for (int i = 0; i < 10000; ++i) {
    rows.offset.push_back(static_cast<float>(random.normal()));
    rows.scale.push_back(static_cast<float>(random.uniform(1, 2)));
  }
  restored(rows, 200'000);
  EXPECT_EQ(images.feature_names[224 * 224 + 225], "pixel_1_1_1");
  // Names that were kept one by one are the same names.
  EXPECT_EQ(FeatureNames({"x_0_0", "x_0_1", "x_1_0", "x_1_1"}),
            FeatureNames::of_places("x", {2, 2}));
  EXPECT_FALSE(FeatureNames({"x_0_1", "x_0_0"}) == FeatureNames::of_places("x", {1, 2}));
}

TEST(Preprocessing, RefusesNumbersThatDoNotFit) {
  const char* names = R"({"prefix": "x", "shape": [20]})";
  for (const auto& [own, numbers] : std::vector<std::pair<std::string, std::string>>{
           {names, R"({"runs": [[19, 1.0]]})"},
           {names, R"({"runs": [[20, 1.0], [1, 1.0]]})"},
           {names, R"({"runs": [[-1, 1.0]]})"},
           {names, R"({"runs": [[20]]})"},
           {names, R"({"bits": "3f80000"})"},
           {names, R"({"bits": "3f80000g"})"},
           {names, R"([1.0])"},
           {R"({"prefix": "x", "shape": [0]})", "[]"},
           {R"({"prefix": "x", "shape": [4000000000, 4000000000, 4000000000]})", "[]"},
           {R"({"prefix": "", "shape": [1]})", "[1.0]"}}) {
    const std::string text =
        fmt::format(R"({{"description": null, "feature_names": {}, "offset": {}, "scale": {}}})",
                    own, numbers, numbers);
    EXPECT_THROW(preprocessing_from_value(parse_json(text, "x")), Error) << text;
  }
}

}  // namespace
}  // namespace mase::dataset_test
