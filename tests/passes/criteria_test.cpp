// SPDX-License-Identifier: Apache-2.0
// Criteria of pruning: what goes by hand, what sparsegpt makes good by least squares, and what no
// criterion can do.
#include <gmock/gmock.h>

#include <cmath>

#include "mase/ir/evaluate.h"
#include "mase/passes/calibration.h"
#include "mase/passes/criterion.h"
#include "mase/passes/pass.h"
#include "mase/passes/weight_method.h"
#include "passes/networks.h"

namespace mase::criteria_test {
namespace {

Tensor drawn(const Shape& shape, uint64_t seed) {
  Random random(seed, "criteria");
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.mutable_data<float>()[i] = static_cast<float>(random.normal());
  return tensor;
}

std::vector<float> floats(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

PassResult prune(Graph& graph, Dict options, const PassContext& context = {}) {
  PassContext own = context;
  return run_pass(graph, "prune", Dict{{"weight", Value(std::move(options))}}, own);
}

TEST(Criteria, TwoOfFourStay) {
  Graph graph = test::one_layer({1, -4, 3, 2, 5, 5, 5, 1, 0, 0, 7, 0}, 2, 6);
  const PassResult result = prune(graph, Dict{{"granularity", "n:m"}});
  // A row of six: four, and two of which both stay.
  EXPECT_EQ(floats(*graph.modules().at("fc").find("weight")),
            (std::vector<float>{0, -4, 3, 0, 5, 5, 5, 1, 0, 0, 7, 0}));
  EXPECT_EQ(result.data["removed"], Value(4));
  Graph one = test::one_layer({1, -4, 3, 2}, 1, 4);
  prune(one, Dict{{"granularity", "n:m"}, {"n", 1}, {"m", 2}});
  EXPECT_EQ(floats(*one.modules().at("fc").find("weight")), (std::vector<float>{0, -4, 3, 0}));
}

TEST(Criteria, BlocksGoWhole) {
  Graph graph = test::one_layer({1, 1, 9, 1, 1, 1, 1, 1, 3, 3, 0, 0, 3, 3, 0, 1}, 4, 4);
  prune(graph, Dict{{"granularity", "block"}, {"sparsity", 0.5}, {"block_size", List{2, 2}}});
  EXPECT_EQ(floats(*graph.modules().at("fc").find("weight")),
            (std::vector<float>{0, 0, 9, 1, 0, 0, 1, 1, 3, 3, 0, 0, 3, 3, 0, 0}));
}

TEST(Criteria, WandaWeighsInputs) {
  // The second input is ten times as large as the others.
  Graph graph = test::one_layer({3, 1, 2, 4, 5, 0.1f, 6, 7}, 2, 4);
  PassContext context;
  context.samples = drawn({64, 4}, 1);
  for (int64_t r = 0; r < 64; ++r) context.samples.mutable_data<float>()[r * 4 + 1] *= 10;
  const PassResult result = prune(graph, Dict{{"sparsity", 0.5}, {"method", "wanda"}}, context);
  // Row by row: 3 10 2 4 and 5 1 6 7.
  EXPECT_EQ(floats(*graph.modules().at("fc").find("weight")),
            (std::vector<float>{0, 1, 0, 4, 0, 0, 6, 7}));
  EXPECT_GT(result.data["layers"].as_list()[0]["heldout_error"].as_double(), 0);
}

// Of all weights with these zeros the least error: normal equations by elimination.
std::vector<double> best_with_zeros(const float* weight, const float* mask, int64_t n,
                                    const Matrix& h) {
  std::vector<int64_t> kept;
  for (int64_t c = 0; c < n; ++c)
    if (mask[c] != 0) kept.push_back(c);
  const size_t m = kept.size();
  std::vector<std::vector<double>> a(m, std::vector<double>(m + 1));
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < m; ++j) a[i][j] = h[static_cast<size_t>(kept[i] * n + kept[j])];
    for (int64_t c = 0; c < n; ++c) a[i][m] += h[static_cast<size_t>(kept[i] * n + c)] * weight[c];
  }
  for (size_t p = 0; p < m; ++p)
    for (size_t r = 0; r < m; ++r) {
      if (r == p) continue;
      const double factor = a[r][p] / a[p][p];
      for (size_t c = p; c <= m; ++c) a[r][c] -= factor * a[p][c];
    }
  std::vector<double> best(static_cast<size_t>(n), 0.0);
  for (size_t i = 0; i < m; ++i) best[static_cast<size_t>(kept[i])] = a[i][m] / a[i][i];
  return best;
}

TEST(Criteria, SparseGptMakesGoodWhatItRemoves) {
  for (const bool pattern : {false, true})
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(fmt::format("{} {}", pattern, seed));
      const int64_t out = 8, in = 24;
      Graph graph = test::one_layer(floats(drawn({out, in}, seed)), out, in);
      const Tensor weight = *graph.modules().at("fc").find("weight");
      PassContext context;
      // Inputs that depend on each other, or nothing could be made good.
      const Tensor base = drawn({400, 6}, seed + 50), noise = drawn({400, in}, seed + 90),
                   mix = drawn({6, in}, seed + 70);
      context.samples = Tensor({400, in});
      for (int64_t r = 0; r < 400; ++r)
        for (int64_t c = 0; c < in; ++c) {
          double sum = 0.3 * noise.item(r * in + c);
          for (int64_t k = 0; k < 6; ++k) sum += base.item(r * 6 + k) * mix.item(k * in + c);
          context.samples.mutable_data<float>()[r * in + c] = static_cast<float>(sum);
        }
      const auto options = [&](const char* method) {
        Dict result{{"method", method}};
        if (pattern)
          result.set("granularity", "n:m");
        else
          result.set("sparsity", 0.5);
        return result;
      };
      Graph magnitude = graph, solved = graph;
      prune(magnitude, options("l1-norm"), context);
      prune(solved, options("sparsegpt"), context);
      const Module& module = solved.modules().at("fc");
      const Tensor &mask = module.masks.at(0).second, &found = *module.find("weight");
      const float* keeps = mask.data<float>();
      EXPECT_EQ(std::count(keeps, keeps + mask.numel(), 0.0f), out * in / 2);
      for (int64_t r = 0; r < out && pattern; ++r)
        for (int64_t c = 0; c < in; c += 4)
          EXPECT_EQ(std::count(keeps + r * in + c, keeps + r * in + c + 4, 0.0f), 2);
      const CalibrationRows rows = calibration_rows(graph, Dict{}, context);
      const NodeId node = graph.find("fc")->id;
      const ProductInputs inputs = *product_inputs(graph, {node}, rows.seen).at(node);
      const double plain =
          output_error(weight, *magnitude.modules().at("fc").find("weight"), inputs);
      const double error = output_error(weight, found, inputs);
      Tensor best(weight.shape());
      for (int64_t r = 0; r < out; ++r) {
        const std::vector<double> row =
            best_with_zeros(weight.data<float>() + r * in, keeps + r * in, in, inputs.hessians[0]);
        for (int64_t c = 0; c < in; ++c)
          best.mutable_data<float>()[r * in + c] = static_cast<float>(row[static_cast<size_t>(c)]);
      }
      const double least = output_error(weight, best, inputs);
      EXPECT_LT(error, 0.7 * plain);
      EXPECT_GE(error, least * (1 - 1e-6));
    }
}

