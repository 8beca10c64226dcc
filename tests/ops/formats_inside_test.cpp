// SPDX-License-Identifier: Apache-2.0
// Number formats of what is inside an op, beside attention's: tables of rotations, exponentials of
// softmax, statistics of norms. Against plain loops over tensors rounded one by one, in the engine
// and in the ops' own code, and training goes straight through them.
#include <cmath>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"
#include "mase/passes/pass.h"
#include "support/support.h"

namespace mase::formats_inside_test {
namespace {

Tensor drawn_values(const Shape& shape) {
  Random random(4, "formats_inside");
  Tensor tensor(shape);
  for (float& value : std::span(tensor.mutable_data<float>(), static_cast<size_t>(tensor.numel())))
    value = static_cast<float>(2 * random.normal() + 0.5);
  return tensor;
}

// Coarse steps, so that what is not rounded differs by far.
Value coarse(const std::string& operand) {
  return Dict{{"name", "integer"}, {operand + "_width", 7}, {operand + "_frac_width", 4}};
}

Tensor rounded_coarsely(Tensor tensor) {
  for (float& value : std::span(tensor.mutable_data<float>(), static_cast<size_t>(tensor.numel())))
    value = static_cast<float>(std::clamp(std::nearbyint(double{value} * 16), -64.0, 63.0) / 16);
  return tensor;
}

void expect_both(const Graph& graph, const Tensor& x, const std::vector<double>& wanted) {
  const Tensor found = run(graph, {x}).front();
  const Array own = evaluate(graph, {Array::from(x)}).front();
  ASSERT_EQ(static_cast<size_t>(found.numel()), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(found.data<float>()[i], wanted[i], 2e-5 * (1 + std::fabs(wanted[i]))) << i;
    EXPECT_NEAR(own.data[i], wanted[i], 2e-5 * (1 + std::fabs(wanted[i]))) << i;
  }
}

Graph norm_network(const char* op, int64_t width) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {3, width});
  Module norm = make_module(op, Dict{{"normalized_shape", width}}, 1, "norm");
  graph.add_output({graph.add_module("norm", norm, {x})});
  return graph;
}

TEST(FormatsInside, StatisticsOfNorms) {
  for (const char* op : {"rms_norm", "layer_norm"}) {
    SCOPED_TRACE(op);
    const int64_t width = 10;
    Graph graph = norm_network(op, width);
    const double eps = graph.modules().at("norm").attributes["eps"].is_null()
                           ? 1.1920929e-07
                           : graph.modules().at("norm").attributes["eps"].as_double();
    PassContext context;
    Value config = coarse("statistics");
    config.dict().set("data_in_width", 32);
    config.dict().set("data_in_frac_width", 20);
    run_pass(graph, "quantize", Dict{{"by", "type"}, {op, Dict{{"config", config}}}}, context);
    const Tensor x = drawn_values({4, 3, width});
    std::vector<double> wanted;
    for (int64_t row = 0; row < 12; ++row) {
      const float* values = x.data<float>() + row * width;
      Tensor mean({1});
      double sum = 0;
      const bool centred = std::string(op) == "layer_norm";
      for (int64_t i = 0; i < width; ++i) sum += centred ? values[i] : 0;
      mean.mutable_data<float>()[0] = static_cast<float>(sum / static_cast<double>(width));
      mean = rounded_coarsely(mean);
      double squares = 0;
      for (int64_t i = 0; i < width; ++i)
        squares += (values[i] - mean.item(0)) * (values[i] - mean.item(0));
      Tensor variance({1});
      variance.mutable_data<float>()[0] = static_cast<float>(squares / static_cast<double>(width));
      variance = rounded_coarsely(variance);
      for (int64_t i = 0; i < width; ++i)
        wanted.push_back((values[i] - mean.item(0)) / std::sqrt(variance.item(0) + eps));
    }
    expect_both(graph, x, wanted);
  }
}

TEST(FormatsInside, ExponentialsOfSoftmax) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {3, 9});
  graph.add_output(
      {graph.add_module("softmax", make_module("softmax", Dict{{"dim", -1}}, 1, "s"), {x})});
  PassContext context;
  Value config = coarse("exponentials");
  config.dict().set("data_in_width", 32);
  config.dict().set("data_in_frac_width", 20);
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"softmax", Dict{{"config", config}}}}, context);
  const Tensor values = drawn_values({2, 3, 9});
  std::vector<double> wanted;
  for (int64_t row = 0; row < 6; ++row) {
    const float* own = values.data<float>() + row * 9;
    Tensor exponentials({9});
    for (int64_t i = 0; i < 9; ++i)
      exponentials.mutable_data<float>()[i] = std::exp(own[i] - *std::max_element(own, own + 9));
    exponentials = rounded_coarsely(exponentials);
    double sum = 0;
    for (int64_t i = 0; i < 9; ++i) sum += exponentials.item(i);
    for (int64_t i = 0; i < 9; ++i) wanted.push_back(exponentials.item(i) / sum);
  }
  expect_both(graph, values, wanted);
}

TEST(FormatsInside, TablesOfRotations) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {5, 6});
  graph.add_output({graph.call_function("rotary_embedding", {Argument::node(x)})});
  PassContext context;
  run_pass(graph, "quantize",
           Dict{{"by", "type"}, {"rotary_embedding", Dict{{"config", coarse("table")}}}}, context);
  const Tensor values = drawn_values({2, 5, 6});
  std::vector<double> wanted(60);
  for (int64_t row = 0; row < 10; ++row)
    for (int64_t i = 0; i < 3; ++i) {
      const double angle =
          static_cast<double>(row % 5) * std::pow(10000.0, -static_cast<double>(i) / 3);
      Tensor table({2});
      table.mutable_data<float>()[0] = static_cast<float>(std::cos(angle));
      table.mutable_data<float>()[1] = static_cast<float>(std::sin(angle));
      table = rounded_coarsely(table);
      const double a = values.item(row * 6 + i), b = values.item(row * 6 + 3 + i);
      wanted[static_cast<size_t>(row * 6 + i)] = a * table.item(0) - b * table.item(1);
      wanted[static_cast<size_t>(row * 6 + 3 + i)] = b * table.item(0) + a * table.item(1);
    }
  expect_both(graph, values, wanted);
}

}  // namespace
}  // namespace mase::formats_inside_test
