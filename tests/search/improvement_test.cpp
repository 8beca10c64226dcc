// SPDX-License-Identifier: Apache-2.0
// What the Gaussian process sampler stands on: figures warped and back, the volume that a point is
// expected to add, a start that sees all of the space; and that it finds what is there to be found,
// the same with results that come in another order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "mase/search/models/expected_volume.h"
#include "mase/search/models/warp.h"
#include "mase/search/samplers/sampler.h"
#include "mase/search/study/study.h"

namespace mase::search::improvement_test {
namespace {

TEST(Warp, KeepsTheOrderAndComesBack) {
  Random random(1, "warp");
  for (const int kind : {0, 1, 2, 3}) {
    std::vector<double> figures;
    for (int i = 0; i < 60; ++i) {
      const double x = random.normal();
      figures.push_back(kind == 0   ? x
                        : kind == 1 ? std::exp(6 * x)
                        : kind == 2 ? -std::exp(4 * x)
                                    : 7);
    }
    const Warp warp(figures);
    std::sort(figures.begin(), figures.end());
    double mean = 0;
    for (size_t i = 0; i < figures.size(); ++i) {
      const double warped = warp(figures[i]);
      EXPECT_TRUE(std::isfinite(warped));
      if (i > 0 && figures[i] > figures[i - 1]) {
        EXPECT_GT(warped, warp(figures[i - 1])) << kind;
      }
      if (kind < 3) {
        EXPECT_NEAR(warp.back(warped), figures[i], 1e-6 * (1 + std::abs(figures[i]))) << kind;
      }
      mean += warped / static_cast<double>(figures.size());
    }
    EXPECT_NEAR(mean, 0, 1e-9);
    // A few enormous figures leave the others their differences.
    if (kind == 1) {
      EXPECT_GT(warp(figures[40]) - warp(figures[10]), 0.5);
    }
  }
}

TEST(ExpectedVolume, IsTheMeanOfWhatDrawsAdd) {
  Random random(2, "volume");
  for (const size_t objectives : {1, 2, 3}) {
    std::vector<Losses> points;
    for (int i = 0; i < 12; ++i) {
      points.emplace_back();
      for (size_t k = 0; k < objectives; ++k) points.back().push_back(random.uniform());
    }
    points.push_back(Losses(objectives, 2.0));  // beyond the reference
    std::vector<Losses> front;
    for (const size_t i : pareto_front(points)) front.push_back(points[i]);
    const Losses reference(objectives, 1.1), lowest(objectives, -3.0);
    const ExpectedVolume volume(front, reference, lowest);
    std::vector<double> mean, deviation;
    for (size_t k = 0; k < objectives; ++k) {
      mean.push_back(0.1 + 0.2 * static_cast<double>(k));
      deviation.push_back(0.3);
    }
    std::vector<std::vector<double>> below(objectives);
    for (size_t k = 0; k < objectives; ++k)
      for (const double node : volume.nodes(k))
        below[k].push_back(0.5 * std::erfc((mean[k] - node) / deviation[k] / std::sqrt(2.0)));
    const double covered = hypervolume(front, reference);
    double sum = 0;
    constexpr int draws = 20000;
    for (int draw = 0; draw < draws; ++draw) {
      std::vector<Losses> more = front;
      more.emplace_back();
      for (size_t k = 0; k < objectives; ++k)
        more.back().push_back(mean[k] + deviation[k] * random.normal());
      sum += hypervolume(more, reference) - covered;
    }
    EXPECT_NEAR(volume.expect(below), sum / draws, 0.03 * sum / draws + 1e-4) << objectives;
  }
}

TEST(Start, EachPartOfEachParameterIsSeenOnce) {
  Space space;
  space.add({"x", Distribution::real(0, 1)});
  space.add({"n", Distribution::integer(1, 5)});
  space.add({"c", Distribution::categorical({Value("a"), Value("b")}, "c")});
  for (const uint64_t seed : {0, 1}) {
    std::set<int> parts;
    std::vector<int> whole(6), choice(2);
    for (int64_t number = 10; number < 20; ++number) {
      const Point point = stratified_point(space, seed, number, 10);
      EXPECT_TRUE(space.contains(point));
      parts.insert(static_cast<int>(point[0] * 10));
      ++whole[static_cast<size_t>(point[1])];
      ++choice[static_cast<size_t>(point[2])];
    }
    EXPECT_EQ(parts.size(), 10u);
    EXPECT_EQ(whole, (std::vector<int>{0, 2, 2, 2, 2, 2}));
    EXPECT_EQ(choice, (std::vector<int>{5, 5}));
  }
}

Trials searched(size_t objectives, int jobs, int64_t window, int64_t count) {
  Space space;
  for (const char* name : {"x", "y", "z"}) space.add({name, Distribution::real(0, 1)});
  space.add({"k", Distribution::integer(0, 7)});
  space.add({"c", Distribution::categorical({Value("p"), Value("q"), Value("r")}, "c")});
  StudyOptions options;
  options.seed = 4;
  options.trials = count;
  options.jobs = jobs;
  options.window = window;
  const SamplerRecord& record = find_sampler("gp", "");
  Study study(Trials(space, std::vector<bool>(objectives, false)),
              record.make(validate(Dict{}, record.schema, ""), {&space, objectives, count}),
              nullptr, nullptr, options);
  const Objective objective([objectives](const Point& x, const Report&) {
    Measurement result;
    double sum = 0, other = 0;
    for (size_t i = 0; i < 3; ++i) {
      sum += (x[i] - 0.3) * (x[i] - 0.3);
      other += (x[i] - 0.6) * (x[i] - 0.6);
    }
    sum += 0.01 * std::abs(x[3] - 5) + (x[4] == 1 ? 0 : 0.1);
    result.values = {sum};
    if (objectives > 1) result.values.push_back(other + (x[4] == 1 ? 0 : 0.1));
    return result;
  });
  study.run(std::vector<Objective>(static_cast<size_t>(jobs), objective));
  return study.take_trials();
}

TEST(GpSampler, FindsTheBottomOfABowl) {
  const Trials trials = searched(1, 1, 1, 45);
  double best = 1;
  for (const Trial& trial : trials) best = std::min(best, trial.values[0]);
  EXPECT_LT(best, 0.002);  // random search: 0.05
}

TEST(GpSampler, CoversAFrontAndIsTheSameWithThreads) {
  const Trials one = searched(2, 1, 3, 40), several = searched(2, 3, 3, 40);
  ASSERT_EQ(one.size(), several.size());
  std::vector<Losses> losses;
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].point, several[i].point) << i;
    losses.push_back(one[i].values);
  }
  EXPECT_GT(hypervolume(losses, {0.3, 0.3}), 0.059);  // all of it: 0.0634; random: below 0.03
}

}  // namespace
}  // namespace mase::search::improvement_test
