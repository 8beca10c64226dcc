// SPDX-License-Identifier: Apache-2.0
// toy_tiny: MASE's smallest data set, for trying things out. Four numbers from -1 to 1 as a sample
// of 1 x 2 x 2, and whether their sum is above 0; 10,240 rows for each split, drawn by NumPy's
// legacy generator (MT19937, 53 bits a number) from the seeds 0, 1 and 2.
#include <random>

#include "mase/data/dataset.h"

namespace mase::toy_tiny_dataset {
namespace {

constexpr int64_t rows = 10240, values = 4;

// numpy.random.RandomState.random_sample
double random_sample(std::mt19937& generator) {
  const auto high = static_cast<uint32_t>(generator()) >> 5;
  const auto low = static_cast<uint32_t>(generator()) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

Split draw(uint32_t seed) {
  std::mt19937 generator(seed);
  Split split{Tensor(Shape{rows, 1, 2, 2}), Tensor(Shape{rows}, DType::i32), {}};
  float* x = split.x.mutable_data<float>();
  int32_t* labels = split.labels.mutable_data<int32_t>();
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < values; ++i) {
      const double value = 2 * random_sample(generator) - 1;
      x[row * values + i] = static_cast<float>(value);
      sum += value;
    }
    labels[row] = sum > 0;
  }
  return split;
}

Dataset load(const DatasetOptions&) {
  Dataset dataset;
  dataset.name = "toy_tiny";
  dataset.variant = "drawn";
  dataset.identity = "toy_tiny-1";
  dataset.class_names = {"0", "1"};
  dataset.train = draw(0);
  dataset.validation = draw(1);
  dataset.test = draw(2);
  std::vector<std::string> names;
  for (int64_t i = 0; i < values; ++i) names.push_back(fmt::format("x{}", i));
  dataset.preprocessing.feature_names = names;
  dataset.preprocessing.offset.assign(values, 0);
  dataset.preprocessing.scale.assign(values, 1);
  dataset.preprocessing.description = Dict{{"scaling", "none"}};
  return dataset;
}

const Register<DatasetRecord> registered{
    {.name = "toy_tiny",
     .aliases = {"toy-tiny"},
     .summary = "Four numbers and whether their sum is above 0: MASE's toy data",
     .help = "Drawn, the same for everybody: 10,240 rows each for training, validation and test, "
             "as they are. Options of splitting and scaling do not apply.",
     .load = load}};

}  // namespace
}  // namespace mase::toy_tiny_dataset
