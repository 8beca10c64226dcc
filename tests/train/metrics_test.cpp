// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "mase/base/random.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/train/evaluation.h"
#include "mase/train/metric.h"
#include "support/support.h"

namespace mase::metrics_test {
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

// A diverged network, a format that overflows to infinity: figures end, and none counts such a row
// as right.
TEST(Metrics, RowsWithoutFiniteScoresAreWrongAndHaveNoCurve) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> broken = {nan, 1, 0,        0, 1, 2,         0, infinity, 1,
                                     -1,  2, infinity, 0, 1, -infinity, 5, nan,      1};
  const std::vector<int32_t> wanted = {0, 2, 1, 2, 1, 0};
  const MetricInput rows{broken.data(), wanted.data(), 6, 3, nan};
  EXPECT_TRUE(std::isnan(roc_curve({1, nan, 0}, {true, false, true}).auc));
  EXPECT_EQ(arg_max(broken.data(), 3), -1);
  EXPECT_EQ(arg_max(broken.data() + 12, 3), 1);  // -infinity is the probability 0
  const Value curves = compute_metric("roc", rows);
  for (const Value& curve : curves.as_list()) {
    EXPECT_TRUE(curve["auc"].is_null());
    EXPECT_TRUE(curve["fpr"].as_list().empty());
  }
  EXPECT_DOUBLE_EQ(compute_metric("accuracy", rows).as_double(), 2.0 / 6);
  EXPECT_DOUBLE_EQ(compute_metric("top_k", rows)["2"].as_double(), 2.0 / 6);
  EXPECT_TRUE(compute_metric("loss", rows).is_null());
  EXPECT_EQ(to_json(compute_metric("confusion", rows)), "[[0,0,0],[0,1,0],[0,0,1]]");
  EXPECT_DOUBLE_EQ(compute_metric("recall", rows).as_list()[1].as_double(), 0.5);
  EXPECT_DOUBLE_EQ(compute_metric("precision", rows).as_list()[1].as_double(), 1);

  Dataset dataset;
  dataset.class_names = {"a", "b", "c"};
  Split split;
  split.x = Tensor({6, 1});
  split.labels = Tensor({6}, DType::i32);
  std::copy(wanted.begin(), wanted.end(), split.labels.mutable_data<int32_t>());
  Tensor outputs({6, 3});
  std::copy(broken.begin(), broken.end(), outputs.mutable_data<float>());
  const Value record = evaluation_record("test", split, outputs, {}, dataset);
  EXPECT_EQ(record["rows_without_scores"].as_int(), 4);
  EXPECT_TRUE(record["roc"].as_list()[0]["auc"].is_null());
  // The engine counts the same rows as right.
  constexpr int64_t stride = 16;
  Tensor lanes({3, stride});
  std::vector<int32_t> padded(2 * stride);
  for (size_t b = 0; b < 6; ++b) {
    padded[b] = wanted[b];
    for (size_t c = 0; c < 3; ++c) lanes.mutable_data<float>()[c * stride + b] = broken[b * 3 + c];
  }
  const float* by_class = lanes.data<float>();
  EXPECT_EQ(kernels::hits(by_class, 3, stride, 6, padded.data()), 2);
  EXPECT_EQ(kernels::reference::hits(by_class, 3, stride, 6, padded.data()), 2);
  EXPECT_EQ(
      kernels::cross_entropy(by_class, 3, stride, 6, padded.data(), nullptr, 1, nullptr).correct,
      2);
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

TEST(Metrics, RejectionAtWorkingPointsIsThatOfTheWholeCurve) {
  constexpr int64_t rows = 20000;
  Random random(5, "working points");
  std::vector<float> logits(rows * 2);
  std::vector<int32_t> labels(rows);
  for (size_t i = 0; i < rows; ++i) {
    labels[i] = static_cast<int32_t>(i % 4 == 0);
    logits[2 * i + 1] = static_cast<float>(random.normal() + 2.5 * labels[i]);
  }
  MetricInput input{.logits = logits.data(), .labels = labels.data(), .rows = rows, .outputs = 2};
  const Value curve = compute_metric("roc", input).as_list()[1];
  EXPECT_LE(curve["fpr"].as_list().size(), 200u);
  for (const Value& point : curve["working_points"].as_list()) {
    // By sorting: the cut that keeps this share of the signal, and what it keeps of the rest.
    std::vector<float> signal;
    for (size_t i = 0; i < rows; ++i)
      if (labels[i]) signal.push_back(logits[2 * i + 1]);
    std::sort(signal.rbegin(), signal.rend());
    const double wanted = point["signal"].as_double();
    const float cut =
        signal[static_cast<size_t>(std::ceil(wanted * static_cast<double>(signal.size()))) - 1];
    double kept = 0;
    for (size_t i = 0; i < rows; ++i) kept += !labels[i] && logits[2 * i + 1] >= cut;
    EXPECT_NEAR(point["background"].as_double(), kept / (0.75 * rows), 1.01 / (0.75 * rows));
  }
}

TEST(Metrics, ManyClassesAreLinear) {
  constexpr int64_t rows = 300, classes = 4000;
  std::vector<float> logits(rows * classes);
  std::vector<int32_t> labels(rows);
  for (size_t i = 0; i < rows; ++i) {
    labels[i] = static_cast<int32_t>(i % 5);
    logits[i * classes + i % 3] = 1;
  }
  MetricInput input{
      .logits = logits.data(), .labels = labels.data(), .rows = rows, .outputs = classes};
  const Value confusion = compute_metric("confusion", input);
  int64_t total = 0;
  for (const Value& cell : confusion["cells"].as_list()) total += cell.as_list()[2].as_int();
  EXPECT_EQ(total, rows);
  EXPECT_EQ(confusion["cells"].as_list().size(), 15u);
  EXPECT_EQ(compute_metric("support", input).as_list()[4].as_int(), 60);
  const Value curves = compute_metric("roc", input);
  EXPECT_FALSE(curves.as_list()[0].as_dict().contains("fpr"));
  EXPECT_LT(to_json(confusion).size() + to_json(curves).size(), 1'000'000u);
}

}  // namespace
}  // namespace mase::metrics_test
