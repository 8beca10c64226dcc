// SPDX-License-Identifier: Apache-2.0
// Images and sentences: programs over random graphs of rank 3 and 4 (convolutions, pools, norms,
// products of positions, permutations and views, with branches) against the ops' reference code:
// results, and the gradient of every parameter by reverse sweeps of the ops' own `grad`.
#include <cmath>

#include "engine/against_reference.h"
#include "engine/instruction_sets.h"
#include "mase/base/random.h"
#include "mase/engine/kernels/shifted.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::lanes_test {
namespace {

// Norms of few, nearly equal features magnify rounding by up to 1 / sqrt(eps): what is compared
// with double precision has a larger one than layers have by default.
constexpr double well_conditioned = 1e-2;

class LaneGraph {
 public:
  LaneGraph(uint64_t seed, bool images) : random_(seed, "lanes"), seed_(seed) {
    graph.name = "random";
    add(graph.add_placeholder(
        "x", images ? Shape{draw(1, 4), draw(3, 7), draw(3, 7)} : Shape{draw(1, 9), draw(2, 6)}));
    for (int i = 0; i < 7; ++i) images ? grow_image() : grow_sentence();
    last_ = function("flatten", {last_}, {1});
    last_ = module("linear", {{"out_features", 3}}, last_);
    graph.add_output({last_});
  }

  Graph graph;

 private:
  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1)));
  }
  const Shape& shape(NodeId id) const { return shapes_.at(static_cast<size_t>(id)); }
  void add(NodeId id) {
    shapes_ = infer_shapes(graph, 2);
    last_ = id;
    nodes_.push_back(id);
  }

  NodeId module(const std::string& op, Dict attributes, NodeId x) {
    const OpRecord& record = find_op(op);
    if (record.complete) record.complete(attributes, {shape(x)}, 0);
    const std::string path = fmt::format("blocks.{}", count_++);
    add(graph.add_module(path, make_module(op, Value(std::move(attributes)), seed_ + 7, path),
                         {x}));
    return last_;
  }

  NodeId function(const std::string& op, std::vector<NodeId> inputs, std::vector<Value> literals) {
    std::vector<Argument> args;
    for (const NodeId input : inputs) args.push_back(Argument::node(input));
    for (Value& literal : literals) args.push_back(Argument::literal(std::move(literal)));
    add(graph.call_function(op, std::move(args)));
    return last_;
  }

  // Another result of the same shape, or this one.
  NodeId like(NodeId id) {
    for (int tries = 0; tries < 6; ++tries) {
      const NodeId other = nodes_[random_.below(nodes_.size())];
      if (shape(other) == shape(id)) return other;
    }
    return id;
  }

  void grow_image() {
    const Shape now = shape(last_);
    const int64_t height = now[2], width = now[3], channels = now[1];
    switch (random_.below(10)) {
      case 8:
        module("group_norm", {{"num_groups", channels % 2 == 0 ? 2 : 1}, {"eps", well_conditioned}},
               last_);
        return;
      case 0:
      case 1:
      case 2: {
        const char* modes[] = {"zeros", "reflect", "replicate", "circular"};
        const int64_t groups = channels % 2 == 0 && random_.below(2) ? 2 : 1;
        const int64_t kernel = draw(1, std::min<int64_t>(3, std::min(height, width)));
        const int64_t padding = draw(0, std::min<int64_t>(kernel - 1, std::min(height, width) - 1));
        module("conv2d",
               {{"out_channels", groups * draw(1, 4)},
                {"kernel_size", kernel},
                {"stride", draw(1, 2)},
                {"padding", padding},
                {"dilation", kernel == 2 && padding > 0 ? draw(1, 2) : 1},
                {"groups", groups},
                {"bias", random_.below(2) == 1},
                {"padding_mode", modes[random_.below(2) * random_.below(4)]}},
               last_);
        if (random_.below(3) == 0) module("batch_norm2d", {}, last_);
        if (random_.below(3) == 0) function("add", {last_, like(last_)}, {});
        if (random_.below(3) == 0) module(random_.below(2) ? "relu" : "relu6", {}, last_);
        return;
      }
      case 3:
        if (height > 8) return;
        module("conv_transpose2d",
               {{"out_channels", draw(1, 3)}, {"kernel_size", draw(1, 3)}, {"stride", draw(1, 2)}},
               last_);
        return;
      case 4:
        if (std::min(height, width) < 2) return;
        module(random_.below(2) ? "max_pool2d" : "avg_pool2d",
               {{"kernel_size", 2},
                {"stride", draw(1, 2)},
                {"padding", draw(0, 1)},
                {"ceil_mode", random_.below(2) == 1}},
               last_);
        return;
      case 5:
        module("batch_norm2d", {}, last_);
        if (random_.below(2)) module("relu", {}, last_);
        return;
      case 6:
        function(random_.below(2) ? "add" : "mul", {last_, like(last_)}, {});
        return;
      case 7: {
        // Scale by a mean of each channel, as squeeze-and-excitation does.
        const NodeId x = last_;
        const NodeId mean = module("adaptive_avg_pool2d", {}, x);
        function("mul", {x, module("sigmoid", {}, mean)}, {});
        return;
      }
      default:
        module("tanh", {}, last_);
    }
  }

  void grow_sentence() {
    const NodeId x = last_;
    const Shape now = shape(x);
    const int64_t positions = now[1], width = now[2];
    switch (random_.below(10)) {
      case 8:
        module("rms_norm", {{"normalized_shape", width}, {"eps", 1e-3}}, x);
        return;
      case 9: {  // four heads of queries that share two of keys and values
        const auto heads = [&](int64_t count) {
          const NodeId y = module("linear", {{"out_features", count * 3}}, x);
          return function("permute",
                          {function("reshape", {y}, {Value(List{-1, positions, count, 3})})},
                          {Value(List{0, 2, 1, 3})});
        };
        const NodeId q = heads(4), k = heads(2), v = heads(2);
        const NodeId y = function("scaled_dot_product_attention", {q, k, v}, {true});
        function("reshape", {function("transpose", {y}, {1, 2})}, {Value(List{-1, positions, 12})});
        return;
      }
      case 0:
      case 1:
        module("linear", {{"out_features", 2 * draw(1, 3)}}, x);
        return;
      case 2:
        module("layer_norm", {{"normalized_shape", width}, {"eps", well_conditioned}}, x);
        return;
      case 3: {  // attention of one or two heads
        const int64_t heads = width % 2 == 0 ? 2 : 1;
        const auto split = [&](NodeId y) {
          y = function("reshape", {y}, {Value(List{-1, positions, heads, width / heads})});
          return function("transpose", {y}, {1, 2});
        };
        const NodeId q = split(module("linear", {{"out_features", width}}, x));
        const NodeId k = split(module("linear", {{"out_features", width}}, x));
        const NodeId v = split(x);
        NodeId scores = function("matmul", {q, function("transpose", {k}, {2, 3})}, {});
        scores = function("softmax", {scores}, {-1});
        NodeId y = function("transpose", {function("matmul", {scores, v}, {})}, {1, 2});
        function("reshape", {y}, {Value(List{-1, positions, width})});
        return;
      }
      case 4:
        function("transpose", {x}, {1, 2});
        return;
      case 5:
        function(random_.below(2) ? "add" : "mul", {x, like(x)}, {});
        return;
      case 6:
        module("softmax", {{"dim", draw(1, 2)}}, x);
        return;
      default:
        module("gelu", {}, x);
    }
  }

  Random random_;
  uint64_t seed_;
  std::vector<Shape> shapes_;
  std::vector<NodeId> nodes_;
  NodeId last_ = -1;
  int count_ = 0;
};

