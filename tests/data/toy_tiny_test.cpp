// SPDX-License-Identifier: Apache-2.0
// toy_tiny is drawn as NumPy's RandomState draws it.
#include "mase/data/dataset.h"
#include "support/support.h"

namespace mase::toy_tiny_test {
namespace {

TEST(ToyTiny, IsNumPysDraw) {
  const Dataset dataset = load_dataset("toy_tiny", {});
  EXPECT_EQ(dataset.sample_shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(dataset.outputs(), 2);
  // numpy.random.RandomState(0).random_sample(4) and RandomState(1).random_sample(4), doubled, less
  // one.
  const float first[] = {0.09762701f, 0.43037873f, 0.20552675f, 0.08976637f};
  const float second[] = {-0.16595599f, 0.44064899f, -0.99977125f, -0.39533485f};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(dataset.train.x.data<float>()[i], first[i], 1e-7);
    EXPECT_NEAR(dataset.validation.x.data<float>()[i], second[i], 1e-7);
  }
  EXPECT_EQ(dataset.train.labels.data<int32_t>()[0], 1);
  EXPECT_EQ(dataset.validation.labels.data<int32_t>()[0], 0);
  EXPECT_EQ(dataset.test.rows(), 10240);
}

}  // namespace
}  // namespace mase::toy_tiny_test
