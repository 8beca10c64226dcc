// SPDX-License-Identifier: Apache-2.0
// ch bench: training steps and inference batches per second on generated data. A training step is
// what a run does each step: gathering shuffled rows, forward, backward, Adam, running accuracy.
// `load` measures the gathering by itself, and whether a second thread that gathers ahead pays.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/cli/bench_primitives.h"
#include "mase/cli/options.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/optimizer.h"
#include "mase/engine/program.h"
#include "mase/ir/value_type.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/run/network.h"
#include "mase/train/loss.h"

namespace mase::bench_command {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// As many rows as fit into 64 MB, more than a cache, whole batches.
int64_t fitting_rows(const Graph& graph, int64_t wanted, int64_t batch_size) {
  int64_t floats = 1;
  for (const NodeId id : graph.placeholders()) floats += element_count(graph.node(id).sample_shape);
  const int64_t most = (int64_t{1} << 24) / floats / batch_size * batch_size;
  return std::min(wanted, std::max(most, 4 * batch_size));
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
      const auto limit = index_limit(graph, id);
      for (int64_t i = 0; i < input.numel(); ++i)
        values[i] = static_cast<float>(
            limit ? static_cast<double>(random.below(static_cast<uint64_t>(*limit)))
                  : random.uniform(-2, 2));
      inputs.push_back(std::move(input));
    }
    for (int64_t i = 0; i < rows; ++i)
      labels.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(classes))));
    order = random.permutation(static_cast<uint32_t>(rows));
  }
};

// A second thread that copies the rows of the next batch while the step runs on the last one. The
// two wait for each other spinning, which is the fastest way there is.
class Ahead {
 public:
  Ahead(const BenchData& data, int64_t batch_size)
      : data_(data), size_(batch_size), thread_([this] { work(); }) {}
  ~Ahead() {
    wanted_.store(stop);
    thread_.join();
  }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // The batch that begins at `position` of the order must be the one asked for last.
  void wait(int64_t position, Batch& batch) {
    while (ready_.load(std::memory_order_acquire) != position) std::this_thread::yield();
    const Copy& copy = copies_[current_];
    for (size_t i = 0; i < copy.inputs.size(); ++i)
      batch.inputs[i] = RowTensor(copy.inputs[i], batch.inputs[i].width);
    batch.target = RowTensor(copy.labels);
    batch.rows = {};
    batch.upcoming = {};
    batch.first_row = 0;
    current_ = 1 - current_;
  }
  void ask(int64_t position) { wanted_.store(position, std::memory_order_release); }

 private:
  static constexpr int64_t stop = -2;
  struct Copy {
    std::vector<std::vector<float>> inputs;
    std::vector<int32_t> labels;
  };

  void work() {
    size_t to = 0;
    for (int64_t done = -1;; to = 1 - to) {
      int64_t position = done;
      while ((position = wanted_.load(std::memory_order_acquire)) == done)
        std::this_thread::yield();
      if (position == stop) return;
      fill(copies_[to], position);
      ready_.store(position, std::memory_order_release);
      done = position;
    }
  }

  void fill(Copy& copy, int64_t position) const {
    const uint32_t* rows = data_.order.data() + position;
    copy.inputs.resize(data_.inputs.size());
    copy.labels.resize(static_cast<size_t>(size_) + 16);
    for (size_t i = 0; i < copy.inputs.size(); ++i) {
      const auto width = static_cast<size_t>(data_.inputs[i].numel() / data_.rows);
      copy.inputs[i].resize(static_cast<size_t>(size_) * width);
      for (size_t b = 0; b < static_cast<size_t>(size_); ++b)
        std::memcpy(&copy.inputs[i][b * width], data_.inputs[i].data<float>() + rows[b] * width,
                    width * sizeof(float));
    }
    for (size_t b = 0; b < static_cast<size_t>(size_); ++b) copy.labels[b] = data_.labels[rows[b]];
  }

  const BenchData& data_;
  int64_t size_;
  Copy copies_[2];
  size_t current_ = 0;
  std::atomic<int64_t> wanted_ = -1, ready_ = -1;
  std::thread thread_;
};

CompileOptions options_of(bool training, int64_t batch_size, int threads) {
  CompileOptions options;
  options.training = training;
  options.batch_size = batch_size;
  options.threads = threads;
  if (training) options.loss = make_loss("cross_entropy");
  return options;
}

