// SPDX-License-Identifier: Apache-2.0
// Every registered op's gradient against central differences in double precision, over random
// shapes with empty and size-one dimensions. A new op is tested by existing.
#include <algorithm>
#include <cmath>

#include "mase/base/random.h"
#include "mase/ir/op.h"
#include "support/support.h"

namespace mase::gradient_test {
namespace {

constexpr double step = 1e-6, absolute = 1e-5, relative = 1e-3;

struct Case {
  Dict attributes;
  std::vector<Shape> inputs;
};

struct Operands {
  std::vector<Array> inputs;
  std::map<std::string, Array> params;
};

Array random_array(const Shape& shape, Random& random, double low = -2.5, double high = 2.5) {
  Array array(shape);
  for (double& value : array.data) value = random.uniform(low, high);
  return array;
}

class GradientCheck {
 public:
  GradientCheck(const OpRecord& op, const Case& test_case, Random& random)
      : op_(op), attributes_(validate(Value(test_case.attributes), op.attributes, op.name)) {
    for (const Shape& shape : test_case.inputs)
      operands_.inputs.push_back(random_array(shape, random));
    // Divisors near zero make differences useless.
    if (op.name == "div" && operands_.inputs.size() == 2)
      for (double& value : operands_.inputs[1].data) value = std::copysign(1.0, value) + value;
    if (op.name == "log" || op.name == "sqrt" || op.name == "rsqrt" || op.name == "pow")
      for (double& value : operands_.inputs[0].data) value = std::abs(value) + 0.5;
    for (const size_t k : op.index_inputs)
      if (k < operands_.inputs.size())
        for (double& value : operands_.inputs[k].data) value = static_cast<double>(random.below(3));
    // With more inputs than a module takes, the parameters are among them.
    is_function_ = static_cast<int>(test_case.inputs.size()) > op.min_inputs;
    if (op.params && !is_function_)
      for (const ParamSpec& spec : op.params(attributes_))
        operands_.params[spec.name] = spec.name == "running_var"
                                          ? random_array(spec.shape, random, 0.5, 2.0)
                                          : random_array(spec.shape, random);
  }

  // The number of derivatives compared.
  int run(bool training, Random& random) {
    training_ = training;
    const Shape shape = op_.infer(attributes_, shapes());  // refuses what the op does not take
    const Array out = evaluate();
    EXPECT_EQ(out.shape, shape) << place();
    weights_ = random_array(out.shape, random);
    const OpGradients gradients = op_.grad(call(), out, weights_);
    EXPECT_EQ(gradients.inputs.size(), operands_.inputs.size()) << place();
    int compared = 0;
    for (size_t k = 0; k < operands_.inputs.size(); ++k)
      if (std::find(op_.index_inputs.begin(), op_.index_inputs.end(), k) == op_.index_inputs.end())
        compared +=
            compare(operands_.inputs[k], gradients.inputs.at(k), fmt::format("input {}", k));
    for (const auto& [name, gradient] : gradients.params)
      compared += compare(operands_.params.at(name), gradient, name);
    if (op_.params && !is_function_) {
      for (const ParamSpec& spec : op_.params(attributes_)) {
        EXPECT_EQ(gradients.params.count(spec.name), spec.trainable ? 1u : 0u)
            << place() << ": " << spec.name;
      }
    }
    return compared;
  }

 private:
  std::vector<Shape> shapes() const {
    std::vector<Shape> result;
    for (const Array& input : operands_.inputs) result.push_back(input.shape);
    return result;
  }

  std::string place() const {
    std::string text = op_.name + " " + python_repr(attributes_);
    for (const Shape& shape : shapes()) text += " " + shape_text(shape);
    return text + (training_ ? " training" : "");
  }

  OpCall call() const {
    OpCall call{attributes_, {}, {}, training_, 42};
    for (const Array& input : operands_.inputs) call.inputs.push_back(&input);
    for (const auto& [name, array] : operands_.params) call.params[name] = &array;
    return call;
  }

  Array evaluate() const { return op_.eval(call()); }

  double loss() const {
    const Array out = evaluate();
    double sum = 0;
    for (size_t i = 0; i < out.data.size(); ++i) sum += out.data[i] * weights_.data[i];
    return sum;
  }

  int compare(Array& operand, const Array& gradient, const std::string& what) {
    EXPECT_EQ(gradient.shape, operand.shape) << place() << ": " << what;
    for (size_t i = 0; i < operand.data.size(); ++i) {
      const double old = operand.data[i];
      operand.data[i] = old + step;
      const double above = loss();
      operand.data[i] = old - step;
      const double below = loss();
      operand.data[i] = old;
      const double expected = (above - below) / (2 * step);
      EXPECT_NEAR(gradient.data[i], expected, absolute + relative * std::abs(expected))
          << place() << ": " << what << "[" << i << "]";
    }
    return static_cast<int>(operand.data.size());
  }

