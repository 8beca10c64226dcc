// SPDX-License-Identifier: Apache-2.0
// Ops against PyTorch: printed forms to the character, and values, gradients and running statistics
// in double precision (tests/golden/ops/torch.json, made by scripts/make_op_goldens.py).
#include <cmath>
#include <set>

#include "mase/base/file.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "support/support.h"

namespace mase::torch_test {
namespace {

Array array_from(const Value& value) {
  Array array(value["shape"].as_int_list());
  size_t i = 0;
  for (const Value& number : value["data"].as_list())
    array.data.at(i++) = number.is_string() ? std::stod(number.as_string()) : number.as_double();
  return array;
}

// PyTorch's backward of Hardsigmoid holds 1/6 in single precision; all else agrees further.
constexpr double tolerance = 1e-7;

void expect_near(const Array& actual, const Value& wanted, const std::string& what) {
  const Array expected = array_from(wanted);
  ASSERT_EQ(actual.shape, expected.shape) << what;
  for (size_t i = 0; i < expected.data.size(); ++i)
    EXPECT_NEAR(actual.data[i], expected.data[i], tolerance * (1 + std::abs(expected.data[i])))
        << what << "[" << i << "]";
}

TEST(Torch, ValuesGradientsAndStatistics) {
  const Value cases = read_json(test::golden_path("ops/torch.json"));
  std::set<std::string> seen;
  size_t index = 0;
  for (const Value& test_case : cases.as_list()) {
    const OpRecord& op = find_op(test_case["op"].as_string());
    seen.insert(op.name);
    const std::string what =
        fmt::format("case {}: {} {}", index++, op.name, python_repr(test_case["attributes"]));
    const Value attributes = validate(test_case["attributes"], op.attributes, op.name);
    std::vector<Array> inputs;
    std::map<std::string, Array> params, updates;
    for (const Value& input : test_case["inputs"].as_list()) inputs.push_back(array_from(input));
    for (const auto& [name, value] : test_case["params"].as_dict())
      params[name] = array_from(value);
    OpCall call{attributes, {}, {}, test_case["training"].as_bool(), 0, &updates};
    for (const Array& input : inputs) call.inputs.push_back(&input);
    for (const auto& [name, array] : params) call.params[name] = &array;

    const Array out = op.eval(call);
    expect_near(out, test_case["output"], what);
    const OpGradients gradients = op.grad(call, out, array_from(test_case["grad_output"]));
    for (size_t k = 0; k < inputs.size() && test_case["grad_inputs"].is_list(); ++k)
      expect_near(gradients.inputs.at(k), test_case["grad_inputs"].as_list()[k],
                  fmt::format("{}: gradient of input {}", what, k));
    if (const Value& wanted = test_case["grad_params"]; wanted.is_dict())
      for (const auto& [name, value] : wanted.as_dict())
        expect_near(gradients.params.at(name), value, what + ": gradient of " + name);
    if (const Value& wanted = test_case["buffers"]; wanted.is_dict())
      for (const auto& [name, value] : wanted.as_dict())
        expect_near(updates.contains(name) ? updates.at(name) : params.at(name), value,
                    what + ": " + name);
    if (const Value& wanted = test_case["printed"]; wanted.is_string()) {
      Module module;
      module.op = op.name;
      module.attributes = attributes;
      EXPECT_EQ(module_text(module), wanted.as_string()) << what;
    }
  }
  EXPECT_GE(seen.size(), 84u);
}

std::string printed(const std::string& op, Dict attributes) {
  return module_text(make_module(op, std::move(attributes), 0, "m"));
}

TEST(Torch, PrintedForms) {
  EXPECT_EQ(printed("BatchNorm1d", {{"num_features", 16}}),
            "BatchNorm1d(16, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)");
  EXPECT_EQ(printed("BatchNorm1d", {{"num_features", 16},
                                    {"momentum", "cumulative"},
                                    {"affine", false},
                                    {"track_running_stats", false}}),
            "BatchNorm1d(16, eps=1e-05, momentum=None, affine=False, track_running_stats=False)");
  EXPECT_EQ(printed("Linear", {{"in_features", 16}, {"out_features", 5}}),
            "Linear(in_features=16, out_features=5, bias=True)");
  EXPECT_EQ(printed("ReLU", {{"inplace", true}}), "ReLU(inplace=True)");
  EXPECT_EQ(printed("ReLU", {}), "ReLU()");
  EXPECT_EQ(printed("ReLU6", {{"inplace", true}}), "ReLU6(inplace=True)");
  EXPECT_EQ(printed("LeakyReLU", {}), "LeakyReLU(negative_slope=0.01)");
  EXPECT_EQ(printed("LeakyReLU", {{"negative_slope", 1}, {"inplace", true}}),
            "LeakyReLU(negative_slope=1, inplace=True)");
  EXPECT_EQ(printed("ELU", {}), "ELU(alpha=1.0)");
  EXPECT_EQ(printed("SELU", {}), "SELU()");
  EXPECT_EQ(printed("GELU", {}), "GELU(approximate='none')");
  EXPECT_EQ(printed("SiLU", {{"inplace", true}}), "SiLU(inplace=True)");
  EXPECT_EQ(printed("Sigmoid", {}), "Sigmoid()");
  EXPECT_EQ(printed("Tanh", {}), "Tanh()");
  EXPECT_EQ(printed("Hardtanh", {}), "Hardtanh(min_val=-1.0, max_val=1.0)");
  EXPECT_EQ(printed("Hardtanh", {{"min_val", -2}, {"max_val", 3}, {"inplace", true}}),
            "Hardtanh(min_val=-2, max_val=3, inplace=True)");
  EXPECT_EQ(printed("Hardswish", {{"inplace", true}}), "Hardswish()");
  EXPECT_EQ(printed("Hardsigmoid", {}), "Hardsigmoid()");
  EXPECT_EQ(printed("Softplus", {}), "Softplus(beta=1, threshold=20)");
  EXPECT_EQ(printed("Softsign", {}), "Softsign()");
  EXPECT_EQ(printed("Softmax", {}), "Softmax(dim=None)");
  EXPECT_EQ(printed("LogSoftmax", {{"dim", -1}}), "LogSoftmax(dim=-1)");
  EXPECT_EQ(printed("Dropout", {}), "Dropout(p=0.5, inplace=False)");
  EXPECT_EQ(printed("Identity", {}), "Identity()");
  EXPECT_EQ(printed("Flatten", {}), "Flatten(start_dim=1, end_dim=-1)");
  EXPECT_EQ(printed("LayerNorm", {{"normalized_shape", 16}}),
            "LayerNorm((16,), eps=1e-05, elementwise_affine=True)");
  EXPECT_EQ(printed("LayerNorm", {{"normalized_shape", List{3, 4}}, {"elementwise_affine", false}}),
            "LayerNorm((3, 4), eps=1e-05, elementwise_affine=False)");
}

TEST(Dropout, ZeroesItsShareAndKeepsTheMean) {
  const OpRecord& op = find_op("dropout");
  const Value attributes = validate(Value(Dict{{"p", 0.3}}), op.attributes, "");
  const Array x(Shape{20000}, 1.0);
  const Array y = op.eval({attributes, {&x}, {}, true, 5});
  double sum = 0;
  int zeros = 0;
  for (const double value : y.data) {
    sum += value;
    zeros += value == 0;
  }
  EXPECT_NEAR(zeros, 6000, 250);
  EXPECT_NEAR(sum / 20000, 1, 0.02);
  EXPECT_EQ(op.eval({attributes, {&x}, {}, true, 5}).data, y.data);
  EXPECT_NE(op.eval({attributes, {&x}, {}, true, 6}).data, y.data);
}

TEST(BatchNorm, RefusesToTrainOnOneValue) {
  const OpRecord& op = find_op("batch_norm1d");
  const Value attributes = validate(Value(Dict{{"num_features", 2}}), op.attributes, "");
  const Array x(Shape{1, 2}, 1.0);
  EXPECT_THROW(op.eval({attributes, {&x}, {}, true}), Error);
}

// As PyTorch does: the running variance would become NaN for good.
TEST(InstanceNorm, RefusesToKeepTheVarianceOfOnePosition) {
  const OpRecord& op = find_op("instance_norm1d");
  const Value attributes =
      validate(Value(Dict{{"num_features", 2}, {"track_running_stats", true}}), op.attributes, "");
  const Array one(Shape{3, 2, 1}, 1.0), two(Shape{3, 2, 2}, 1.0), mean(Shape{2}, 0.0),
      variance(Shape{2}, 1.0);
  for (const Array* x : {&one, &two}) {
    std::map<std::string, Array> updates;
    const OpCall call{attributes, {x}, {{"running_mean", &mean}, {"running_var", &variance}},
                      true,       0,   &updates};
    if (x == &one)
      EXPECT_THROW(op.eval(call), Error);
    else
      EXPECT_EQ(op.eval(call).shape, two.shape);
  }
}

}  // namespace
}  // namespace mase::torch_test
