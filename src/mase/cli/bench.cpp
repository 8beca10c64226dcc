// SPDX-License-Identifier: Apache-2.0
// ch bench: training steps and inference batches per second on generated data. A training step is
// what a run does each step: gathering shuffled rows, forward, backward, Adam, running accuracy.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/engine/kernels/optimizer.h"
#include "mase/engine/program.h"
#include "mase/models/model.h"

namespace mase {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Generated samples, larger than a training run's share of the caches.
struct BenchData {
  std::vector<Tensor> inputs;
  std::vector<int32_t> labels;
  std::vector<uint32_t> order;
  int64_t rows;

  BenchData(const Graph& graph, int64_t rows_wanted, int64_t classes) : rows(rows_wanted) {
    Random random(0, "bench");
    for (const NodeId id : graph.placeholders()) {
      Shape shape = graph.node(id).sample_shape;
      shape.insert(shape.begin(), rows);
      Tensor input(shape);
      float* values = input.mutable_data<float>();
      for (int64_t i = 0; i < input.numel(); ++i)
        values[i] = static_cast<float>(random.uniform(-2, 2));
      inputs.push_back(std::move(input));
    }
    for (int64_t i = 0; i < rows; ++i)
      labels.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(classes))));
    order = random.permutation(static_cast<uint32_t>(rows));
  }
};

class Bench {
 public:
  Bench(const Graph& graph, bool training, int64_t batch_size, int threads)
      : training_(training),
        program_(compile(graph, training, batch_size, threads)),
        classes_(std::max<int64_t>(1, program_.output_shape(0).back())),
        data_(graph, std::max<int64_t>(131072 / batch_size, 4) * batch_size, classes_) {
    for (const Tensor& input : data_.inputs) batch_.sources.push_back(input.data<float>());
    batch_.size = batch_size;
    if (training) {
      batch_.labels = data_.labels.data();
      mean_.resize(program_.parameter_memory().size());
      square_.resize(mean_.size());
    } else {
      for (size_t i = 0; i < graph.outputs().size(); ++i) {
        const Shape shape = program_.output_shape(static_cast<int>(i));
        outputs_.emplace_back(static_cast<size_t>(element_count(shape)));
      }
    }
  }

  // Steps per second of one repetition.
  double repetition(double seconds) {
    const auto start = Clock::now();
    int64_t steps = 0;
    do {
      for (int i = 0; i < 5; ++i, ++steps) step();
    } while (seconds_since(start) < seconds);
    return static_cast<double>(steps) / seconds_since(start);
  }

 private:
  static Program compile(const Graph& graph, bool training, int64_t batch_size, int threads) {
    CompileOptions options;
    options.training = training;
    options.batch_size = batch_size;
    options.threads = threads;
    options.loss = training ? LossKind::cross_entropy : LossKind::none;
    return Program::compile(graph, options);
  }

  void step() {
    batch_.first_row = position_;
    const int64_t next = position_ + 2 * batch_.size > data_.rows ? 0 : position_ + batch_.size;
    if (training_) {
      batch_.rows = data_.order.data() + position_;
      batch_.upcoming = {data_.order.data() + next, static_cast<size_t>(batch_.size)};
      correct_ += program_.forward_backward(batch_).correct;
      kernels::adam(program_.parameter_memory(), program_.gradient_memory(), mean_, square_,
                    {.learning_rate = 1e-4, .step = ++updates_});
      program_.parameters_changed();
      ++batch_.step;
    } else {
      program_.forward(batch_);
      for (size_t i = 0; i < outputs_.size(); ++i)
        program_.read_output(static_cast<int>(i), outputs_[i].data());
    }
    position_ = next;
  }

  bool training_;
  Program program_;
  int64_t classes_;
  BenchData data_;
  Program::Batch batch_;
  std::vector<float> mean_, square_;
  std::vector<std::vector<float>> outputs_;
  int64_t position_ = 0, correct_ = 0, updates_ = 0;
};

int run_bench(const Arguments& arguments) {
  const std::string mode = arguments["mode"].as_string(), model = arguments["model"].as_string();
  if (mode != "train" && mode != "infer")
    throw Error("ch bench", fmt::format("unknown mode '{}'", printable(mode)), "train or infer");
  const int64_t batch_size = arguments["batch_size"].as_int();
  const auto threads = static_cast<int>(arguments["threads"].as_int());
  const double seconds = arguments["seconds"].as_double();
  const Graph graph = make_model(model);
  if (graph.outputs().empty() || graph.placeholders().empty())
    throw Error(model, "a network without inputs or outputs cannot be timed");
  Bench bench(graph, mode == "train", batch_size, threads);
  // Many short repetitions: on a busy machine some of them are undisturbed.
  constexpr double window = 0.002;
  const auto repetitions = std::max<int64_t>(8, static_cast<int64_t>(seconds / window));
  bench.repetition(seconds / 10);  // caches and clock
  double best = 0;
  for (int64_t i = 0; i < repetitions; ++i)
    best = std::max(best, bench.repetition(seconds / static_cast<double>(repetitions)));
  Value result = Dict{
      {"model", graph.name},      {"mode", mode},
      {"batch_size", batch_size}, {"threads", static_cast<int64_t>(threads)},
      {"steps_per_second", best}, {"samples_per_second", best * static_cast<double>(batch_size)}};
  const std::string json =
      arguments["json"].is_string() ? arguments["json"].as_string() : std::string();
  if (json == "-") {
    fmt::print("{}\n", to_json(result));
    return 0;
  }
  Table table({"Model", "Mode", "Batch", "Threads", "Steps/s", "Samples/s"});
  table.add({graph.name, mode, std::to_string(batch_size), std::to_string(threads),
             fmt::format("{:.0f}", best), fmt::format("{:.4g}", best * double(batch_size))});
  fmt::print("{}\n", table.str());
  if (!json.empty()) write_file_atomically(json, to_json(result) + "\n");
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "bench",
    .summary = "measure training steps or inference batches per second",
    .help = "Runs the network on generated data and reports the best of many short repetitions. A "
            "training step gathers shuffled rows, runs forward and backward, updates the "
            "parameters with Adam and counts hits. An inference step reads a batch and writes its "
            "results.",
    .positionals = {{.name = "mode", .help = "train or infer"},
                    {.name = "model", .help = "network name or description (.toml)"}},
    .options = {{
        {.name = "batch_size",
         .type = FieldType::integer,
         .default_value = 256,
         .help = "samples per step",
         .minimum = 1,
         .maximum = 1 << 20},
        {.name = "threads",
         .type = FieldType::integer,
         .default_value = 1,
         .help = "threads of the engine",
         .minimum = 1,
         .maximum = 1024},
        {.name = "seconds",
         .type = FieldType::number,
         .default_value = 2.0,
         .help = "time to measure for",
         .minimum = 0.001,
         .maximum = 3600},
        {.name = "json",
         .type = FieldType::text,
         .help = "write the result as JSON to this file; - prints it instead of the table"},
    }},
    .examples = {"ch bench train jsc-10x --batch-size 1024", "ch bench infer jsc-tiny --json -"},
    .run = run_bench,
}};

}  // namespace
}  // namespace mase
