// SPDX-License-Identifier: Apache-2.0
// Widths learned by gradient: bit operations as HGQ counts them, the gradient of the fraction bits
// by hand, and a whole run whose front is what it says it is.
#include "mase/run/hardware/learn_bits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "mase/formats/learned_bits.h"
#include "mase/hardware/cost/ebops.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/learned.h"
#include "mase/ir/op.h"
#include "mase/run/hardware/hardware.h"
#include "mase/train/loss.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::test::learn_bits_test {
namespace {

Graph one_layer(const std::function<void(Module&)>& quantise) {
  Graph graph;
  graph.name = "layer";
  const NodeId x = graph.add_placeholder("x", {3});
  Module layer =
      make_module("linear", Value(Dict{{"in_features", 3}, {"out_features", 2}}), 0, "layer");
  *layer.find("weight") = random_tensor({2, 3}, 0.8, 1);
  *layer.find("bias") = random_tensor({2}, 0.8, 2);
  quantise(layer);
  graph.add_output({graph.add_module("layer", layer, {x})});
  return graph;
}

// Inputs of 5, 5 and 4 bits, weights of 4, biases of 3, signs aside: (5 + 5 + 4) 4 2 + 3 2.
TEST(ebops, of_the_known_layer) {
  const std::vector<int> inputs = {5, 5, 4}, weights(6, 4), biases(2, 3);
  EXPECT_EQ(dense_ebops(inputs, weights, biases), 118);
  const Graph graph = one_layer([](Module& layer) {
    const Dict config{{"name", "integer"},
                      {"data_in_width", Value(List{Value(5), Value(5), Value(4)})},
                      {"data_in_frac_width", 2},
                      {"data_in_is_signed", false},
                      {"data_in_granularity", "row"},
                      {"weight_width", 5},
                      {"weight_overflow", "wrap"},
                      {"bias_width", 4},
                      {"bias_overflow", "wrap"}};
    Problems problems;
    layer.quantization =
        parse_quantization(config, {.names = find_op("linear").operands}, "layer", problems);
    problems.throw_if_any();
  });
  EXPECT_EQ(ebops(graph), 118);
  EXPECT_THROW(ebops(one_layer([](Module&) {})), Error);
}

TEST(learned_bits, gradients_are_those_of_the_rounding_error) {
  constexpr int64_t rows = 5;
  const Graph graph = one_layer([](Module& layer) {
    layer.quantization.operands["data_in"] = learned_bits_quantizer(3, 2);
    layer.quantization.operands["weight"] = learned_bits_quantizer(0, 3);
    layer.quantization.operands["bias"] = learned_bits_quantizer(0, 4);
    fit_learned_parameters(layer);
    for (int i = 0; i < 3; ++i)
      layer.find("data_in_bits")->mutable_data<float>()[i] = fraction_number(i + 1.2);
  });
  const Tensor x = random_tensor({rows, 3}, 1.5, 3), target = random_tensor({rows, 2}, 1, 4);
  Program program = Program::compile(
      graph, {.training = true, .batch_size = rows, .loss = make_loss("mse", Dict{}, false)});
  Batch batch;
  batch.inputs = {RowTensor(x)};
  batch.target = RowTensor(target);
  batch.size = rows;
  program.forward_backward(batch);
  const auto rounded = [](float value, int bits) {
    return std::floor(std::ldexp(static_cast<double>(value), bits) + 0.5) * std::ldexp(1.0, -bits);
  };
  const Module& layer = graph.modules().at("layer");
  const float *w = layer.find("weight")->data<float>(), *b = layer.find("bias")->data<float>();
  std::vector<double> inputs(3), weights(6);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < 2; ++o) {
      double y = rounded(b[o], 4);
      for (int64_t i = 0; i < 3; ++i)
        y +=
            rounded(w[o * 3 + i], 3) * rounded(x.data<float>()[r * 3 + i], static_cast<int>(i) + 1);
      const double slope =
          2 * (y - target.data<float>()[r * 2 + o]) / (2.0 * rows) * std::numbers::ln2 * 8;
      for (int64_t i = 0; i < 3; ++i) {
        const float v = x.data<float>()[r * 3 + i], u = w[o * 3 + i];
        const double q = rounded(v, static_cast<int>(i) + 1), p = rounded(u, 3);
        inputs[static_cast<size_t>(i)] += slope * p * (static_cast<double>(v) - q);
        weights[static_cast<size_t>(o * 3 + i)] += slope * q * (static_cast<double>(u) - p);
      }
    }
  for (const ParameterView& view : program.parameters()) {
    const std::vector<double>* wanted = view.name == "layer.data_in_bits"  ? &inputs
                                        : view.name == "layer.weight_bits" ? &weights
                                                                           : nullptr;
    for (size_t k = 0; wanted && k < wanted->size(); ++k)
      EXPECT_NEAR(static_cast<double>(view.gradient[k]), (*wanted)[k], 1e-5) << view.name << k;
  }
}

