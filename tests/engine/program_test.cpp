// SPDX-License-Identifier: Apache-2.0
// Compiled programs against the oracle (ir/evaluate.h): results of random graphs with branches,
// shared inputs and modules, several inputs and outputs; gradients against finite differences; last
// smaller batches; threads; and that a step allocates nothing.
#include "mase/engine/program.h"

#include <cmath>

#include "engine/against_reference.h"
#include "engine/instruction_sets.h"
#include "engine/layers.h"
#include "mase/base/random.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "mase/train/loss.h"
#include "support/counted_memory.h"
#include "support/support.h"

namespace mase::program_test {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed, "graph"), seed_(seed) {
    graph.name = "random";
    const auto width = static_cast<int64_t>(2 + random_.below(4));
    add(graph.add_placeholder("x", {width}), width);
    if (random_.below(2)) add(graph.add_placeholder("z", {3}), 3);
    for (int i = 0; i < 9; ++i) grow();
    const Item last = items_.back(), other = pick();
    std::vector<NodeId> outputs = {
        module("linear", last, {{"in_features", last.width}, {"out_features", 3}})};
    if (random_.below(2)) outputs.push_back(other.node);
    graph.add_output(outputs);
  }

  Graph graph;

 private:
  struct Item {
    NodeId node;
    int64_t width;
  };

  void add(NodeId node, int64_t width) { items_.push_back({node, width}); }
  Item pick() { return items_[random_.below(items_.size())]; }

  NodeId module(const std::string& op, Item input, Dict attributes) {
    const std::string path = fmt::format("blocks.{}", count_++);
    return graph.add_module(path, make_module(op, Value(std::move(attributes)), seed_ + 7, path),
                            {input.node});
  }

  void grow() {
    const Item a = pick(), b = pick();
    switch (random_.below(11)) {
      case 0:
      case 1: {
        const auto width = static_cast<int64_t>(1 + random_.below(5));
        const NodeId node =
            module("linear", a, {{"in_features", a.width}, {"out_features", width}});
        if (a.width == width && random_.below(2))  // the module is called twice
          return add(graph.call_module(graph.node(node).target, {Argument::node(node)}), width);
        return add(node, width);
      }
      case 2:
        return add(module("batch_norm1d", a, {{"num_features", a.width}}), a.width);
      case 3: {
        const NodeId norm = module("batch_norm1d", a, {{"num_features", a.width}});
        return add(module("relu", {norm, a.width}, {}), a.width);
      }
      case 4:
        return add(module("sigmoid", a, {}), a.width);
      case 5:
        return add(module("gelu", a, {}), a.width);
      case 6:
        return add(module("layer_norm", a, {{"normalized_shape", a.width}}), a.width);
      case 7:
        return add(module("softmax", a, {{"dim", 1}}), a.width);
      case 8:
        return add(graph.call_function(
                       "cat", {Argument::list({Argument::node(a.node), Argument::node(b.node)})},
                       {{"dim", Argument::literal(1)}}),
                   a.width + b.width);
      default:
        if (a.width != b.width) return add(module("tanh", a, {}), a.width);
        return add(graph.call_function(random_.below(2) ? "add" : "mul",
                                       {Argument::node(a.node), Argument::node(b.node)}),
                   a.width);
    }
  }

  Random random_;
  uint64_t seed_;
  std::vector<Item> items_;
  int count_ = 0;
};

struct Inputs {
  std::vector<Tensor> tensors;
  std::vector<int32_t> labels;

  Inputs(const Graph& graph, int64_t rows) {
    Random random(5, "inputs");
    for (const NodeId id : graph.placeholders()) {
      Shape shape = graph.node(id).sample_shape;
      shape.insert(shape.begin(), rows);
      Tensor tensor(shape);
      for (int64_t i = 0; i < tensor.numel(); ++i)
        tensor.mutable_data<float>()[i] = static_cast<float>(random.uniform(-2, 2));
      tensors.push_back(tensor);
    }
    for (int64_t i = 0; i < rows; ++i) labels.push_back(static_cast<int32_t>(random.below(3)));
  }

  Batch batch(int64_t size) const {
    Batch batch;
    for (const Tensor& tensor : tensors) batch.inputs.emplace_back(tensor);
    batch.target = RowTensor(labels);
    batch.size = size;
    return batch;
  }

