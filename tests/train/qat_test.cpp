// SPDX-License-Identifier: Apache-2.0
// Quantisation-aware training in the loop: learned numbers move and are kept, runs that were
// interrupted end in the same bits with them and with random rounding, batch-norms fold and freeze.
#include <cmath>

#include "mase/base/random.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/run/run_folder.h"
#include "mase/train/trainer.h"
#include "support/graph_bits.h"
#include "support/support.h"

namespace mase::qat_test {
namespace {

using test::expect_same_bits;

Split rings(int64_t rows, uint64_t index) {
  Random random(8, "rings", index);
  Split split;
  split.x = Tensor({rows, 4});
  split.labels = Tensor({rows}, DType::i32);
  for (int64_t row = 0; row < rows; ++row) {
    float* x = split.x.mutable_data<float>() + row * 4;
    double radius = 0;
    for (int64_t f = 0; f < 4; ++f) {
      x[f] = static_cast<float>(random.normal());
      radius += x[f] * x[f];
    }
    split.labels.mutable_data<int32_t>()[row] = radius < 2.4 ? 0 : radius < 4.2 ? 1 : 2;
  }
  return split;
}

Dataset ring_data() {
  Dataset data;
  data.name = data.variant = "rings";
  data.identity = "rings-1";
  data.class_names = {"in", "between", "out"};
  data.train = rings(400, 0);
  data.validation = rings(200, 1);
  data.test = rings(100, 2);
  return data;
}

Value learned_config() {
  return Dict{{"name", "scale_integer"},    {"data_in_width", 4}, {"data_in_is_signed", false},
              {"data_in_clip", "learned"},  {"weight_width", 4},  {"weight_scale", "learned"},
              {"weight_granularity", "row"}};
}

Value stochastic_config() {
  return Dict{{"name", "integer"},
              {"data_in_width", 6},
              {"data_in_frac_width", 4},
              {"data_in_rounding", "stochastic"},
              {"weight_width", 6},
              {"weight_frac_width", 4},
              {"weight_rounding", "stochastic"}};
}

Graph network(const Value& config) {
  Graph graph = make_model("jsc-toy", {.sample_shape = {4}, .outputs = 3, .seed = 1});
  if (config.is_null()) return graph;
  PassContext context;
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"linear", Dict{{"config", config}}}}, context);
  return graph;
}

TrainOptions quick() {
  TrainOptions options;
  options.learning_rate = 1e-2;
  options.max_epochs = 5;
  options.batch_size = 32;
  options.seed = 3;
  return options;
}

struct Trained {
  Graph graph;
  TrainOutcome outcome;
};

Trained train_rings(const TrainOptions& options, Graph graph, RunFolder* run = nullptr,
                    bool resume = false, const TrainObserver& observer = {},
                    const std::function<void(Graph& graph)>& fold = {}) {
  const Dataset data = ring_data();
  TrainSession session;
  if (run) session.folder = run->software();
  session.resume = resume;
  session.observer = observer;
  session.fold_batch_norm = fold;
  TrainOutcome outcome = train(graph, data, options, session);
  return {std::move(graph), std::move(outcome)};
}

void expect_resumable(const TrainOptions& options, const Value& config,
                      const std::function<void(Graph& graph)>& fold = {}) {
  const Trained whole = train_rings(options, network(config), nullptr, false, {}, fold);
  TrainOptions threaded = options;
  threaded.threads = 2;
  expect_same_bits(whole.graph,
                   train_rings(threaded, network(config), nullptr, false, {}, fold).graph);
  for (const int stop_after : {1, 14, 30, 40, 47}) {  // an epoch has 13 batches
    RunFolder run = RunFolder::create(test::temporary_folder(), "run", Dict{});
    int batches = 0;
    TrainObserver observer;
    observer.on_step = [&](const StepEvent&) { ++batches; };
    observer.stop_requested = [&] { return batches >= stop_after - 1; };
    const Trained part = train_rings(options, network(config), &run, false, observer, fold);
    ASSERT_EQ(part.outcome.status, TrainStatus::interrupted) << stop_after;
    const Trained rest = train_rings(options, network(config), &run, true, {}, fold);
    EXPECT_EQ(rest.outcome.status, TrainStatus::finished);
    expect_same_bits(whole.graph, rest.graph);
    EXPECT_EQ(whole.outcome.state.best_loss, rest.outcome.state.best_loss);
  }
}

TEST(Qat, LearnedNumbersMoveAndAreKept) {
  const Graph start = network(learned_config());
  RunFolder run = RunFolder::create(test::temporary_folder(), "run", Dict{});
  const Trained trained = train_rings(quick(), start, &run);
  const Checkpoint last = load_checkpoint(run.checkpoint("last"), CheckpointType::pl);
  int seen = 0;
  for (const auto& [name, tensor] : state_dict(trained.graph)) {
    if (name.find("_scale") == std::string::npos && name.find("_clip") == std::string::npos)
      continue;
    ++seen;
    const size_t dot = name.rfind('.');
    const Tensor& before = *start.modules().at(name.substr(0, dot)).find(name.substr(dot + 1));
    EXPECT_FALSE(before.same_bits(tensor)) << name;
    for (int64_t i = 0; i < tensor.numel(); ++i) EXPECT_GT(std::abs(tensor.item(i)), 0) << name;
    bool kept = false;
    for (const auto& [other, value] : last.tensors)
      kept = kept || (other == name && value.same_bits(tensor));
    EXPECT_TRUE(kept) << name;
  }
  EXPECT_EQ(seen, 6);
}

TEST(Qat, InterruptedRunsEndInTheSameBits) {
  expect_resumable(quick(), learned_config());
  expect_resumable(quick(), stochastic_config());
}

void fold(Graph& graph) {
  PassContext context;
  run_pass(graph, "fuse_batch_norm", Dict{{"quantized", true}}, context);
}

TEST(Qat, BatchNormsFoldWhenTheyFreeze) {
  TrainOptions options = quick();
  options.freeze_bn_epochs = 2;
  const Trained trained = train_rings(options, network(learned_config()), nullptr, false, {}, fold);
  int norms = 0;
  for (const auto& [path, module] : trained.graph.modules()) norms += module.op == "batch_norm1d";
  EXPECT_EQ(norms, 1);  // the first one has no linear layer before it
  EXPECT_EQ(trained.outcome.state.folded_at, 3 * 13);
  EXPECT_GE(trained.outcome.state.best_epoch, 3);  // the best of the network that is delivered
  expect_resumable(options, learned_config(), fold);
  options.freeze_bn_epochs = 0;  // at the start
  const Trained early = train_rings(options, network(learned_config()), nullptr, false, {}, fold);
  EXPECT_EQ(early.outcome.state.folded_at, 0);
}

TEST(Qat, FrozenBatchNormsKeepTheirStatistics) {
  TrainOptions options = quick();
  options.freeze_bn_epochs = 5;
  const Graph start = network(stochastic_config());
  const Trained trained = train_rings(options, start);
  for (const auto& [path, module] : trained.graph.modules()) {
    if (module.op != "batch_norm1d") continue;
    const Tensor& before = *start.modules().at(path).find("running_mean");
    EXPECT_TRUE(module.find("running_mean")->same_bits(before)) << path;
  }
}

}  // namespace
}  // namespace mase::qat_test