TEST(Lanes, InferenceMatchesTheReference) {
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (const bool images : {true, false}) {
      const Graph graph = LaneGraph(seed, images).graph;
      for (const int64_t batch : {1, 5, 21})
        expect_inference(graph, batch, fmt::format("seed {} batch {}", seed, batch));
    }
}

TEST(Lanes, GradientsMatchTheReference) {
  for (uint64_t seed = 100; seed < 130; ++seed)
    for (const bool images : {true, false}) {
      const Graph graph = LaneGraph(seed, images).graph;
      expect_gradients(graph, 9, 9, fmt::format("seed {}", seed));
      expect_gradients(graph, 20, 7, fmt::format("seed {} of 20", seed));
    }
}

// Every op in a program, behind a layer that is trained: as many layouts as ranks.
TEST(Lanes, EveryOpIsWhatItsReferenceIs) {
  int programs = 0;
  for (const OpRecord* op : Registry<OpRecord>::instance().all()) {
    if (op->name == "dropout" || !op->index_inputs.empty()) continue;  // random, no layer before
    if (op->name == "opaque") continue;                                // cannot be run
    for (const Shape& sample : {Shape{4}, Shape{9, 4}, Shape{4, 9, 6}}) {
      Graph graph;
      graph.name = op->name;
      NodeId x = graph.add_placeholder("x", sample);
      const auto add = [&](const std::string& name, Dict attributes, NodeId from) {
        const OpRecord& record = find_op(name);
        const Shape shape = infer_shapes(graph, 2)[static_cast<size_t>(from)];
        if (record.complete) record.complete(attributes, {shape}, 3);
        const std::string path = "m_" + name + std::to_string(graph.modules().size());
        return graph.add_module(path, make_module(name, Value(std::move(attributes)), 3, path),
                                {from});
      };
      try {
        x = add("sigmoid", {}, add("linear", {{"out_features", sample.back()}}, x));
        const int inputs = std::max(op->min_inputs, op->max_inputs < 0 ? 2 : op->min_inputs);
        if (!op->class_name.empty() && inputs == 1) {
          x = add(op->name, {}, x);
        } else {
          const bool pair = op->attributes.find("other") != nullptr;
          std::vector<Argument> nodes;
          for (int i = 0; i < (pair ? 2 : inputs); ++i) nodes.push_back(Argument::node(x));
          Dict attributes;
          if (op->complete)
            op->complete(attributes, {infer_shapes(graph, 2)[static_cast<size_t>(x)]}, 3);
          std::vector<std::pair<std::string, Argument>> literals;
          for (const auto& [key, value] : attributes)
            literals.emplace_back(key, Argument::literal(value));
          if (op->max_inputs < 0) nodes = {Argument::list(std::move(nodes))};
          x = graph.call_function(op->name, std::move(nodes), std::move(literals));
        }
        if (has_several_results(graph, graph.node(x))) x = graph.result_of(x, 0);
        const Shape shape = infer_shapes(graph, 5)[static_cast<size_t>(x)];
        if (shape.empty() || shape[0] != 5) continue;  // the batch is gone
        x = graph.call_function("flatten", {Argument::node(x), Argument::literal(1)});
        x = add("linear", {{"out_features", 3}}, x);
        graph.add_output({x});
        verify(graph);
      } catch (const Error&) {
        continue;  // not for this rank, or it needs attributes
      }
      expect_inference(graph, 5, op->name);
      expect_gradients(graph, 5, 5, op->name);
      ++programs;
    }
  }
  EXPECT_GT(programs, 120);
}