  std::vector<Array> arrays(int64_t rows) const {
    std::vector<Array> arrays;
    for (const Tensor& tensor : tensors) {
      Shape shape = tensor.shape();
      const int64_t width = tensor.numel() / shape[0];
      shape[0] = rows;
      Array array(shape);
      for (int64_t i = 0; i < rows * width; ++i)
        array.data[static_cast<size_t>(i)] = tensor.item(i);
      arrays.push_back(array);
    }
    return arrays;
  }
};

double oracle_loss(const Graph& graph, const Inputs& inputs, int64_t rows) {
  EvaluateOptions options;
  options.training = true;
  const Array logits = evaluate(graph, inputs.arrays(rows), options)[0];
  double loss = 0;
  const size_t classes = 3;
  for (size_t b = 0; b < static_cast<size_t>(rows); ++b) {
    double total = 0;
    for (size_t c = 0; c < classes; ++c) total += std::exp(logits.data[b * classes + c]);
    loss += std::log(total) - logits.data[b * classes + static_cast<size_t>(inputs.labels[b])];
  }
  return loss / static_cast<double>(rows);
}

void expect_inference_matches_oracle(const Graph& graph, const std::string& what) {
  verify(graph);
  const Inputs inputs(graph, 21);
  CompileOptions options;
  options.batch_size = 21;
  Program program = Program::compile(graph, options);
  for (const int64_t rows : {21, 5, 1}) {  // a last, smaller batch runs the same program
    const std::vector<Array> wanted = evaluate(graph, inputs.arrays(rows));
    program.forward(inputs.batch(rows));
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::vector<float> got(wanted[i].data.size());
      program.read_output(static_cast<int>(i), got.data());
      for (size_t k = 0; k < got.size(); ++k)
        ASSERT_NEAR(got[k], wanted[i].data[k], 2e-4 * std::max(1.0, std::abs(wanted[i].data[k])))
            << what << " rows " << rows << "\n"
            << graph.text();
    }
  }
}

TEST(Program, InferenceMatchesOracleOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 60; ++seed)
    expect_inference_matches_oracle(RandomGraph(seed).graph, fmt::format("seed {}", seed));
}

// Small first layers have a kernel of their own.
TEST(Program, InferenceMatchesOracleForEverySmallFirstLayer) {
  for (const int64_t features : {0, 1, 3, 16, 64, 65})
    for (int64_t outputs = 0; outputs < 10; ++outputs)
      expect_inference_matches_oracle(
          make_model("jsc-tiny", {.sample_shape = {features}, .outputs = outputs, .seed = 1}),
          fmt::format("{} to {}", features, outputs));
}

TEST(Program, GradientsMatchFiniteDifferencesOnRandomGraphs) {
  for (uint64_t seed = 100; seed < 125; ++seed) {
    Graph graph = RandomGraph(seed).graph;
    const int64_t rows = 11;
    const Inputs inputs(graph, 16);
    CompileOptions options;
    options.training = true;
    options.batch_size = 16;
    options.loss = make_loss("cross_entropy");
    Program program = Program::compile(graph, options);
    const StepResult result = program.forward_backward(inputs.batch(rows));
    ASSERT_NEAR(result.loss, oracle_loss(graph, inputs, rows), 1e-4) << "seed " << seed;
    for (const ParameterView& view : program.parameters()) {
      const size_t dot = view.name.rfind('.');
      Tensor& tensor =
          *graph.modules().at(view.name.substr(0, dot)).find(view.name.substr(dot + 1));
      for (size_t i = 0; i < view.value.size(); i += 3) {
        float& value = tensor.mutable_data<float>()[i];
        const float kept = value;
        const double h = 1.0 / 1024;
        value = kept + static_cast<float>(h);
        const float above = value;
        const double up = oracle_loss(graph, inputs, rows);
        value = kept - static_cast<float>(h);
        const double slope = (up - oracle_loss(graph, inputs, rows)) / (double(above) - value);
        value = kept;
        ASSERT_NEAR(view.gradient[i], slope, 5e-3 + 0.02 * std::abs(slope))
            << "seed " << seed << " " << view.name << " " << i << "\n"
            << graph.text() << program.dump();
      }
    }
  }
}