  const OpRecord& op_;
  Value attributes_;
  Operands operands_;
  Array weights_;
  bool training_ = false, is_function_ = false;
};

Shape random_shape(Random& random, size_t rank) {
  const int64_t sizes[] = {0, 1, 1, 2, 3, 4};
  Shape shape(rank);
  for (int64_t& size : shape) size = sizes[random.below(std::size(sizes))];
  return shape;
}

// The attributes of ops whose variety the defaults do not show.
std::vector<Dict> variations(const std::string& op) {
  if (op == "gelu") return {{}, {{"approximate", "tanh"}}};
  if (op == "softplus") return {{}, {{"beta", 2.0}, {"threshold", 1.5}}};
  if (op == "hardtanh") return {{}, {{"min_val", -0.5}, {"max_val", 2}}};
  if (op == "leaky_relu") return {{}, {{"negative_slope", 0.3}}};
  if (op == "elu") return {{}, {{"alpha", 0.7}}};
  if (op == "sum" || op == "mean")
    return {{}, {{"dim", 0}}, {{"dim", List{0, -1}}, {"keepdim", true}}, {{"dim", -1}}};
  if (op == "softmax" || op == "log_softmax") return {{}, {{"dim", -1}}, {{"dim", 0}}};
  if (op == "flatten") return {{}, {{"start_dim", 0}}, {{"start_dim", -2}}};
  if (op == "batch_norm1d")
    return {
        {}, {{"affine", false}}, {{"track_running_stats", false}}, {{"momentum", "cumulative"}}};
  if (op == "layer_norm") return {{}, {{"elementwise_affine", false}}};
  if (op == "linear") return {{}, {{"bias", false}}};
  if (op == "dropout") return {{}, {{"p", 0.2}}, {{"p", 1}}};
  if (op == "cat") return {{}, {{"dim", -1}}};
  if (op == "conv1d" || op == "conv2d")
    return {{{"kernel_size", 2}},
            {{"kernel_size", 3}, {"padding", 1}, {"stride", 2}, {"bias", false}},
            {{"kernel_size", 2}, {"padding", 1}, {"padding_mode", "circular"}, {"dilation", 2}}};
  if (op == "conv_transpose1d" || op == "conv_transpose2d")
    return {{{"kernel_size", 2}}, {{"kernel_size", 3}, {"padding", 1}, {"stride", 2}}};
  if (op == "clamp") return {{{"min", -1.0}}, {{"min", -0.5}, {"max", 1.0}}};
  if (op == "pow") return {{}, {{"other", 3}}, {{"other", -0.5}}, {{"other", 1.7}}};
  if (op == "prelu") return {{}, {{"init", 0.1}}};
  if (op == "group_norm") return {{}, {{"num_groups", 2}}, {{"affine", false}}};
  if (op == "instance_norm1d" || op == "instance_norm2d") return {{}, {{"affine", true}}};
  if (op == "scaled_dot_product_attention") return {{}, {{"is_causal", true}}, {{"scale", 0.7}}};
  if (op == "multihead_attention")
    return {{{"batch_first", true}},
            {{"num_heads", 2}, {"is_causal", true}},
            {{"bias", false}, {"result", 1}}};
  if (op == "chunk") return {{{"dim", -1}}, {{"dim", -1}, {"result", 1}}};
  if (op == "split")
    return {{{"split_size_or_sections", 2}, {"dim", -1}, {"result", -1}},
            {{"split_size_or_sections", List{1, 3}}, {"dim", -1}, {"result", 1}}};
  if (op == "max" || op == "min") return {{}, {{"dim", -1}}, {{"dim", 0}, {"keepdim", true}}};
  if (op == "topk") return {{{"k", 2}}, {{"k", 1}, {"dim", 0}, {"largest", false}}};
  if (op == "getitem")
    return {{},
            {{"index", List{Dict{{"slice", List{0, -1, 2}}}, 1}}},
            {{"index", List{"...", "None", Dict{{"slice", List{1, Value(), Value()}}}}}}};
  if (op == "narrow") return {{}, {{"dim", -1}, {"start", 1}, {"length", 2}}};
  if (op == "squeeze" || op == "unsqueeze" || op == "stack") return {{}, {{"dim", -1}}};
  if (op.starts_with("adaptive")) return {{}, {{"output_size", 3}}};
  return {{}};
}

std::vector<Case> random_cases(const OpRecord& op, Random& random) {
  std::vector<Case> cases;
  for (const Dict& variation : variations(op.name))
    for (int round = 0; round < 12; ++round) {
      Case test_case{variation, {random_shape(random, random.below(5))}};
      if (round == 0) test_case.inputs[0] = {3, 4};
      if (round == 1) test_case.inputs[0] = {3, 2, 4};
      if (round == 2) test_case.inputs[0] = {2, 3, 3};
      if (round == 3) test_case.inputs[0] = {2, 2, 4, 3};
      const int wanted = op.max_inputs < 0 ? 3 : op.max_inputs == 2 ? 2 : op.min_inputs;
      const bool literal = variation.contains("other");
      for (int i = 1; i < (literal ? 1 : wanted); ++i)
        test_case.inputs.push_back(test_case.inputs[0]);
      if (op.name == "index_select") test_case.inputs[1] = {2};  // a list of numbers
      if (op.name == "rotary_embedding") {  // pairs, with the positions of each row or without
        test_case.inputs.assign(1, Shape{2, 3, 4});
        if (round % 2 == 1) test_case.inputs.push_back(Shape{2, 3});
        test_case.attributes.set("positions", 64);
      }
      if (op.complete) op.complete(test_case.attributes, test_case.inputs, 3);
      cases.push_back(std::move(test_case));
    }
  return cases;
}

// Shapes an op refuses are refused by an Error, which is as it should be; but some must pass.
void check_op(const OpRecord& op) {
  Random random(7, "gradient:" + op.name);
  int compared = 0;
  for (const Case& test_case : random_cases(op, random))
    for (const bool training : {false, true}) {
      try {
        GradientCheck check(op, test_case, random);
        compared += check.run(training, random);
      } catch (const Error&) {
      }
    }
  EXPECT_GT(compared, 10) << op.name << ": give the record `complete`";
}

TEST(Gradient, EveryOp) {
  const std::vector<const OpRecord*> ops = Registry<OpRecord>::instance().all();
  EXPECT_GE(ops.size(), 75u);
  for (const OpRecord* op : ops)
    if (op->name != "opaque" && op->name != "detach")  // one cannot be run, one is to have none
      check_op(*op);
}

// Two operands of different shapes that fit together by broadcasting.
TEST(Gradient, Broadcasting) {
  Random random(8, "broadcast");
  for (const char* name : {"add", "sub", "mul", "div"})
    for (int round = 0; round < 40; ++round) {
      const Shape full = random_shape(random, random.below(4));
      const auto thinned = [&] {
        Shape shape(full.begin() + static_cast<int64_t>(random.below(full.size() + 1)), full.end());
        for (int64_t& size : shape)
          if (random.below(3) == 0) size = 1;
        return shape;
      };
      const Shape left = thinned(), right = thinned();
      GradientCheck check(find_op(name), {{}, {left, right}}, random);
      check.run(false, random);
    }
}

TEST(Gradient, NumbersAsOperands) {
  Random random(9, "numbers");
  for (const char* name : {"add", "sub", "mul", "div"})
    for (const char* side : {"other", "input"}) {
      GradientCheck check(find_op(name), {{{side, 3.5}}, {{2, 3}}}, random);
      EXPECT_EQ(check.run(false, random), 6);
    }
}

TEST(Gradient, MatrixProductsOfEveryRank) {
  Random random(10, "matmul");
  const std::vector<std::vector<Shape>> pairs = {
      {{3}, {3}},
      {{3}, {3, 2}},
      {{2, 3}, {3}},
      {{2, 3}, {3, 4}},
      {{0, 3}, {3, 4}},
      {{2, 0}, {0, 4}},
      {{1, 1}, {1, 1}},
      {{5, 2, 3}, {3}},
      {{3}, {5, 3, 2}},
      {{2, 1, 2, 3}, {4, 3, 2}},
      {{1, 2, 3}, {4, 3, 1}},
      {{0, 2, 3}, {3, 2}},
  };
  for (const auto& shapes : pairs) {
    GradientCheck check(find_op("matmul"), {{}, shapes}, random);
    check.run(false, random);
  }
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{0, 3, 4}, Shape{1, 1, 1}, Shape{2, 3, 0}}) {
    GradientCheck check(find_op("bmm"), {{}, {shape, {shape[0], shape[2], 2}}}, random);
    check.run(false, random);
  }
}

