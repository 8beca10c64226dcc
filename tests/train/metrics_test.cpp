// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "mase/base/random.h"
#include "mase/train/metric.h"
#include "support/support.h"

namespace mase {
namespace {

// Four rows, three classes; predictions 0, 2, 1, 1 against labels 0, 1, 1, 2.
const std::vector<float> logits = {3, 1, 0, 0, 1, 2, 0, 5, 1, -1, 2, 1};
const std::vector<int32_t> labels = {0, 1, 1, 2};
MetricInput input() { return {logits.data(), labels.data(), 4, 3, 0.25}; }

TEST(Metrics, AccuracyTopKAndLoss) {
  EXPECT_DOUBLE_EQ(compute_metric("accuracy", input()).as_double(), 0.5);
  EXPECT_DOUBLE_EQ(compute_metric("top_k", input())["2"].as_double(), 1.0);
  EXPECT_DOUBLE_EQ(compute_metric("loss", input()).as_double(), 0.25);
}

TEST(Metrics, ConfusionRowsAreTrueClasses) {
  EXPECT_EQ(to_json(compute_metric("confusion", input())), "[[1,0,0],[0,1,1],[0,1,0]]");
}

TEST(Metrics, PrecisionAndRecall) {
  const Value precision = compute_metric("precision", input());
  const Value recall = compute_metric("recall", input());
  EXPECT_DOUBLE_EQ(precision.as_list()[0].as_double(), 1);
  EXPECT_DOUBLE_EQ(precision.as_list()[1].as_double(), 0.5);
  EXPECT_DOUBLE_EQ(precision.as_list()[2].as_double(), 0);
  EXPECT_DOUBLE_EQ(recall.as_list()[1].as_double(), 0.5);
  EXPECT_DOUBLE_EQ(recall.as_list()[2].as_double(), 0);
}

TEST(Metrics, BalancedAccuracyCountsClassesAlike) {
  // Class 0: 1 of 1, class 1: 1 of 2, class 2: 0 of 1.
  EXPECT_DOUBLE_EQ(compute_metric("balanced_accuracy", input()).as_double(), 0.5);
  MetricStream stream;
  stream.choose("top_k_accuracy", true, Dict{{"k", 1}});
  EXPECT_EQ(stream.curve(0), "top1_acc");
  stream.start(1, 3);
  stream.add(0, input());
  EXPECT_DOUBLE_EQ(stream.value(0), 0.5);
  stream.choose("top_k_accuracy", true, Dict{{"k", 2}});  // instead of the other
  EXPECT_EQ(stream.size(), 1u);
  stream.start(1, 3);
  stream.add(0, input());
  EXPECT_DOUBLE_EQ(stream.value(0), 1);
}

// By hand from the confusion [[1,0,0],[0,1,1],[0,1,0]]: F1 of class 1 is 2 / (2 + 2).
TEST(Metrics, F1AndMatthews) {
  const Value f1 = compute_metric("f1", input());
  EXPECT_DOUBLE_EQ(f1.as_list()[0].as_double(), 1);
  EXPECT_DOUBLE_EQ(f1.as_list()[1].as_double(), 0.5);
  EXPECT_DOUBLE_EQ(f1.as_list()[2].as_double(), 0);
  // 2 hits of 4: (2 * 4 - (1 + 4 + 1)) / sqrt((16 - 6) * (16 - 6)).
  EXPECT_DOUBLE_EQ(compute_metric("mcc", input()).as_double(), 0.2);
  const std::vector<int32_t> one = {1, 1, 1, 1};
  EXPECT_EQ(compute_metric("mcc", {logits.data(), one.data(), 4, 3}).as_double(), 0);
}

TEST(Metrics, CorrelationsOfNumbersAndRanks) {
  const std::vector<float> got = {1, 2, 3, 4, 5}, wanted = {2, 1, 4, 4, 100};
  const MetricInput numbers{
      .logits = got.data(), .rows = 5, .outputs = 1, .targets = wanted.data()};
  // SciPy's pearsonr and spearmanr.
  EXPECT_NEAR(compute_metric("pearson", numbers).as_double(), 0.723144076061812, 1e-12);
  EXPECT_NEAR(compute_metric("spearman", numbers).as_double(), 0.8720815992723809, 1e-12);
  const std::vector<float> same(5, 7);
  const MetricInput flat{.logits = got.data(), .rows = 5, .outputs = 1, .targets = same.data()};
  EXPECT_TRUE(std::isnan(compute_metric("pearson", flat).as_double()));
}

// Targets far from 0: the squares of R2 must not cancel.
TEST(Metrics, ErrorsOfNumbersAreTheirFormulas) {
  Random random(4, "numbers");
  constexpr int64_t rows = 1000, outputs = 2;
  std::vector<float> wanted(rows * outputs), got(rows * outputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = static_cast<float>(1e4 * static_cast<double>(i % outputs) + random.normal());
    got[i] = wanted[i] + static_cast<float>(0.25 * random.normal());
  }
  double absolute = 0, squared = 0, r2 = 0;
  for (size_t o = 0; o < outputs; ++o) {
    double mean = 0, errors = 0, spread = 0;
    for (size_t i = o; i < wanted.size(); i += outputs) mean += wanted[i] / rows;
    for (size_t i = o; i < wanted.size(); i += outputs) {
      const double d = static_cast<double>(got[i]) - wanted[i];
      absolute += std::fabs(d);
      errors += d * d;
      spread += (wanted[i] - mean) * (wanted[i] - mean);
    }
    squared += errors;
    r2 += (1 - errors / spread) / outputs;
  }
  // In batches of unequal size, and as several processes would: each fills in its own.
  MetricStream whole, shards[2];
  for (MetricStream* stream : {&whole, &shards[0], &shards[1]}) {
    for (const char* name : {"mae", "rmse", "r2"}) stream->choose(name, false);
    stream->start(8, outputs);
  }
  for (int64_t b = 0; b < 8; ++b) {
    MetricInput batch;
    batch.rows = std::min<int64_t>(130, rows - b * 130);
    batch.outputs = outputs;
    batch.logits = got.data() + b * 130 * outputs;
    batch.targets = wanted.data() + b * 130 * outputs;
    whole.add(b, batch);
    shards[b < 3 ? 0 : 1].add(b, batch);
  }
  EXPECT_NEAR(whole.value(0), absolute / (rows * outputs), 1e-12);
  EXPECT_NEAR(whole.value(1), std::sqrt(squared / (rows * outputs)), 1e-12);
  EXPECT_NEAR(whole.value(2), r2, 1e-9);
  for (size_t i = 0; i < whole.partials().size(); ++i)
    shards[0].partials()[i] += shards[1].partials()[i];
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(shards[0].value(i), whole.value(i)) << i;
}

TEST(Metrics, FiguresThatDoNotFitAreRefused) {
  MetricStream stream;
  EXPECT_THROW(stream.choose("mae", true), Error);
  EXPECT_THROW(stream.choose("accuracy", false), Error);
  EXPECT_THROW(stream.choose("roc", true), Error);
  EXPECT_THROW(stream.choose("acuracy", true), Error);
  EXPECT_THROW(stream.choose("top_k_accuracy", true, Dict{{"n", 3}}), Error);
}

TEST(Metrics, RocAreaEqualsTheShareOfOrderedPairs) {
  Random random(3, "roc");
  std::vector<float> scores(300);
  std::vector<bool> positive(300);
  for (size_t i = 0; i < scores.size(); ++i) {
    positive[i] = random.below(3) == 0;
    // Few distinct values: many ties.
    scores[i] = static_cast<float>(random.below(12) + (positive[i] ? 2 : 0));
  }
  double pairs = 0, ordered = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j)
      if (positive[i] && !positive[j]) {
        ++pairs;
        ordered += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
  const RocCurve curve = roc_curve(scores, positive);
  EXPECT_NEAR(curve.auc, ordered / pairs, 1e-12);
  EXPECT_EQ(curve.fpr.front(), 0);
  EXPECT_EQ(curve.tpr.back(), 1);
}

TEST(Metrics, RocIsThinnedButKeepsItsEnds) {
  std::vector<float> scores(5000);
  std::vector<bool> positive(5000);
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<float>(i);
    positive[i] = i % 3 == 0;
  }
  const RocCurve curve = roc_curve(scores, positive);
  EXPECT_LE(curve.fpr.size(), 200u);
  EXPECT_EQ(curve.fpr.back(), 1);
}

TEST(Metrics, AClassWithoutRowsHasNoArea) {
  EXPECT_TRUE(std::isnan(roc_curve({1, 2}, {true, true}).auc));
  const std::vector<int32_t> only_first = {0, 0, 0, 0};
  MetricInput one = input();
  one.labels = only_first.data();
  EXPECT_TRUE(compute_metric("roc", one).as_list()[0]["auc"].is_null());
}

TEST(Metrics, EveryOneTakesAnEmptySplit) {
  for (const MetricRecord* metric : Registry<MetricRecord>::instance().all())
    EXPECT_NO_THROW(compute_metric(metric->name, {nullptr, nullptr, 0, 3, 0})) << metric->name;
}

}  // namespace
}  // namespace mase