class Bench {
 public:
  Bench(const Graph& graph, bool training, int64_t batch_size, int threads, int64_t rows)
      : training_(training),
        program_(compile(graph, training, batch_size, threads)),
        classes_(std::max<int64_t>(1, program_.output_shape(0).back())),
        data_(graph, std::max<int64_t>(rows / batch_size, 4) * batch_size, classes_) {
    for (const Tensor& input : data_.inputs) batch_.inputs.emplace_back(input);
    batch_.size = batch_size;
    if (training) {
      batch_.target = RowTensor(data_.labels);
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
    return repeat(seconds, [&] { step(); });
  }
  // The same batch again and again, whose rows are in the cache.
  double cached(double seconds) {
    return repeat(seconds, [&] {
      step();
      position_ = 0;
    });
  }
  // Only the gathering of such a batch, as the engine does it.
  double gathering(double seconds) {
    return repeat(seconds, [&] {
      for (const Tensor& input : data_.inputs) {
        const int64_t width = input.numel() / data_.rows, stride = batch_.size + 16;
        gathered_.resize(static_cast<size_t>(width * stride));
        kernels::gather(input.data<float>(), width, data_.order.data(), 0, batch_.size,
                        gathered_.data(), stride);
      }
    });
  }
  // Whole steps, with another thread gathering ahead.
  double prefetching(double seconds) {
    const Batch own = batch_;
    double rate = 0;
    {
      Ahead ahead(data_, batch_.size);
      ahead.ask(position_);
      rate = repeat(seconds, [&] {
        ahead.wait(position_, batch_);
        position_ = next();
        ahead.ask(position_);
        train();
      });
    }
    batch_.inputs = own.inputs;
    batch_.target = own.target;
    return rate;
  }

 private:
  template <class Step>
  static double repeat(double seconds, const Step& step) {
    const auto start = Clock::now();
    int64_t steps = 1;
    step();
    while (seconds_since(start) < seconds)  // looking at the clock takes as long as a small layer
      for (int i = 0; i < 5; ++i, ++steps) step();
    return static_cast<double>(steps) / seconds_since(start);
  }

  static Program compile(const Graph& graph, bool training, int64_t batch_size, int threads) {
    return Program::compile(graph, options_of(training, batch_size, threads));
  }

  void step() {
    batch_.first_row = position_;
    if (training_) {
      const auto size = static_cast<size_t>(batch_.size);
      batch_.rows = {data_.order.data() + position_, size};
      batch_.upcoming = {data_.order.data() + next(), size};
      train();
    } else {
      program_.forward(batch_);
      for (size_t i = 0; i < outputs_.size(); ++i)
        program_.read_output(static_cast<int>(i), outputs_[i].data());
    }
    position_ = next();
  }

  void train() {
    correct_ += program_.forward_backward(batch_).correct;
    kernels::adam(program_.parameter_memory(), program_.gradient_memory(), mean_, square_,
                  {.learning_rate = 1e-4, .step = ++updates_});
    program_.parameters_changed();
    ++batch_.step;
  }

  int64_t next() const {
    return position_ + 2 * batch_.size > data_.rows ? 0 : position_ + batch_.size;
  }

  bool training_;
  Program program_;
  int64_t classes_;
  BenchData data_;
  Batch batch_;
  std::vector<float> mean_, square_;
  std::vector<std::vector<float>> outputs_;
  std::vector<float> gathered_;
  int64_t position_ = 0, correct_ = 0, updates_ = 0;
};

// What loading costs, in microseconds, beside the whole step: the gathering, and what a step of
// shuffled rows takes longer than one whose rows are in the cache. All in turn, the best of each.
Value measure_loading(Bench& bench, double seconds) {
  constexpr double window = 0.0005;
  double gathering = 0, cached = 0, step = 0, ahead = 0;
  const auto rounds = std::max<int64_t>(8, static_cast<int64_t>(seconds / window / 4));
  for (int64_t i = 0; i < rounds; ++i) {
    gathering = std::max(gathering, bench.gathering(window));
    cached = std::max(cached, bench.cached(window));
    step = std::max(step, bench.repetition(window));
    ahead = std::max(ahead, bench.prefetching(window));
  }
  const double loading = 1e6 / gathering + std::max(0.0, 1e6 / step - 1e6 / cached);
  return Dict{{"loading_microseconds", loading},
              {"step_microseconds", 1e6 / step},
              {"loading_share", loading * step / 1e6},
              {"prefetched_step_microseconds", 1e6 / ahead}};
}

int show_result(const Arguments& arguments, const Value& result, const Table& table) {
  const std::string json =
      arguments["json"].is_string() ? arguments["json"].as_string() : std::string();
  if (json == "-") {
    fmt::print("{}\n", to_json(result));
    return 0;
  }
  fmt::print("{}\n", table.str());
  if (!json.empty()) write_file_atomically(json, to_json(result) + "\n");
  return 0;
}

// What is measured, as text, after a stage of its compilation.
std::string text_after(const std::string& stage, const Graph& graph,
                       const CompileOptions& options) {
  if (stage == "plan") return Program::compile(graph, options).dump();
  return stage_text(graph, options,
                    stage == "lower"  ? Stage::lower
                    : stage == "fuse" ? Stage::fuse
                                      : Stage::differentiate);
}

Graph after_passes(const Graph& graph, const std::string& path) {
  const std::vector<PassCall> calls =
      pass_calls(passes_of_file(path, keys_of_all_commands()), "passes");
  prepare_passes(graph, calls);
  Graph result = graph;
  PassContext context;
  run_passes(result, calls, context);
  return result;
}

// A built-in network, a description, or a file that holds a whole network.
Graph network_of(const std::string& model) {
  return is_network_file(model) ? graph_of_file(model) : make_model(model);
}

int run_bench(const Arguments& arguments) {
  const std::string mode = arguments["mode"].as_string();
  const std::string model =
      arguments["model"].is_string() ? arguments["model"].as_string() : std::string();
  if (mode == "primitives") {
    for (const char* option : {"batch_size", "threads", "config", "dump"})
      if (arguments.was_typed(option))
        throw Error("ch bench primitives", fmt::format("'{}' means nothing here", option),
                    "it has sizes of its own, and one thread");
    const PrimitiveFigures figures = bench_primitives(model, arguments["seconds"].as_double());
    const bool json = arguments["json"].is_string() && arguments["json"].as_string() == "-";
    if (!json) fmt::print("{}\n", figures.peaks);
    return show_result(arguments, figures.result, figures.table);
  }
  if (mode != "train" && mode != "infer" && mode != "load")
    throw Error("ch bench", fmt::format("unknown mode '{}'", printable(mode)),
                "train, infer, load or primitives");
  if (model.empty()) throw Error("ch bench", "no network was named", "ch bench train jsc-10x");
  const int64_t batch_size = arguments["batch_size"].as_int();
  const auto threads = static_cast<int>(arguments["threads"].as_int());
  const double seconds = arguments["seconds"].as_double();
  const Graph graph = network_of(model);
  if (graph.outputs().empty() || graph.placeholders().empty())
    throw Error(model, "a network without inputs or outputs cannot be timed");
  if (arguments["dump"].is_string()) {
    for (const char* option : {"seconds", "json"})
      if (arguments.was_typed(option))
        throw Error("ch bench --dump", fmt::format("'{}' means nothing here", option),
                    "nothing is measured");
    const Graph network = arguments["config"].is_string()
                              ? after_passes(graph, arguments["config"].as_string())
                              : graph;
    fmt::print("{}", text_after(arguments["dump"].as_string(), network,
                                options_of(mode != "infer", batch_size, threads)));
    return 0;
  }
  // With passes, the network before them and after them, in turns: what do they cost?
  std::vector<Graph> networks = {graph};
  if (arguments["config"].is_string())
    networks.push_back(after_passes(graph, arguments["config"].as_string()));
  // Loading depends on how much memory the rows are spread over: as much as those of jsc-sim.
  constexpr int64_t many_rows = 131072, training_rows = 72000;
  const int64_t rows = fitting_rows(graph, mode == "load" ? training_rows : many_rows, batch_size);
  std::vector<std::unique_ptr<Bench>> benches;
  for (const Graph& network : networks)
    benches.push_back(std::make_unique<Bench>(network, mode != "infer", batch_size, threads, rows));
  // Many short repetitions: on a busy machine some of them are undisturbed.
  constexpr double window = 0.002;
  const auto repetitions = std::max<int64_t>(8, static_cast<int64_t>(seconds / window));
  for (const auto& bench : benches) bench->repetition(seconds / 10);  // caches and clock
  if (mode == "load") {
    Value result = measure_loading(*benches.back(), seconds);
    result["model"] = graph.name;
    result["mode"] = mode;
    result["batch_size"] = batch_size;
    Table table(
        {"Model", "Batch", "Loading (us)", "Step (us)", "Share", "Step, loaded ahead (us)"});
    table.add({graph.name, std::to_string(batch_size),
               fmt::format("{:.2f}", result["loading_microseconds"].as_double()),
               fmt::format("{:.2f}", result["step_microseconds"].as_double()),
               fmt::format("{:.1f} %", 100 * result["loading_share"].as_double()),
               fmt::format("{:.2f}", result["prefetched_step_microseconds"].as_double())});
    return show_result(arguments, result, table);
  }
  std::vector<double> best(benches.size(), 0);
  const Clock::time_point start = Clock::now();
  // A step of a large network is longer than a window: then time is what ends it.
  for (int64_t i = 0; i < repetitions && (i < 3 || seconds_since(start) < seconds); ++i)
    for (size_t k = 0; k < benches.size(); ++k)
      best[k] =
          std::max(best[k], benches[k]->repetition(seconds / static_cast<double>(repetitions)));
  Value result = Dict{{"model", graph.name},
                      {"mode", mode},
                      {"batch_size", batch_size},
                      {"threads", static_cast<int64_t>(threads)},
                      {"steps_per_second", best.back()},
                      {"samples_per_second", best.back() * static_cast<double>(batch_size)}};
  const bool compared = best.size() > 1;
  if (compared) {
    result["steps_per_second_before_passes"] = best[0];
    result["time_ratio"] = best[0] / best[1];
  }
  std::vector<std::string> heads = {"Model", "Mode", "Batch", "Threads", "Steps/s", "Samples/s"};
  if (compared) heads.emplace_back("Time");
  Table table(heads);
  for (size_t k = 0; k < best.size(); ++k) {
    std::vector<std::string> cells = {graph.name + (k > 0 ? " after passes" : ""),
                                      mode,
                                      std::to_string(batch_size),
                                      std::to_string(threads),
                                      fmt::format("{:.{}f}", best[k], best[k] < 100 ? 2 : 0),
                                      fmt::format("{:.4g}", best[k] * double(batch_size))};
    if (compared) cells.push_back(fmt::format("{:.2f}x", best[0] / best[k]));
    table.add(cells);
  }
  return show_result(arguments, result, table);
}

const Register<CommandRecord> registered{{
    .name = "bench",
    .summary = "measure training steps, inference batches or batch loading",
    .help =
        "Runs the network on generated data and reports the best of many short repetitions. A "
        "training step gathers shuffled rows, runs forward and backward, updates the "
        "parameters with Adam and counts hits. An inference step reads a batch and writes its "
        "results. load compares the gathering alone with the whole training step, and with a "
        "step whose rows a second thread gathers ahead. primitives times what programs are made "
        "of, each at one size, in every variant that applies to this machine and backward, "
        "beside the core's measured peaks: products beside its multiply-adds (integers, which "
        "are several to a lane, may be above), all else beside a copy in cache.",
    .positionals = {{.name = "mode", .help = "train, infer, load or primitives"},
                    {.name = "model",
                     .help = "network name, description (.toml) or file (.onnx, .mz); with "
                             "primitives: only the one of this name",
                     .required = false,
                     .option = true}},
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
        {.name = "config",
         .type = FieldType::text,
         .help = "a TOML file: the network is also timed after its [passes.*], in turns"},
        {.name = "dump",
         .type = FieldType::text,
         .help = "measure nothing and print the program instead: its primitives when it is "
                 "lowered or fused, its steps when it is differentiated, and these with their "
                 "memory when it is planned; after [passes.*], if there are any",
         .choices = {"lower", "fuse", "differentiate", "plan"}},
        {.name = "json",
         .type = FieldType::text,
         .help = "write the result as JSON to this file; - prints it instead of the table"},
    }},
    .examples = {"ch bench train jsc-10x --batch-size 1024", "ch bench infer jsc-tiny --json -",
                 "ch bench load jsc-tiny", "ch bench primitives", "ch bench primitives linear",
                 "ch bench infer jsc-tiny --dump fuse"},
    .run = run_bench,
}};

}  // namespace
}  // namespace mase::bench_command