TEST(Program, AccumulatedGradientsAreSums) {
  const Graph graph = make_model("jsc-toy");
  const Inputs inputs(graph, 64);
  CompileOptions options;
  options.training = true;
  options.batch_size = 32;
  options.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, options);
  Batch batch = inputs.batch(32);
  program.forward_backward(batch);
  const std::vector<float> first(program.gradient_memory().begin(),
                                 program.gradient_memory().end());
  batch.first_row = 32;
  program.forward_backward(batch);
  const std::vector<float> second(program.gradient_memory().begin(),
                                  program.gradient_memory().end());
  batch.first_row = 0;
  program.forward_backward(batch);
  batch.first_row = 32;
  program.forward_backward(batch, true);
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_FLOAT_EQ(program.gradient_memory()[i], first[i] + second[i]);
}

TEST(Program, ShardsOfABatchAddUpToTheWhole) {
  const Graph graph = make_model("jsc-toy");
  const Inputs inputs(graph, 64);
  CompileOptions options;
  options.training = true;
  options.batch_size = 64;
  options.loss = make_loss("cross_entropy");
  Program whole = Program::compile(graph, options);
  const StepResult wanted = whole.forward_backward(inputs.batch(64));
  // Two processes with the same shard: every sum over both is twice the own one.
  options.all_reduce = [](std::span<double> sums) {
    for (double& sum : sums) sum *= 2;
  };
  options.batch_size = 32;
  Program shard = Program::compile(graph, options);
  Inputs twice = inputs;
  for (Tensor& tensor : twice.tensors) {
    const int64_t half = tensor.numel() / 2;
    float* values = tensor.mutable_data<float>();
    std::copy_n(values, half, values + half);
  }
  std::copy_n(twice.labels.begin(), 32, twice.labels.begin() + 32);
  Program doubled = Program::compile(graph, whole.options());
  const StepResult all = doubled.forward_backward(twice.batch(64));
  const StepResult part = shard.forward_backward(twice.batch(32));
  EXPECT_NE(wanted.loss, all.loss);
  EXPECT_NEAR(2 * part.loss, all.loss, 1e-6);
  for (size_t i = 0; i < shard.gradient_memory().size(); ++i)
    EXPECT_NEAR(2 * shard.gradient_memory()[i], doubled.gradient_memory()[i], 1e-6);
}

std::vector<float> trained(const Graph& graph, int threads, int64_t batch_size) {
  const Inputs inputs(graph, batch_size * 2);
  CompileOptions options;
  options.training = true;
  options.batch_size = batch_size;
  options.loss = make_loss("cross_entropy");
  options.threads = threads;
  Program program = Program::compile(graph, options);
  std::vector<float> result;
  for (int step = 0; step < 5; ++step) {
    Batch batch = inputs.batch(batch_size);
    batch.first_row = step % 2 * batch_size;
    result.push_back(static_cast<float>(program.forward_backward(batch).loss));
    const auto values = program.parameter_memory();
    const auto gradients = program.gradient_memory();
    for (size_t i = 0; i < values.size(); ++i) values[i] -= 0.1f * gradients[i];
    program.parameters_changed();
  }
  result.insert(result.end(), program.parameter_memory().begin(), program.parameter_memory().end());
  return result;
}

TEST(Program, SameBitsForAnyNumberOfThreads) {
  for (const std::string name : {"jsc-toy", "jsc-10x"}) {
    const Graph graph = make_model(name);
    for (const int64_t batch : {100, 2048}) {
      const std::vector<float> one = trained(graph, 1, batch);
      for (const int threads : {2, 3, 7})
        EXPECT_EQ(one, trained(graph, threads, batch)) << name << " batch " << batch;
      EXPECT_EQ(one, trained(graph, 1, batch)) << name << " batch " << batch;
    }
  }
}

TEST(Program, StepAllocatesNothing) {
  const Graph graph = make_model("jsc-10x");
  const Inputs inputs(graph, 256);
  CompileOptions options;
  options.training = true;
  options.loss = make_loss("cross_entropy");
  Program training = Program::compile(graph, options);
  Program inference = Program::compile(graph, {});
  const Batch batch = inputs.batch(256);
  std::vector<float> logits(256 * 5);
  training.forward_backward(batch);
  inference.forward(batch);
  const int64_t before = test::allocations;
  for (int i = 0; i < 10; ++i) {
    training.forward_backward(batch);
    training.parameters_changed();
    inference.parameters_changed();
    inference.forward(batch);
    inference.read_output(0, logits.data());
  }
  EXPECT_EQ(test::allocations - before, 0);
}

