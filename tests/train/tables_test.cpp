// SPDX-License-Identifier: Apache-2.0
// Training of networks of tables and of bits: kernels against plain loops, gradients as the
// adjoints of what they are gradients of and as the sums over all addresses, the graph as the
// trained network.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/models/sequential.h"
#include "mase/train/tables/table_moves.h"
#include "mase/train/weightless/weightless_network.h"
#include "support/support.h"

namespace mase::test::tables_test {
namespace {

using Floats = std::vector<float>;

Floats drawn(Random& random, int64_t n, double size = 1) {
  Floats values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(size * random.normal());
  return values;
}

double dot(const Floats& a, const Floats& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k)
    sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

TEST(table_lanes, entries_are_added_as_plain_loops_do) {
  for (const int64_t pad : {8, 16, 24, 32}) {
    Random random(static_cast<uint64_t>(pad), "lanes");
    const int64_t inputs = 5, codes = 16, rows = 37;
    const std::vector<int> live = {0, 2, 4};
    const table_lanes::TableExtent shape{inputs, codes, pad, live};
    const Floats tables = drawn(random, inputs * codes * pad), start = drawn(random, pad),
                 g = drawn(random, rows * pad);
    std::vector<uint8_t> code(static_cast<size_t>(rows * inputs));
    for (uint8_t& one : code) one = static_cast<uint8_t>(random.below(codes));
    Floats out(static_cast<size_t>(rows * pad), NAN), sums(tables.size(), 0.0f),
        back(static_cast<size_t>(rows * 7), 3.0f);
    table_lanes::add_entries(shape, tables.data(), start.data(), code.data(), rows, out.data());
    table_lanes::add_by_code(shape, g.data(), code.data(), rows, sums.data());
    table_lanes::pull_back(shape, tables.data(), g.data(), code.data(), rows, 7, back.data());
    Floats wanted_sums(tables.size(), 0.0f);
    for (int64_t row = 0; row < rows; ++row) {
      for (const int i : live) {
        const int64_t at = (i * codes + code[static_cast<size_t>(row * inputs + i)]) * pad;
        double product = 0;
        for (int64_t o = 0; o < pad; ++o) {
          wanted_sums[static_cast<size_t>(at + o)] += g[static_cast<size_t>(row * pad + o)];
          product += static_cast<double>(g[static_cast<size_t>(row * pad + o)]) *
                     static_cast<double>(tables[static_cast<size_t>(at + o)]);
        }
        EXPECT_NEAR(static_cast<double>(back[static_cast<size_t>(row * 7 + i)]), product, 1e-4);
      }
      // What is not live is left as it was.
      EXPECT_EQ(back[static_cast<size_t>(row * 7 + 1)], 3.0f);
      for (int64_t o = 0; o < pad; ++o) {
        float sum = start[static_cast<size_t>(o)];
        for (const int i : live)
          sum += tables[static_cast<size_t>(
              (i * codes + code[static_cast<size_t>(row * inputs + i)]) * pad + o)];
        EXPECT_EQ(out[static_cast<size_t>(row * pad + o)], sum);
      }
    }
    EXPECT_EQ(sums, wanted_sums);
  }
}

TEST(table_lanes, what_goes_back_is_the_adjoint) {
  Random random(2, "adjoint");
  const int64_t codes = 64, pad = 16;
  for (const int count : {8, 32}) {
    const TableNetwork::Splines splines(codes, count);
    const Floats coefficients = drawn(random, count * pad), g = drawn(random, codes * pad);
    Floats values(g.size(), NAN), back(coefficients.size(), 0.0f);
    table_lanes::spline(splines.basis(), codes, pad, false, coefficients.data(), values.data());
    table_lanes::spline_back(splines.basis(), codes, pad, g.data(), back.data());
    EXPECT_NEAR(dot(values, g), dot(coefficients, back), 1e-2);
    // The functions add up to one everywhere.
    const Floats ones(coefficients.size(), 1.0f);
    table_lanes::spline(splines.basis(), codes, pad, false, ones.data(), values.data());
    for (const float value : values) EXPECT_NEAR(value, 1, 1e-5);
  }
  for (const int64_t cell : {1, 4, 64}) {
    Floats counts(static_cast<size_t>(codes)), mask(static_cast<size_t>(pad), 1.0f),
        up(static_cast<size_t>(pad), 65536.0f), down(static_cast<size_t>(pad), 1 / 65536.0f);
    for (float& one : counts) one = static_cast<float>(random.uniform(0.5, 9));
    mask[3] = 0;
    const table_lanes::Cells cells{codes,       pad,       cell,       counts.data(),
                                   mask.data(), up.data(), down.data()};
    const Floats values = drawn(random, codes * pad), g = drawn(random, codes * pad);
    Floats tables(values.size(), 0.0f), back(values.size(), 0.0f);
    table_lanes::add_cells(cells, values.data(), tables.data());
    table_lanes::add_cells_back(cells, g.data(), back.data());
    EXPECT_NEAR(dot(tables, g), dot(values, back), 2e-2);
    EXPECT_EQ(tables[3], 0.0f);
    EXPECT_EQ(tables[4], tables[static_cast<size_t>((cell - 1) * pad + 4)]);
  }
}

Graph table_graph() {
  Sequential layers("tables", ModelInputs{}, {6}, 3);
  for (const auto& [in, out] : {std::pair{6, 9}, std::pair{9, 3}})
    layers.add("table_linear", Dict{{"in_features", in},
                                    {"out_features", out},
                                    {"input_width", in == 6 ? 7 : 6},
                                    {"input_frac", in == 6 ? 6 : 3},
                                    {"output_frac", 3},
                                    {"rounded", true},
                                    {"overflow", in == 6 ? "saturate" : "wrap"}});
  return layers.finish();
}

// Rows whose class is that of the largest of three functions of their features.
Tensor rows_of_tables(int64_t rows, std::vector<int>& labels) {
  Tensor x({rows, 6});
  Random random(5, "rows");
  for (int64_t row = 0; row < rows; ++row) {
    float* const own = x.mutable_data<float>() + row * 6;
    for (int i = 0; i < 6; ++i) own[i] = static_cast<float>(random.uniform(-1.1, 1.1));
    const double scores[] = {std::abs(own[0]) + own[1], own[2] * own[3], std::cos(3 * own[4])};
    labels.push_back(static_cast<int>(std::max_element(scores, scores + 3) - scores));
  }
  return x;
}

TableRows as_rows(const TableNetwork& network, const Tensor& x, const std::vector<int>& labels) {
  TableRows rows{x.shape()[0], 6, 3, {}, labels, {}};
  rows.codes.resize(static_cast<size_t>(rows.rows * 6));
  network.first_codes(x.data<float>(), rows.rows, rows.codes.data());
  for (const int label : labels)
    for (int o = 0; o < 3; ++o) rows.targets.push_back(label == o);
  return rows;
}

TEST(table_trainer, moves_take_away_what_matters_least_and_the_graph_is_the_network) {
  std::vector<int> labels;
  const Tensor x = rows_of_tables(2000, labels);
  TableNetwork network(table_graph(), 1), again(table_graph(), 1);
  const TableRows rows = as_rows(network, x, labels);
  TableTrainer trainer(network, rows), second(again, rows);
  trainer.count_codes();
  second.count_codes();
  const double before = trainer.score(rows).loss;
  trainer.train({.epochs = 15}, 1, "start");
  second.train({.epochs = 15}, 1, "start");
  const double trained = trainer.score(rows).loss;
  EXPECT_LT(trained, 0.7 * before);
  EXPECT_EQ(trained, second.score(rows).loss);  // the same bits
  const double cost = table_cost(network);
  for (int step = 0; step < 12; ++step) {
    trainer.count_codes();
    const std::vector<TableMove> moves = table_moves(network, trainer.curvature());
    ASSERT_FALSE(moves.empty());
    EXPECT_GT(apply_moves(network, moves, 0.1 * table_cost(network)), 0);
    trainer.count_codes();
    trainer.train({.epochs = 3}, 1, "step" + std::to_string(step));
  }
  EXPECT_LT(table_cost(network), 0.6 * cost);
  EXPECT_LT(trainer.score(rows).loss, before);
  // Feature 5 says nothing: its edges go before others.
  int last = 0, others = 0;
  const TableLayer& first = network.layers().front();
  for (int64_t o = 0; o < first.out; ++o) {
    last += first.bits[first.edge(5, o)];
    others += first.bits[first.edge(4, o)];
  }
  EXPECT_LE(last, others);
  TableRun run_of(network, rows.rows);
  const float* const own = run_of.forward(network, rows.codes.data(), rows.rows);
  const Tensor outputs = run(network.graph(), {x})[0];
  for (int64_t row = 0; row < rows.rows; ++row)
    for (int64_t o = 0; o < 3; ++o)
      ASSERT_EQ(outputs.data<float>()[row * 3 + o], own[row * network.layers().back().pad + o]);
}

TEST(weightless, differences_are_the_sums_over_all_addresses) {
  for (const int inputs : {1, 2, 4, 6}) {
    Random random(static_cast<uint64_t>(inputs), "entries");
    const int size = 1 << inputs;
    const Floats entries = drawn(random, size);
    Floats found(static_cast<size_t>(size * inputs), NAN);
    extended_differences(entries.data(), inputs, found.data());
    const double alpha = 0.5 * std::pow(0.75, inputs - 1);
    for (int a = 0; a < size; ++a)
      for (int j = 0; j < inputs; ++j) {
        double sum = 0;
        for (int b = 0; b < size; ++b) {
          const int apart = std::popcount(static_cast<unsigned>((a ^ b) & ~(1 << j)));
          sum += ((b >> j & 1) != 0 ? 1 : -1) * alpha * std::pow(1.0 / 3, apart) *
                 static_cast<double>(entries[static_cast<size_t>(b)]);
        }
        EXPECT_NEAR(static_cast<double>(found[static_cast<size_t>(a * inputs + j)]), sum, 1e-5);
      }
  }
}

Graph bit_graph() {
  Graph graph;
  graph.name = "bits";
  NodeId x = graph.add_placeholder("x", {12});
  const auto add = [&](const char* path, const char* op, const Dict& attributes) {
    x = graph.add_module(path, make_module(op, attributes, 0, path), {x});
  };
  add("thermometer", "thermometer", Dict{{"in_features", 12}});
  add("first", "lut_layer", Dict{{"in_features", 12}, {"out_features", 24}, {"inputs", 4}});
  add("second", "lut_layer", Dict{{"in_features", 24}, {"out_features", 20}, {"inputs", 3}});
  add("counts", "group_sum", Dict{{"in_features", 20}, {"groups", 2}});
  graph.add_output({x});
  return graph;
}

TEST(weightless, a_rule_of_a_few_bits_is_found_and_the_graph_is_the_network) {
  const int64_t rows = 1500;
  Random random(3, "bits");
  Tensor x({rows, 12});
  std::vector<uint8_t> bits;
  std::vector<int> labels;
  for (int64_t row = 0; row < rows; ++row) {
    int ones = 0;
    for (int i = 0; i < 12; ++i) {
      const bool one = random.below(2) != 0;
      x.mutable_data<float>()[row * 12 + i] = one ? 0.9f : 0.2f;
      bits.push_back(one);
      if (i == 2 || i == 5 || i == 9) ones += one;
    }
    labels.push_back(ones >= 2);
  }
  WeightlessNetwork network(bit_graph(), 1), again(bit_graph(), 1);
  const WeightlessTraining training{.epochs = 30, .batch = 50, .wiring_every = 1};
  WeightlessTrainer trainer(network, bits, labels, {12}, training, 1),
      second(again, bits, labels, {12}, training, 1);
  while (trainer.epoch() < training.epochs) EXPECT_EQ(trainer.run_epoch(), second.run_epoch());
  EXPECT_GT(trainer.accuracy(bits, labels), 0.9);
  const Graph graph = network.graph();
  const Tensor outputs = run(graph, {x})[0];
  int64_t right = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const own = outputs.data<float>() + row * 2;
    right += (own[1] > own[0]) == (labels[static_cast<size_t>(row)] == 1);
  }
  EXPECT_EQ(static_cast<double>(right) / static_cast<double>(rows), trainer.accuracy(bits, labels));
}

}  // namespace
}  // namespace mase::test::tables_test