TEST(Lanes, ThreadsChangeNothing) {
  const Graph graph = make_model("lenet");
  const Sample sample(graph, 32);
  std::vector<std::vector<float>> gradients;
  for (const int threads : {1, 2, 3, 5}) {
    CompileOptions options;
    options.training = true;
    options.batch_size = 32;
    options.threads = threads;
    options.loss = make_loss("cross_entropy");
    Program program = Program::compile(graph, options);
    Batch batch = sample.batch(32);
    program.forward_backward(batch);
    gradients.emplace_back(program.gradient_memory().begin(), program.gradient_memory().end());
  }
  for (const auto& others : gradients) EXPECT_EQ(gradients[0], others);
}

void shifted_matches_its_reference() {
  Random random(3, "shifted");
  for (int round = 0; round < 60; ++round) {
    const auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
    };
    kernels::ShiftedShape shape{};
    shape.out = draw(1, 15);
    shape.in = round % 10 == 0 ? draw(250, 530) : draw(1, 20);
    shape.out_step = shape.in;
    shape.in_step = 1;
    shape.n = round % 15 == 0 ? draw(1000, 1100) : draw(1, 150);
    shape.segments = draw(1, 4);
    shape.x_step = draw(0, 40);
    shape.y_step = shape.n + draw(0, 5);
    shape.y_stride = shape.segments * shape.y_step + draw(0, 9);
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < shape.in; ++i) offsets.push_back(draw(0, 200));
    shape.offsets = offsets.data();
    const auto numbers = [&](int64_t count) {
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
      return values;
    };
    const std::vector<float> x = numbers(400 + shape.n + 4 * 40), w = numbers(shape.out * shape.in),
                             bias = numbers(shape.out), start = numbers(shape.n);
    shape.start = round % 2 ? start.data() : nullptr;
    const float* own = shape.start ? nullptr : bias.data();
    for (const bool accumulate : {false, true}) {
      // What lies between the segments and behind the rows stays as it is.
      std::vector<float> fast = numbers(shape.out * shape.y_stride), plain = fast;
      const std::vector<float> add = numbers(shape.out * shape.y_stride);
      kernels::Finish finish = kernels::Finish::relu(!accumulate);
      if (round % 3 == 0) finish = {.low = -0.5f, .high = 0.75f, .add = add.data()};
      kernels::shifted_linear(shape, w.data(), own, x.data(), fast.data(), finish, accumulate);
      kernels::reference::shifted_linear(shape, w.data(), own, x.data(), plain.data(), finish,
                                         accumulate);
      for (size_t i = 0; i < fast.size(); ++i) ASSERT_NEAR(fast[i], plain[i], 1e-4) << round;
      std::vector<float> dw = numbers(shape.out * shape.in), wanted = dw;
      kernels::shifted_gradient(shape, plain.data(), x.data(), dw.data(), accumulate);
      kernels::reference::shifted_gradient(shape, plain.data(), x.data(), wanted.data(),
                                           accumulate);
      for (size_t i = 0; i < dw.size(); ++i)
        ASSERT_NEAR(dw[i], wanted[i], 1e-3 * (1 + std::abs(wanted[i]))) << round;
    }
  }
}

TEST(Shifted, MatchesItsReference) { with_every_instruction_set(shifted_matches_its_reference); }

}  // namespace
}  // namespace mase::lanes_test