TEST(Program, TypicalFusionsAreInTheDump) {
  const Graph graph = make_model("jsc-10x");
  CompileOptions options;
  options.training = true;
  options.loss = make_loss("cross_entropy");
  const std::string training = Program::compile(graph, options).dump();
  EXPECT_NE(training.find("batch_norm+relu"), std::string::npos) << training;
  EXPECT_NE(training.find("batch_norm_gradient+relu"), std::string::npos) << training;
  EXPECT_EQ(training.find("map"), std::string::npos) << training;
  const std::string inference = Program::compile(graph, {}).dump();
  EXPECT_NE(inference.find("fold_batch_norm"), std::string::npos) << inference;
  EXPECT_NE(inference.find("linear+relu"), std::string::npos) << inference;
}

// Layers that are computed from end to end have the bits of each by itself, which a kept result
// between them makes them be. Random batch-norm statistics, so that relus pass some values only.
TEST(Program, SmallLayersInARowGiveTheBitsOfEachAlone) {
  Graph graph = make_model("jsc-toy");
  Random random(7, "statistics");
  for (const char* name : {"running_mean", "running_var", "weight", "bias"})
    for (const int layer : {0, 3, 6, 9}) {
      Tensor* tensor = graph.tensor(fmt::format("seq_blocks.{}.{}", layer, name));
      ASSERT_NE(tensor, nullptr);
      for (int64_t i = 0; i < tensor->numel(); ++i)
        tensor->mutable_data<float>()[i] = static_cast<float>(random.uniform(0.5, 1.5));
    }
  std::vector<NodeId> hidden;
  for (const NodeId id : graph.order())
    if (graph.node(id).name == "seq_blocks_4" || graph.node(id).name == "seq_blocks_7")
      hidden.push_back(id);
  ASSERT_EQ(hidden.size(), 2u);
  with_every_instruction_set([&] {
    Program together = Program::compile(graph, {});
    for (const std::vector<NodeId>& keep :
         {std::vector{hidden[0]}, std::vector{hidden[1]}, hidden}) {
      CompileOptions options;
      options.keep = keep;
      Program alone = Program::compile(graph, options);
      for (const int64_t size : {1, 15, 16, 17, 48, 256}) {
        const Inputs inputs(graph, size);
        std::vector<float> a(static_cast<size_t>(256 * 5), 0.5f), b = a;
        together.forward(inputs.batch(size));
        together.read_output(0, a.data());
        alone.forward(inputs.batch(size));
        alone.read_output(0, b.data());
        EXPECT_EQ(a, b) << size;
      }
    }
    const bool wide = instruction_set() == "AVX3";
    EXPECT_EQ(together.dump().find("16 -> 8 -> 8 -> 5") != std::string::npos, wide)
        << together.dump();
  });
}

TEST(Program, ReadsKeptNodes) {
  const Graph graph = make_model("jsc-tiny");
  const Inputs inputs(graph, 10);
  std::vector<NodeId> nodes;
  for (const NodeId id : graph.order())
    if (graph.node(id).kind != NodeKind::output) nodes.push_back(id);
  std::map<NodeId, std::vector<double>> wanted;
  EvaluateOptions options;
  options.observe = [&](const Node& node, const Array& result) { wanted[node.id] = result.data; };
  evaluate(graph, inputs.arrays(10), options);
  std::map<NodeId, std::vector<float>> got;
  run_observed(graph, inputs.tensors, nodes, 4, [&](NodeId node, const Tensor& result) {
    const auto values = result.values<float>();
    got[node].insert(got[node].end(), values.begin(), values.end());
  });
  for (const NodeId id : nodes) {
    ASSERT_EQ(got[id].size(), wanted[id].size()) << graph.node(id).name;
    for (size_t i = 0; i < wanted[id].size(); ++i) EXPECT_NEAR(got[id][i], wanted[id][i], 1e-5);
  }
}

