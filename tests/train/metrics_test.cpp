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
    EXPECT_NO_THROW(metric->compute({nullptr, nullptr, 0, 3, 0})) << metric->name;
}

}  // namespace
}  // namespace mase
