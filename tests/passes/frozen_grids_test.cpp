// SPDX-License-Identifier: Apache-2.0
// The grids of all number formats on weights of every shape: what is in a group lies within the
// groups there are, rounding gives numbers that the format keeps, and ranges that are cut (clip of
// gptq, clip_search) are found without reading beyond either.
#include <cmath>

#include "formats/every_format.h"
#include "mase/base/random.h"
#include "mase/formats/frozen.h"
#include "mase/passes/weight_method.h"

namespace mase::frozen_grids_test {
namespace {

Tensor drawn(const Shape& shape, double largest = 1) {
  Tensor weight(shape);
  Random random(7, "frozen_grids");
  for (float& value : std::span(weight.mutable_data<float>(), static_cast<size_t>(weight.numel())))
    value = static_cast<float>(random.normal() * largest);
  return weight;
}

ProductInputs inputs_of(int64_t columns) {
  ProductInputs inputs;
  inputs.columns = columns;
  inputs.groups = 1;
  inputs.vectors = columns;
  Random random(3, "inputs");
  std::vector<double> rows(static_cast<size_t>(2 * columns * columns));
  for (double& value : rows) value = random.normal();
  Matrix hessian(static_cast<size_t>(columns * columns));
  for (int64_t r = 0; r < 2 * columns; ++r)
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t j = 0; j < columns; ++j)
        hessian[static_cast<size_t>(i * columns + j)] +=
            rows[static_cast<size_t>(r * columns + i)] * rows[static_cast<size_t>(r * columns + j)];
  inputs.hessians = {hessian};
  return inputs;
}

// Formats in all widths and variations, and where numbers are shared along other dimensions than
// the last.
std::vector<test::FormatCase> cases() {
  std::vector<test::FormatCase> all = test::some_cases();
  const auto add = [&](const char* format, Dict config) {
    test::add_case(all, Registry<FormatRecord>::instance().get(format, ""),
                   Value(std::move(config)));
  };
  for (const int axis : {0, 1, -1, -2}) {
    add("mxint", {{"width", 4}, {"axis", axis}});
    add("mxint", {{"width", 4}, {"axis", axis}, {"block_size", 5}});
    add("mxfp", {{"exponent_width", 2}, {"frac_width", 1}, {"axis", axis}, {"block_size", 5}});
    for (const bool affine : {false, true})
      add("scale_integer", {{"width", 3},
                            {"affine", affine},
                            {"is_signed", !affine},
                            {"granularity", "channel"},
                            {"axis", axis}});
  }
  for (const char* granularity : {"tensor", "row"})
    for (const char* clip : {"mse", "none"})
      add("scale_integer", {{"width", 3}, {"granularity", granularity}, {"clip", clip}});
  for (const char* scale : {"half", "e4m3", "minifloat_ieee", "bfloat16", "e2m1"})
    for (const int size : {5, 16, 64}) {
      const Dict named{{"name", scale}, {"width", 8}, {"exponent_width", 4}};
      const Dict plain{{"name", scale}};
      const Dict& format = std::string(scale) == "minifloat_ieee" ? named : plain;
      for (const bool affine : {false, true})
        add("group_integer",
            {{"width", 3}, {"group_size", size}, {"affine", affine}, {"scale_format", format}});
      add("nf4", {{"group_size", size}, {"scale_format", format}});
    }
  for (const int size : {1, 5, 16, 1000}) {
    for (const bool affine : {false, true})
      add("group_integer", {{"width", 4}, {"group_size", size}, {"affine", affine}});
    add("nf4", {{"group_size", size}});
  }
  return all;
}

void expect_within(const FrozenGrid& grid, const Tensor& weight) {
  ASSERT_GE(grid.groups(), 1);
  for (int64_t i = 0; i < weight.numel(); ++i) {
    ASSERT_GE(grid.group_of(i), 0);
    ASSERT_LT(grid.group_of(i), grid.groups()) << "at " << i;
    const double value = static_cast<double>(weight.data<float>()[i]);
    const auto [low, high] = grid.neighbours(i, value);
    const double nearest = grid.round(i, value);
    ASSERT_TRUE(std::isfinite(low) && std::isfinite(high) && low <= high) << low << " " << high;
    ASSERT_TRUE(nearest == low || nearest == high) << low << " " << nearest << " " << high;
  }
}

TEST(FrozenGrids, OfEveryFormatHoldTheirGroupsAndTheirClips) {
  const std::vector<Tensor> weights = {
      drawn({6, 35}), drawn({3, 64}, 1e-3), drawn({4, 3, 3, 3}), drawn({1, 1}, 30),
      Tensor({2, 7})  // zeros
  };
  std::vector<ProductInputs> inputs;
  for (const Tensor& weight : weights) inputs.push_back(inputs_of(weight.numel() / weight.dim(0)));
  int grids = 0, refused = 0;
  for (const test::FormatCase& item : cases())
    for (size_t at = 0; at < weights.size(); ++at) {
      const Tensor& weight = weights[at];
      SCOPED_TRACE(item.text() + " " + shape_text(weight.shape()));
      if (misfit(*item.quantizer, weight.shape())) continue;  // no layer gets such a format
      try {
        const FrozenGrid grid(*item.quantizer, weight);
        expect_within(grid, weight);
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        ++refused;
        continue;
      }
      ++grids;
      const WeightProblem problem{
          *item.quantizer, weight, weight.dim(0), inputs[at].columns, inputs[at], 0, 1,
          {1.0, 0.9, 0.6}};
      const Tensor source = clipped_source(problem);
      ASSERT_EQ(source.shape(), weight.shape());
      for (int64_t i = 0; i < weight.numel(); ++i)
        ASSERT_LE(std::fabs(source.data<float>()[i]), std::fabs(weight.data<float>()[i]));
      expect_within(FrozenGrid(*item.quantizer, source), weight);
    }
  EXPECT_GT(grids, 500);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace mase::frozen_grids_test