TEST(Program, LabelsOutsideTheClassesAreAnError) {
  const Graph graph = make_model("jsc-tiny");
  Inputs inputs(graph, 4);
  inputs.labels[2] = 5;
  CompileOptions options;
  options.training = true;
  options.batch_size = 4;
  options.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, options);
  EXPECT_THROW(program.forward_backward(inputs.batch(4)), Error);
}

// A batch whose activations are larger than the caches is run in slices, a few samples at a time:
// every sample's result is what it is by itself, for whole and smaller batches, any rows of a
// table.
TEST(Program, LargeBatchesInSlicesMatchSingleSamples) {
  Graph graph;
  graph.name = "wide";
  const NodeId x = graph.add_placeholder("x", {1, 96, 96});
  const auto convolution = [&](const std::string& path, NodeId from, int64_t in, int64_t out) {
    const Dict options{{"in_channels", in}, {"out_channels", out}, {"kernel_size", 1},
                       {"stride", 1},       {"padding", 0},        {"dilation", 1},
                       {"groups", 1},       {"bias", true},        {"padding_mode", "zeros"}};
    return graph.add_module(path, make_module("conv2d", Value(options), 3, path), {from});
  };
  NodeId last = x;
  for (int i = 0; i < 6; ++i)
    last = convolution(fmt::format("blocks.{}", i), last, i == 0 ? 1 : 48, 48);
  last = graph.call_function("relu", {Argument::node(last)});
  const NodeId pooled = graph.add_module(
      "pool", make_module("adaptive_avg_pool2d", Value(Dict{{"output_size", 1}}), 3, "pool"),
      {last});
  graph.add_output(
      {graph.call_function("flatten", {Argument::node(pooled), Argument::literal(1)})});
  constexpr int64_t batch = 37, width = 48;
  const Sample sample(graph, batch);
  CompileOptions options;
  options.batch_size = batch;
  Program program = Program::compile(graph, options);
  EXPECT_EQ(program.options().batch_size, batch);
  EXPECT_EQ(program.output_shape(0), (Shape{batch, width}));
  EXPECT_LT(program.arena_bytes(), size_t{2} * 96 * 96 * 48 * batch * sizeof(float)) << "no slices";
  options.batch_size = 1;
  Program single = Program::compile(graph, options);
  const std::vector<uint32_t> rows{36, 0, 5, 5, 12, 3, 30, 31, 32, 33, 1, 2};
  for (const bool chosen : {false, true}) {
    Batch all = sample.batch(batch);
    all.target = {};
    if (chosen) {
      all.rows = rows;
      all.size = static_cast<int64_t>(rows.size());
    }
    program.forward(all);
    std::vector<float> got(static_cast<size_t>(all.size * width));
    program.read_output(0, got.data());
    for (int64_t i = 0; i < all.size; ++i) {
      Batch one = sample.batch(1);
      one.target = {};
      one.first_row = chosen ? rows[static_cast<size_t>(i)] : i;
      single.forward(one);
      std::vector<float> wanted(static_cast<size_t>(width));
      single.read_output(0, wanted.data());
      for (int64_t f = 0; f < width; ++f)
        ASSERT_NEAR(got[static_cast<size_t>(i * width + f)], wanted[static_cast<size_t>(f)], 1e-5);
    }
  }
  Batch beyond = sample.batch(batch);
  beyond.first_row = 1;
  EXPECT_THROW(program.forward(beyond), Error);
}

// An element-wise op that expressions have words for is a sweep, forward and backward: the op's own
// code is only the fall back.
TEST(Program, ElementwiseFunctionsAreSweeps) {
  for (const char* op : {"sin", "cos", "round", "floor", "ceil", "trunc", "sign"}) {
    Graph graph;
    NodeId x = graph.add_placeholder("x", {6});
    x = add_layer(graph, "linear", {{"out_features", 9}}, x);
    x = graph.call_function(op, {Argument::node(x)});
    graph.add_output({add_layer(graph, "linear", {{"out_features", 3}}, x)});
    CompileOptions options;
    options.training = true;
    options.loss = make_loss("cross_entropy");
    for (const std::string& steps :
         {Program::compile(graph, options).dump(), Program::compile(graph, {}).dump()}) {
      EXPECT_NE(steps.find("map"), std::string::npos) << op << "\n" << steps;
      EXPECT_EQ(steps.find("call"), std::string::npos) << op << "\n" << steps;
    }
    expect_inference(graph, 17, op);
    expect_gradients(graph, 17, 17, op);
  }
}

