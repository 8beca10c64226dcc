// SPDX-License-Identifier: Apache-2.0
// Splits, scaling and the record of how they were made.
#include "mase/data/dataset.h"

#include <cmath>

#include "mase/data/prepare.h"
#include "support/support.h"

namespace mase {
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

}  // namespace
}  // namespace mase
