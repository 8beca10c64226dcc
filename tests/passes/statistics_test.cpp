// SPDX-License-Identifier: Apache-2.0
// Statistics collectors against reference results, and their memory on long streams.
#include "mase/passes/statistics/statistic.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "mase/base/random.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/passes/statistics/value_sketch.h"
#include "support/support.h"

namespace mase::statistics_test {
namespace {

std::unique_ptr<Statistic> make(const std::string& name, const Value& args) {
  const StatisticRecord& record = Registry<StatisticRecord>::instance().get(name);
  return record.make(validate(args, record.schema, name));
}

void expect_near(const Value& ours, const Value& theirs, const std::string& place) {
  if (theirs.is_list()) {
    ASSERT_TRUE(ours.is_list()) << place;
    ASSERT_EQ(ours.as_list().size(), theirs.as_list().size()) << place;
    for (size_t i = 0; i < theirs.as_list().size(); ++i)
      expect_near(ours.as_list()[i], theirs.as_list()[i], place + "." + std::to_string(i));
  } else if (theirs.is_number()) {
    ASSERT_TRUE(ours.is_number()) << place;
    const double want = theirs.as_double(), got = ours.as_double();
    // One mean of the reference, 0.0029 among values near 1, carries float32's own rounding error
    // of 1.04e-5; ours is summed in double.
    EXPECT_LE(std::abs(got - want), 1e-5 * std::max(std::abs(want), 3e-3)) << place << got << want;
  } else {
    EXPECT_EQ(ours, theirs) << place;
  }
}

// Nobody said what to measure: the layers are, and nothing is shown as measured that was not.
TEST(Statistics, WithoutAConfigurationLayersAreMeasured) {
  const test::RunResult result =
      test::ch({"pass", "profile_statistics", "jsc-tiny", "--json"}, test::source_path(""));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* word :
       {"seq_blocks_2", "weight", "range_min_max", "variance_precise", "data_in_0"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word;
}

TEST(Statistics, EqualTheReference) {
  const TensorTable table = load_safetensors(test::golden_path("passes/statistics.safetensors"));
  const std::map<std::string, Tensor> tensors(table.begin(), table.end());
  const Value cases = read_json(test::golden_path("passes/statistics.json"));
  ASSERT_EQ(cases.as_list().size(), 28u);
  for (const Value& item : cases.as_list()) {
    Value args = item["args"];
    if (args["dims"].is_null()) args.dict().set("dims", "NA");
    auto statistic = make(item["stat"].as_string(), args);
    const Tensor& input = tensors.at(item["input"].as_string());
    const int64_t samples = item["samples"].as_int();
    Shape sample = input.shape();
    sample.erase(sample.begin());
    const size_t size = static_cast<size_t>(element_count(sample));
    for (int64_t i = 0; i < samples; ++i)
      statistic->update({input.data<float>() + static_cast<size_t>(i) * size, size}, sample, 1);
    const Value result = statistic->compute();
    for (const auto& [key, value] : item["result"].as_dict())
      expect_near(result[key], value, item["stat"].as_string() + " " + python_repr(args) + key);
  }
}

TEST(Statistics, HandCheckedSmallCases) {
  const std::vector<float> first = {1, 2, 3, 4}, second = {5, 6, 7, 9};
  const auto run = [&](const char* name, const Value& args) {
    auto statistic = make(name, args);
    statistic->update(first, {4}, 1);
    statistic->update(second, {4}, 1);
    return statistic->compute();
  };
  EXPECT_NEAR(run("variance_online", Dict())["variance"].as_double(), 6.234375, 1e-6);
  EXPECT_NEAR(run("variance_online_mase", Dict())["variance"].as_double(), 6.8073, 1e-4);
  EXPECT_NEAR(run("variance_precise", Dict())["variance"].as_double(), 7.125, 1e-6);
  EXPECT_NEAR(run("range_n_sigma", Dict())["min"].as_double(), -3.38281, 1e-5);
  EXPECT_NEAR(run("range_n_sigma", Dict())["max"].as_double(), 12.63281, 1e-5);
  EXPECT_NEAR(run("range_quantile", Dict())["min"].as_double(), 1.175, 1e-6);
  EXPECT_NEAR(run("range_quantile", Dict())["max"].as_double(), 8.65, 1e-6);
  EXPECT_NEAR(run("abs_mean", Dict())["abs_mean"].as_double(), 4.625, 1e-6);
  const Value histogram = run("histogram", Dict{{"bins", 4}});
  EXPECT_EQ(histogram["counts"], Value::of(Shape{2, 2, 2, 2}));
  EXPECT_EQ(run("record", Dict())["count"], Value(2));
  EXPECT_EQ(run("record", Dict())["size_in_bytes"], Value(32));
  // excess kurtosis of these eight numbers, m4 / m2^2 - 3
  EXPECT_NEAR(run("kurtosis", Dict())["kurtosis"].as_double(), -0.97692, 1e-5);
}

TEST(Statistics, EveryOneTakesEveryDimsForm) {
  Random random(1, "dims");
  std::vector<float> values(2 * 3 * 4);
  for (float& value : values) value = static_cast<float>(random.normal());
  for (const StatisticRecord* record : Registry<StatisticRecord>::instance().all()) {
    if (!record->schema.find("dims")) continue;
    for (const Value& dims : {Value("all"), Value("NA"), Value::of(Shape{0}), Value::of(Shape{-1}),
                              Value::of(Shape{0, 2}), Value::of(Shape{0, 1, 2})}) {
      auto statistic = make(record->name, Dict{{"dims", dims}});
      for (int i = 0; i < 3; ++i) statistic->update(values, {2, 3, 4}, 1);
      EXPECT_TRUE(statistic->compute().is_dict()) << record->name;
    }
    auto statistic = make(record->name, Dict{{"dims", Value::of(Shape{5})}});
    EXPECT_THROW(statistic->update(values, {2, 3, 4}, 1), Error) << record->name;
  }
}

TEST(ValueSketch, KeepsItsPromiseAboveTheBudget) {
  Random random(3, "sketch");
  std::vector<float> values;
  ValueSketch exact(1 << 20), counted(1000);
  for (int i = 0; i < 200000; ++i) {
    const float value = static_cast<float>(random.normal() * std::exp(random.normal() * 3));
    exact.add(value);
    counted.add(value);
  }
  EXPECT_TRUE(exact.exact());
  EXPECT_FALSE(counted.exact());
  for (const double q : {0.0, 0.001, 0.03, 0.25, 0.5, 0.9, 0.97, 0.999, 1.0})
    EXPECT_NEAR(counted.quantile(q), exact.quantile(q),
                std::abs(exact.quantile(q)) * ValueSketch::relative_error * 2 + 1e-30)
        << q;
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// MASE_LONG_TESTS=1 streams 10^8 values, the default a tenth of it.
TEST(Statistics, StreamingKeepsMemorySmall) {
  const int64_t total = std::getenv("MASE_LONG_TESTS") ? 100'000'000 : 10'000'000;
  const double before = peak_megabytes();
  std::vector<std::unique_ptr<Statistic>> collectors;
  for (const char* name : {"variance_online", "variance_precise", "range_n_sigma", "range_min_max",
                           "range_quantile", "abs_mean", "histogram", "kurtosis"})
    collectors.push_back(make(name, Dict()));
  std::vector<float> block(100'000);
  uint32_t state = 1;
  for (int64_t done = 0; done < total; done += static_cast<int64_t>(block.size())) {
    for (float& value : block) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) * (1.0f / 16777216.0f) - 0.5f;
    }
    for (auto& collector : collectors) collector->update(block, {100}, 1000);
  }
  for (auto& collector : collectors) EXPECT_EQ(collector->compute()["count"].as_int(), total);
  EXPECT_NEAR(collectors[4]->compute()["max"].as_double(), 0.475, 0.475 / 4096 + 1e-3);
  EXPECT_NEAR(collectors[1]->compute()["variance"].as_double(), 1.0 / 12, 1e-4);
  const double grown = peak_megabytes() - before;
  RecordProperty("peak_megabytes", std::to_string(grown));
  if (!test::sanitized) {  // a sanitizer holds freed memory back
    EXPECT_LT(grown, 100);
  }
}

TEST(Statistics, HistogramsOfInfiniteRangesCountEveryValue) {
  const float infinity = std::numeric_limits<float>::infinity();
  ValueSketch sketch(100);
  for (const float value : {-infinity, -1.0f, 0.0f, 2.0f, infinity}) sketch.add(value);
  EXPECT_EQ(sketch.histogram(-infinity, infinity, 3), (std::vector<int64_t>{4, 0, 1}));
  EXPECT_EQ(sketch.histogram(0, infinity, 3), (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(sketch.histogram(-1, 2, 3), (std::vector<int64_t>{1, 1, 1}));
}

}  // namespace
}  // namespace mase::statistics_test
