// SPDX-License-Identifier: Apache-2.0
// PyTorch's own training runs, step by step: gradients of the first step, the loss of each of 40
// steps, and the weights and running statistics at the end.
#include <cmath>

#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/models/model.h"
#include "mase/train/loss.h"
#include "mase/train/optimizer.h"
#include "mase/train/schedule.h"
#include "support/support.h"

namespace mase::trajectories_test {
namespace {

struct Case {
  const char* model;
  const char* optimizer;
  double rate, eta_min;
  Dict arguments;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model << " " << c.optimizer; }

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return replace_all(fmt::format("{}_{}", info.param.model, info.param.optimizer), "-", "_");
}

// A bias in front of a batch norm has the gradient 0; PyTorch's is rounding noise, which Adam
// scales up to full steps. That bias, and the running mean that follows it, walk at random without
// any effect on the network, so there is nothing to compare. (SGD leaves noise as small as it is.)
bool walks_at_random(const Graph& graph, const std::string& name, const std::string& optimizer) {
  if (optimizer == "sgd") return false;
  const size_t dot = name.rfind('.');
  const std::string path = name.substr(0, dot), kind = name.substr(dot + 1);
  const auto op = [&](int64_t index) {
    const auto found = graph.modules().find(fmt::format("seq_blocks.{}", index));
    return found == graph.modules().end() ? "" : found->second.op;
  };
  const int64_t block = parse_integer(path.substr(path.rfind('.') + 1)).value();
  if (kind == "bias") return op(block) == "linear" && op(block + 1) == "batch_norm1d";
  return kind == "running_mean" && op(block) == "batch_norm1d" && op(block - 1) == "linear";
}

class Trajectories : public testing::TestWithParam<Case> {};

const Tensor* find(const TensorTable& table, const std::string& name) {
  for (const auto& [key, tensor] : table)
    if (key == name) return &tensor;
  return nullptr;
}

Graph initial_network(const std::string& model, const TensorTable& golden) {
  Graph graph = make_model(model);
  for (auto& [path, module] : graph.modules())
    for (TensorTable* table : {&module.parameters, &module.buffers})
      for (auto& [name, tensor] : *table) {
        const Tensor* start = find(golden, "init." + path + "." + name);
        EXPECT_TRUE(start) << path << "." << name;
        if (start) tensor = start->to(tensor.dtype()).reshaped(tensor.shape());
      }
  return graph;
}

TEST_P(Trajectories, FollowPyTorch) {
  const Case& c = GetParam();
  const TensorTable golden = load_safetensors(
      test::golden_path(fmt::format("torch/trajectory_{}_{}.safetensors", c.model, c.optimizer)));
  const Graph graph = initial_network(c.model, golden);
  const Tensor x = find(golden, "x")->to(DType::f32), labels = find(golden, "y")->to(DType::i32);
  const Tensor& losses = *find(golden, "loss");

  CompileOptions compile;
  compile.training = true;
  compile.batch_size = 64;
  compile.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, compile);
  Optimizer optimizer(c.optimizer, c.arguments, program.parameter_memory().size());
  const Schedule schedule("cosine", Dict{{"eta_min", c.eta_min}});
  for (int64_t step = 0; step < 40; ++step) {
    Batch batch;
    batch.inputs = {RowTensor(x.values<float>(), 16)};
    batch.first_row = step * 64;
    batch.size = 64;
    batch.target = RowTensor(labels.values<int32_t>());
    const StepResult result = program.forward_backward(batch);
    EXPECT_NEAR(result.loss, losses.item(step), 1e-4 * std::fabs(losses.item(step)))
        << "step " << step;
    if (step == 0)
      for (const ParameterView& parameter : program.parameters()) {
        const Tensor* wanted = find(golden, "grad0." + parameter.name);
        ASSERT_TRUE(wanted) << parameter.name;
        for (size_t i = 0; i < parameter.gradient.size(); ++i)
          EXPECT_NEAR(parameter.gradient[i], wanted->item(static_cast<int64_t>(i)), 1e-5)
              << parameter.name << " " << i;
      }
    optimizer.step(program.parameter_memory(), program.gradient_memory(),
                   schedule.rate({c.rate, step / 10, step, 4, 40}));
    program.parameters_changed();
  }
  for (const auto& [name, tensor] : program.state()) {
    const Tensor* wanted = find(golden, "final." + name);
    ASSERT_TRUE(wanted) << name;
    if (walks_at_random(graph, name, c.optimizer)) continue;
    for (int64_t i = 0; i < tensor.numel(); ++i)
      EXPECT_NEAR(tensor.item(i), wanted->item(i), 1e-3) << name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, Trajectories,
    testing::Values(Case{"jsc-tiny", "adam", 1e-2, 1e-6, {}},
                    Case{"jsc-toy", "adam", 1e-2, 1e-6, {}},
                    Case{"jsc-10x", "adam", 1e-2, 1e-6, {}},
                    Case{"jsc-toy", "adamw", 1e-2, 1e-6, Dict{{"weight_decay", 0.01}}},
                    Case{"jsc-toy", "sgd", 5e-2, 0,
                         Dict{{"momentum", 0.9}, {"nesterov", true}, {"weight_decay", 5e-4}}}),
    case_name);

}  // namespace
}  // namespace mase::trajectories_test
