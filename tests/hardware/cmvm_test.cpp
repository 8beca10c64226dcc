// SPDX-License-Identifier: Apache-2.0
// Constant matrix-vector products: right for every matrix, no dearer than they were, the same for a
// seed, and a checker that sees faults.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "mase/base/random.h"
#include "mase/hardware/optimize/cmvm.h"
#include "mase/hardware/optimize/cmvm_decomposition.h"
#include "support/support.h"

namespace mase::test::cmvm_test {
namespace {

CmvmProblem matrix(const std::string& name) {
  const std::string path = golden_path("hardware/" + name + ".txt");
  return cmvm_from_text(read(path), path);
}

// Bits of carry chains. The limits are those of the best other program known (da4ml 0.6 and alkaid
// 0.8.2, counted alike): 271, 1192, 392.
TEST(cmvm, bits_stay_low) {
  const std::map<std::string, int64_t> limits = {
      {"w4_toy.1", 252}, {"rand_8_8", 1160}, {"hgq_64_32_32_small.2", 370}};
  for (const auto& [name, limit] : limits) {
    const CmvmProblem problem = matrix(name);
    const AdderGraph graph = solve_cmvm(problem);
    EXPECT_EQ(check_cmvm(problem, graph), "") << name;
    EXPECT_LE(graph.bits, limit) << name;
  }
}

TEST(cmvm, more_effort_is_never_dearer_and_seeds_repeat) {
  const CmvmProblem problem = matrix("w4_toy.1");
  const AdderGraph quick = solve_cmvm(problem, {.effort = 0}), usual = solve_cmvm(problem);
  EXPECT_LE(usual.bits, quick.bits);
  const AdderGraph again = solve_cmvm(problem);
  ASSERT_EQ(usual.adders.size(), again.adders.size());
  for (size_t i = 0; i < usual.adders.size(); ++i) {
    EXPECT_EQ(usual.adders[i].a, again.adders[i].a);
    EXPECT_EQ(usual.adders[i].shift_b, again.adders[i].shift_b);
  }
}

TEST(cmvm, the_checker_sees_faults) {
  const CmvmProblem problem = matrix("w4_toy.1");
  const AdderGraph graph = solve_cmvm(problem, {.effort = 0});
  for (size_t i = 0; i < graph.adders.size(); ++i) {
    AdderGraph flipped = graph;
    flipped.adders[i].subtract = !flipped.adders[i].subtract;
    EXPECT_NE(check_cmvm(problem, flipped), "") << i;
    AdderGraph moved = graph;
    moved.adders[i].shift_a += 1;
    EXPECT_NE(check_cmvm(problem, moved), "") << i;
  }
  AdderGraph negated = graph;
  negated.outputs[0].negative = !negated.outputs[0].negative;
  EXPECT_NE(check_cmvm(problem, negated), "");
}

RC_GTEST_PROP(cmvm_property, every_matrix_is_right, ()) {
  const size_t inputs = *rc::gen::inRange<size_t>(1, 9), outputs = *rc::gen::inRange<size_t>(1, 9);
  const int64_t limit = *rc::gen::element<int64_t>(1, 3, 7, 100, 30000);
  CmvmProblem problem;
  for (size_t i = 0; i < inputs; ++i) {
    const int64_t low = *rc::gen::element<int64_t>(0, -1, -8, -128, 3);
    problem.inputs.push_back({low, low + *rc::gen::element<int64_t>(0, 1, 7, 255)});
    std::vector<int64_t> row;
    for (size_t o = 0; o < outputs; ++o)
      row.push_back(*rc::gen::inRange<int64_t>(-limit, limit + 1));
    problem.weights.push_back(row);
  }
  const AdderGraph graph = solve_cmvm(problem, {.effort = 1, .seed = 5, .delay_weight = 2});
  RC_ASSERT(check_cmvm(problem, graph) == "");
}

// Columns that differ little from one another.
CmvmProblem related_columns(uint64_t seed, size_t inputs, size_t outputs) {
  Random random(seed, "related");
  CmvmProblem problem;
  std::vector<int64_t> base;
  for (size_t i = 0; i < inputs; ++i) {
    problem.inputs.push_back({-128, 127});
    base.push_back(static_cast<int64_t>(random.below(255)) - 127);
    problem.weights.emplace_back();
    for (size_t o = 0; o < outputs; ++o) {
      const int64_t change = random.below(6) == 0 ? int64_t{1} << random.below(7) : 0;
      problem.weights.back().push_back((o % 2 == 0 ? 1 : -1) * (base[i] + change));
    }
  }
  return problem;
}

TEST(cmvm, columns_near_one_another_are_built_from_one_another) {
  const CmvmProblem problem = related_columns(3, 24, 12);
  const AdderGraph plain = solve_cmvm(problem, {.effort = 0}), usual = solve_cmvm(problem);
  EXPECT_EQ(check_cmvm(problem, usual), "");
  EXPECT_LT(static_cast<double>(usual.bits), 0.8 * static_cast<double>(plain.bits));
}

RC_GTEST_PROP(cmvm_property, a_decomposition_is_the_matrix, ()) {
  const size_t inputs = *rc::gen::inRange<size_t>(1, 6), outputs = *rc::gen::inRange<size_t>(1, 9);
  CmvmProblem problem;
  for (size_t i = 0; i < inputs; ++i) {
    problem.inputs.push_back({0, 1});
    problem.weights.emplace_back();
    for (size_t o = 0; o < outputs; ++o)
      problem.weights.back().push_back(*rc::gen::element<int64_t>(0, 0, 1, -1, 2, 7, -7, 100));
  }
  const int depth = *rc::gen::element(1, 2, 3, 100);
  const auto parts = decompose(problem, depth);
  if (!parts) return;
  RC_ASSERT(depth > 1);
  for (size_t o = 0; o < outputs; ++o) {
    RC_ASSERT(parts->columns[o].size() <= static_cast<size_t>(depth));
    for (size_t i = 0; i < inputs; ++i) {
      int64_t sum = 0;
      for (const CmvmDecomposition::Part& part : parts->columns[o])
        sum += (part.negative ? -1 : 1) * parts->edges[static_cast<size_t>(part.edge)][i];
      RC_ASSERT(sum == problem.weights[i][o]);
    }
  }
}

TEST(cmvm, bad_files_are_errors) {
  for (const char* text : {"", "2", "0 1", "1 1\n0 3\n", "1 1\n3 0\n1\n", "1 1\n0 3\nx\n",
                           "1 1\n0 3\n99999999999999\n", "1 1\n0 3\n1 2\n"})
    EXPECT_THROW(cmvm_from_text(text, "m"), Error) << text;
}

}  // namespace
}  // namespace mase::test::cmvm_test