TEST(Criteria, SnipIsTheChangeOfTheLoss) {
  Graph graph = test::one_layer(floats(drawn({3, 4}, 4)), 3, 4);
  PassContext context;
  context.samples = drawn({40, 4}, 5);
  context.labels = Tensor({40}, DType::i32);
  for (int64_t i = 0; i < 40; ++i) context.labels.mutable_data<int32_t>()[i] = i % 3;
  const auto loss = [&](const Graph& of) {
    const Array out = evaluate(of, {Array::from(context.samples)}).front();
    double sum = 0;
    for (int64_t r = 0; r < 40; ++r) {
      double total = 0;
      for (int64_t k = 0; k < 3; ++k) total += std::exp(out.data[static_cast<size_t>(r * 3 + k)]);
      sum += std::log(total) - out.data[static_cast<size_t>(r * 3 + r % 3)];
    }
    return sum / 40;
  };
  const Tensor weight = *graph.modules().at("fc").find("weight");
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t i = 0; i < weight.numel(); ++i) {
    Graph up = graph, down = graph;
    up.modules().at("fc").find("weight")->mutable_data<float>()[i] += 1e-2f;
    down.modules().at("fc").find("weight")->mutable_data<float>()[i] -= 1e-2f;
    order.emplace_back(std::fabs((loss(up) - loss(down)) / 2e-2 * weight.item(i)), i);
  }
  std::sort(order.begin(), order.end());
  prune(graph, Dict{{"sparsity", 0.5}, {"method", "snip"}}, context);
  const Tensor& mask = graph.modules().at("fc").masks.at(0).second;
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(mask.item(order[i].second) == 0, i < 6) << i;
}

TEST(Criteria, WhatTheyCannotDoIsSaid) {
  const auto said = [](Dict options, bool with_rows = true) {
    Graph graph = test::one_layer(floats(drawn({4, 8}, 1)), 4, 8);
    const Graph before = graph;
    PassContext context;
    if (with_rows) context.samples = drawn({64, 8}, 2);
    try {
      const Value args = Dict{{"weight", Value(std::move(options))}};
      prepare_passes(graph, {{"prune", args, "passes.prune"}});
      run_pass(graph, "prune", args, context);
    } catch (const Error& error) {
      EXPECT_TRUE(graph.modules().at("fc").find("weight")->same_bits(
          *before.modules().at("fc").find("weight")));
      return std::string(error.what());
    }
    return std::string("no error");
  };
  using testing::HasSubstr;
  EXPECT_THAT(said({{"method", "sparsgpt"}}), HasSubstr("choose one of"));
  EXPECT_THAT(said({{"method", "sparsegpt"}, {"sparsity", 0.5}, {"scope", "global"}}),
              HasSubstr("one layer after another"));
  EXPECT_THAT(said({{"granularity", "n:m"}, {"sparsity", 0.5}}), HasSubstr("leave out sparsity"));
  EXPECT_THAT(said({{"granularity", "n:m"}, {"n", 5}}), HasSubstr("5 of every 4"));
  EXPECT_THAT(said({{"granularity", "block"}, {"block_size", List{0, 4}}}), HasSubstr("two sizes"));
  EXPECT_THAT(said({{"method", "snip"}, {"sparsity", 0.5}}), HasSubstr("rows with classes"));
}

}  // namespace
}  // namespace mase::criteria_test
