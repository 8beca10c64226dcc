// SPDX-License-Identifier: Apache-2.0
// Built-in networks: parameter totals, the labs' graph text, PyTorch's initial values.
#include "mase/models/model.h"

#include <cmath>

#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"
#include "support/support.h"

namespace mase::models_test {
namespace {

TEST(Models, ParameterTotals) {
  const std::map<std::string, int64_t> totals = {{"jsc-tiny", 117},
                                                 {"jsc-toy", 327},
                                                 {"jsc-10x", 3363},
                                                 {"jsc-toy10x", 4423},
                                                 {"jsc-s", 5615},
                                                 {"jsc-trt", 3231},
                                                 {"toy", 4 * 8 + 8 + 8 * 8 + 8 + 8 * 2 + 2}};
  for (const auto& [name, total] : totals)
    EXPECT_EQ(make_model(name).parameter_count(), total) << name;
}

TEST(Models, AllVerifyAndTakeOtherData) {
  for (const ModelRecord* model : Registry<ModelRecord>::instance().all()) {
    const Graph own = make_model(model->name, {.values = false});
    verify(own);
    const Shape sample = own.node(own.placeholders()[0]).sample_shape;
    const BoundCall first = bind_call(own, own.node(own.users(own.placeholders()[0])[0]));
    ModelInputs inputs;
    // Images stay images, and token numbers a row; all else is flattened.
    inputs.sample_shape = sample.size() == 3                ? Shape{2, 40, 36}
                          : !first.op->index_inputs.empty() ? Shape{9}
                                                            : Shape{2, 3};
    inputs.outputs = 7;
    inputs.values = false;
    const Graph graph = make_model(model->name, inputs);
    verify(graph);
    const NodeId out = graph.outputs().at(0);
    EXPECT_EQ(infer_shapes(graph, 4)[static_cast<size_t>(out)], (Shape{4, 7})) << model->name;
  }
}

TEST(Models, GraphTextIsTheLabs) {
  for (const char* name : {"jsc-tiny", "jsc-10x"})
    test::expect_golden(make_model(name).text(), fmt::format("models/{}.graph.txt", name));
}

TEST(Models, InitialValuesAreUniformWithinPyTorchsBound) {
  const Graph graph = make_model("jsc-10x");
  const Tensor& weight = *graph.modules().at("seq_blocks.5").find("weight");
  double most = 0, sum = 0;
  for (int64_t i = 0; i < weight.numel(); ++i) {
    most = std::max(most, std::abs(weight.item(i)));
    sum += weight.item(i);
  }
  const double bound = 1.0 / std::sqrt(60.0);
  EXPECT_LE(most, bound);
  EXPECT_GT(most, 0.99 * bound);
  EXPECT_NEAR(sum / static_cast<double>(weight.numel()), 0, 0.1 * bound);
}

TEST(Models, SeedsDecideTheValues) {
  ModelInputs one, two;
  two.seed = 1;
  const auto weight = [](const ModelInputs& inputs) {
    return *make_model("jsc-toy", inputs).modules().at("seq_blocks.2").find("weight");
  };
  EXPECT_TRUE(weight(one).same_bits(weight(one)));
  EXPECT_FALSE(weight(one).same_bits(weight(two)));
}

TEST(Models, StateDictIsInPyTorchsOrder) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_dict(make_model("jsc-tiny"))) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "seq_blocks.0.weight", "seq_blocks.0.bias", "seq_blocks.0.running_mean",
                       "seq_blocks.0.running_var", "seq_blocks.0.num_batches_tracked",
                       "seq_blocks.2.weight", "seq_blocks.2.bias"}));
}

TEST(Models, SamplesThatAreTooSmallAreNamed) {
  try {
    make_model("lenet", {.sample_shape = {1, 5, 5}, .outputs = 3});
    FAIL() << "took an image of 5 x 5";
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), "lenet");
    EXPECT_NE(error.cause().find("[1, 5, 5]"), std::string::npos) << error.what();
  }
}

TEST(Models, UnknownNamesSuggest) {
  try {
    make_model("jsc-tinny");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'jsc-tiny'"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace mase::models_test
