// SPDX-License-Identifier: Apache-2.0
// Programs against PyTorch: logits of loaded networks, gradients of a first step, and forty steps
// of training with each optimiser.
#include <cmath>
#include <map>

#include "mase/engine/kernels/optimizer.h"
#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/models/model.h"
#include "mase/train/loss.h"
#include "support/support.h"

namespace mase::golden_test {
namespace {

std::map<std::string, Tensor> golden(const std::string& name) {
  std::map<std::string, Tensor> tensors;
  for (auto& [key, tensor] : load_safetensors(test::golden_path("torch/" + name)))
    tensors.emplace(key, tensor);
  return tensors;
}

// Sets every parameter and buffer of the graph from "<prefix><path>.<name>".
void load(Graph& graph, const std::map<std::string, Tensor>& tensors, const std::string& prefix) {
  for (auto& [path, module] : graph.modules())
    for (TensorTable* table : {&module.parameters, &module.buffers})
      for (auto& [name, tensor] : *table) {
        const auto found = tensors.find(prefix + path + "." + name);
        ASSERT_NE(found, tensors.end()) << path << "." << name;
        tensor = found->second.to(tensor.dtype()).reshaped(tensor.shape());
      }
}

TEST(Golden, LogitsOfLoadedNetworks) {
  for (const std::string name : {"jsc-tiny", "jsc-toy", "jsc-10x", "jsc-toy10x"}) {
    const auto expected = golden(name + ".expected.safetensors");
    Graph graph = make_model(name);
    load(graph, expected, "param.");
    const Tensor logits = run(graph, {expected.at("x")}).at(0);
    const Tensor& wanted = expected.at("logits");
    ASSERT_EQ(logits.shape(), wanted.shape());
    for (int64_t i = 0; i < logits.numel(); ++i)
      EXPECT_NEAR(logits.item(i), wanted.item(i), 1e-5) << name << " " << i;
  }
}

// The derivative by a bias that only shifts the input of a batch norm is exactly 0. PyTorch
// computes rounding noise of about 1e-9 there, which Adam scales up to steps of the size of the
// learning rate: a random walk of that bias, and of the running mean that follows it, without any
// effect on the network. Here the gradient is 0 and both stay; there is nothing to compare.
bool cancels(const Graph& graph, const std::string& name) {
  const size_t dot = name.rfind('.');
  const int block = std::stoi(name.substr(name.find('.') + 1));
  const std::string kind = name.substr(dot + 1);
  const auto op = [&](int index) {
    const auto found = graph.modules().find("seq_blocks." + std::to_string(index));
    return found == graph.modules().end() ? "" : found->second.op;
  };
  if (kind == "bias") return op(block) == "linear" && op(block + 1) == "batch_norm1d";
  return kind == "running_mean" && op(block) == "batch_norm1d" && op(block - 1) == "linear";
}

struct Case {
  std::string model, optimizer;
};

class Trajectory : public testing::TestWithParam<Case> {};

TEST_P(Trajectory, FollowsPyTorch) {
  const auto [model, optimizer] = GetParam();
  const auto expected = golden("trajectory_" + model + "_" + optimizer + ".safetensors");
  Graph graph = make_model(model);
  load(graph, expected, "init.");
  CompileOptions options;
  options.training = true;
  options.batch_size = 64;
  options.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, options);
  const Tensor labels = expected.at("y").to(DType::i32);
  Batch batch;
  batch.inputs = {RowTensor(expected.at("x").values<float>(), 16)};
  batch.target = RowTensor(labels.values<int32_t>());
  batch.size = 64;
  const size_t count = program.parameter_memory().size();
  std::vector<float> mean(count), square(count);
  for (int step = 0; step < 40; ++step) {
    batch.first_row = step * 64;
    const StepResult result = program.forward_backward(batch);
    const double wanted = expected.at("loss").item(step);
    ASSERT_NEAR(result.loss, wanted, 1e-4 * std::abs(wanted)) << "step " << step;
    if (step == 0)
      for (const ParameterView& view : program.parameters()) {
        const Tensor& gradient = expected.at("grad0." + view.name);
        for (size_t i = 0; i < view.gradient.size(); ++i)
          EXPECT_NEAR(view.gradient[i], gradient.item(static_cast<int64_t>(i)), 1e-5) << view.name;
      }
    const double rate = expected.at("lr").item(step);
    if (optimizer == "sgd")
      kernels::sgd(program.parameter_memory(), program.gradient_memory(), mean,
                   {.learning_rate = rate,
                    .momentum = 0.9,
                    .weight_decay = 5e-4,
                    .nesterov = true,
                    .first = step == 0});
    else
      kernels::adam(program.parameter_memory(), program.gradient_memory(), mean, square,
                    {.learning_rate = rate,
                     .weight_decay = optimizer == "adamw" ? 0.01 : 0.0,
                     .decoupled = optimizer == "adamw",
                     .step = step + 1});
    program.parameters_changed();
  }
  for (const auto& [name, tensor] : program.state()) {
    const Tensor& wanted = expected.at("final." + name);
    if (cancels(graph, name)) continue;
    for (int64_t i = 0; i < tensor.numel(); ++i)
      EXPECT_NEAR(tensor.item(i), wanted.item(i), 1e-3 * std::max(1.0, std::abs(wanted.item(i))))
          << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Trajectory,
                         testing::Values(Case{"jsc-tiny", "adam"}, Case{"jsc-toy", "adam"},
                                         Case{"jsc-toy", "adamw"}, Case{"jsc-toy", "sgd"},
                                         Case{"jsc-10x", "adam"}),
                         [](const auto& info) {
                           std::string name = info.param.model + "_" + info.param.optimizer;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace mase::golden_test