// What PyTorch's functions make of numbers that are none, of infinities and of -0.
TEST(Program, ElementwiseFunctionsOfOddNumbersAreTorchs) {
  const Tensor rows =
      Tensor::of({1, 6}, std::vector<float>{NAN, INFINITY, -INFINITY, -0.0f, -0.5f, 2.5f});
  const auto text = [&](const char* op) {
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {6});
    graph.add_output({graph.call_function(op, {Argument::node(x)})});
    const Tensor result = run(graph, {rows})[0];
    std::string numbers;
    for (int64_t i = 0; i < 6; ++i)
      numbers += fmt::format("{:.4g} ", std::isnan(result.item(i)) ? NAN : result.item(i));
    return numbers;
  };
  EXPECT_EQ(text("sin"), "nan nan nan -0 -0.4794 0.5985 ");
  EXPECT_EQ(text("cos"), "nan nan nan 1 0.8776 -0.8011 ");
  EXPECT_EQ(text("round"), "nan inf -inf -0 -0 2 ");
  EXPECT_EQ(text("floor"), "nan inf -inf -0 -1 2 ");
  EXPECT_EQ(text("ceil"), "nan inf -inf -0 -0 3 ");
  EXPECT_EQ(text("trunc"), "nan inf -inf -0 -0 2 ");
  EXPECT_EQ(text("sign"), "0 1 -1 0 -1 1 ");
}

// Shapes that a graph has at its own batch only.
TEST(Program, RunsWholeBatchesThatOneRowHasNoShapeFor) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {10});
  graph.add_output({graph.call_function(
      "reshape", {Argument::node(x), Argument::literal(Value(List{int64_t{-1}, int64_t{20}}))})});
  Tensor rows({4, 10});
  for (int64_t i = 0; i < 40; ++i) rows.mutable_data<float>()[i] = static_cast<float>(i);
  const Tensor result = run(graph, {rows})[0];
  ASSERT_EQ(result.shape(), (Shape{2, 20}));
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(result.item(i), i);
}

// In inference the limits behind a batch norm, and the rounding behind them, are its own.
TEST(Program, LimitsOfABatchNormAreDoneInItsSweep) {
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{0, 6}, {-1, 1}, {1e39, 1e40}, {-INFINITY, -1e39}}) {
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {2, 2, 1});
    const NodeId norm = add_layer(graph, "batch_norm2d", {}, x);
    graph.add_output(
        {graph.call_function("clamp", {Argument::node(norm)},
                             {{"min", Argument::literal(low)}, {"max", Argument::literal(high)}})});
    CompileOptions options;
    options.batch_size = 2;
    EXPECT_NE(Program::compile(graph, options).dump().find("batch_norm+clamp"), std::string::npos);
    const Tensor rows = Tensor::of({2, 2, 2, 1}, std::vector<float>{-8, 8, 3, 0.5, -0.5, 1, 7, 9});
    const Tensor result = run(graph, {rows})[0];
    for (int64_t i = 0; i < 8; ++i) {
      const double scaled = rows.item(i) / std::sqrt(1 + 1e-5);
      const double wanted = std::min(std::max(scaled, low), high);
      EXPECT_TRUE(result.item(i) == static_cast<float>(wanted) ||
                  std::abs(result.item(i) - wanted) < 1e-5)
          << result.item(i) << " " << wanted;
    }
  }
}

// Analyses keep the values of all nodes: of large images only few rows at a time.
TEST(Program, RowsAtOnceFitIntoMemory) {
  const auto rows = [](int64_t side) {
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {1, side, side});
    graph.add_output({graph.call_function("relu", {Argument::node(x)})});
    return rows_at_once(graph, 256);
  };
  EXPECT_EQ(rows(4), 256);
  EXPECT_EQ(rows(2048), 5);  // 3 x 16 MB each, the output among them
  EXPECT_EQ(rows(20000), 1);
}

}  // namespace
}  // namespace mase::program_test