// With a folder, the name of one; `killed`: the run ends, as by a signal, in this epoch.
LearnBitsResult tiny_front(const std::string& folder = "", bool resume = false,
                           int64_t killed = -1) {
  Experiment experiment(
      {.network = {.model = "jsc-tiny", .seed = 3},
       .data = {.name = "jsc-sim", .options = {.arguments = Dict{{"rows", 2000}}}, .needed = true},
       .batch_size = 128});
  experiment.prepare();
  TrainSpec training;
  training.options.learning_rate = 1e-2;
  training.options.max_epochs = sanitized ? 8 : 30;
  training.options.schedule = "constant";
  Observer observer;
  observer.training.on_epoch = [&](const EpochEvent& event, const Program&) {
    if (event.epoch == killed) throw std::runtime_error("killed");
  };
  std::optional<RunFolder> run;
  if (!folder.empty())
    run = resume ? RunFolder::open(folder)
                 : experiment.create_folder(
                       {.project_dir = std::filesystem::path(folder).parent_path().string(),
                        .project = std::filesystem::path(folder).filename().string()},
                       "train");
  return learn_bits(experiment,
                    {.first_beta = 1e-5, .last_beta = 1e-2, .points = 5, .retrain_epochs = 2},
                    training, observer, run ? &*run : nullptr, resume);
}

TEST(learn_bits, the_front_is_what_it_says) {
  const LearnBitsResult result = tiny_front(), again = tiny_front();
  ASSERT_GE(result.front.size(), 2u);
  ASSERT_EQ(result.front.size(), again.front.size());
  double size = -1, accuracy = -1;
  for (size_t k = 0; k < result.front.size(); ++k) {
    const LearnedPoint& point = result.front[k];
    EXPECT_GT(point.ebops, size);
    size = point.ebops;
    // None that a smaller one is as good as.
    EXPECT_GT(point.validation, accuracy);
    accuracy = point.validation;
    EXPECT_EQ(point.ebops, ebops(point.graph));
    EXPECT_EQ(point.ebops, again.front[k].ebops);
    EXPECT_EQ(point.test, again.front[k].test);
    // Every weight is a number of its own width.
    const Module& layer = point.graph.modules().at("seq_blocks.2");
    const Tensor& weight = *layer.find("weight");
    EXPECT_TRUE(quantize(*layer.quantization.operands.at("weight"), weight).same_bits(weight));
    // And the network is one that hardware computes exactly.
    HardwareNetwork network;
    network.network = point.graph;
    network.lowered = lower(point.graph);
    EXPECT_TRUE(compare_with_engine(network, {.rows = 200, .seed = 1}).engine);
  }
  EXPECT_LT(result.front.front().ebops * 2, result.front.back().ebops);
}

// Killed after an epoch's snapshot and before its checkpoint, and taken up again.
TEST(learn_bits, a_killed_run_is_taken_up_again_bit_for_bit) {
  const std::string base = temporary_folder();
  const LearnBitsResult whole = tiny_front(base + "/whole");
  EXPECT_THROW(tiny_front(base + "/killed", false, 5), std::runtime_error);
  const LearnBitsResult resumed = tiny_front(base + "/killed", true);
  ASSERT_EQ(resumed.front.size(), whole.front.size());
  for (size_t k = 0; k < whole.front.size(); ++k) {
    EXPECT_EQ(resumed.front[k].epoch, whole.front[k].epoch);
    EXPECT_EQ(resumed.front[k].ebops, whole.front[k].ebops);
    EXPECT_EQ(resumed.front[k].loss, whole.front[k].loss);
    for (const auto& [path, module] : whole.front[k].graph.modules())
      for (const auto& [name, tensor] : module.parameters)
        EXPECT_TRUE(resumed.front[k].graph.modules().at(path).find(name)->same_bits(tensor));
  }
  // What is left loads; nothing is left that does not.
  for (const char* run : {"/whole", "/killed"}) {
    const std::string software = base + run + "/software";
    EXPECT_NO_THROW(load_checkpoint(software + "/training_ckpts/best.mz", CheckpointType::mz));
    for (const char* gone : {"/training_ckpts/best.ckpt", "/training_ckpts/last.ckpt", "/widths"})
      EXPECT_FALSE(std::filesystem::exists(software + gone)) << gone;
  }
}

}  // namespace
}  // namespace mase::test::learn_bits_test