TEST(Gradient, LinearAsAFunction) {
  Random random(11, "linear");
  for (const Shape& x : {Shape{3}, Shape{2, 3}, Shape{0, 3}, Shape{2, 1, 3}}) {
    GradientCheck with_bias(find_op("linear"), {{}, {x, {4, 3}, {4}}}, random);
    with_bias.run(false, random);
    GradientCheck without(find_op("linear"), {{}, {x, {4, 3}}}, random);
    without.run(false, random);
  }
}

TEST(Gradient, ConcatenationOfDifferentSizes) {
  Random random(12, "cat");
  GradientCheck check(find_op("cat"), {{{"dim", 1}}, {{2, 3, 2}, {2, 0, 2}, {2, 1, 2}}}, random);
  EXPECT_EQ(check.run(false, random), 16);
}

TEST(Gradient, EmptyResultsOfMeansAreNotNumbers) {
  const OpRecord& mean = find_op("mean");
  const Value attributes = validate(Value(Dict()), mean.attributes, "");
  const Array empty(Shape{0, 3});
  const Array out = mean.eval({attributes, {&empty}});
  ASSERT_EQ(out.data.size(), 1u);
  EXPECT_TRUE(std::isnan(out.data[0]));
}

}  // namespace
}  // namespace mase::gradient_test
