// SPDX-License-Identifier: Apache-2.0
// The loop and every sampler: valid points, none twice, the same for a seed whatever the threads,
// and the same from a sampler that was kept as from one that was made afresh.
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <thread>

#include "mase/search/models/parzen.h"
#include "mase/search/study/pareto.h"
#include "mase/search/study/study.h"
#include "support/support.h"

namespace mase::search::study_test {
namespace {

constexpr int64_t enough = test::sanitized ? 20 : 40;  // trials: a Gaussian process is dear

Space numeric_space() {
  Space space;
  space.add({"x", Distribution::real(-3, 5)});
  space.add({"lr", Distribution::real(1e-5, 1e-1, true)});
  space.add({"w", Distribution::integer(2, 16)});
  return space;
}

// 4 x (3 + 2 x 2) configurations: "exponent" exists only of a minifloat.
Space discrete_space() {
  Space space;
  space.add({"width", Distribution::integer(2, 8, false, 2)});
  const size_t name = space.add(
      {"name", Distribution::categorical({Value("integer"), Value("minifloat"), Value("log")})});
  space.add({"rounding",
             Distribution::categorical({Value("floor"), Value("nearest"), Value("up")}),
             static_cast<int>(name),
             {0}});
  const int parent = static_cast<int>(name);
  space.add({"exponent", Distribution::integer(3, 4), parent, {1, 2}});
  space.add({"bias", Distribution::categorical({Value(true), Value(false)}), parent, {1, 2}});
  return space;
}

Measurement measure(const Point& point, size_t objectives) {
  double sum = 0;
  for (size_t i = 0; i < point.size(); ++i)
    if (!std::isnan(point[i])) sum += std::abs(point[i] - 1.0 / static_cast<double>(i + 1));
  Measurement result;
  result.values = {sum};
  if (objectives > 1) result.values.push_back(-point[0]);
  return result;
}

std::unique_ptr<Sampler> make(const SamplerRecord& record, const Space& space, size_t objectives) {
  const SamplerSetup setup{&space, objectives, 40};
  if (record.refuses && record.refuses(setup)) return {};
  return record.make(validate(Value(Dict{}), record.schema, record.name), setup);
}

struct Case {
  const SamplerRecord* record;
  Space space;
  size_t objectives;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const SamplerRecord* record : Registry<SamplerRecord>::instance().all())
    for (const Space& space : {numeric_space(), discrete_space()})
      for (const size_t objectives : {size_t{1}, size_t{2}})
        if (make(*record, space, objectives)) all.push_back({record, space, objectives});
  return all;
}

std::vector<Trial> run(const Case& one, int jobs, int64_t window, int64_t trials) {
  Trials history(one.space, std::vector<bool>(one.objectives, false));
  // The study keeps the space that the sampler looks at.
  auto kept = std::make_unique<Space>(one.space);
  StudyOptions options;
  options.seed = 7;
  options.trials = trials;
  options.jobs = jobs;
  options.window = window;
  Study study(history, make(*one.record, *kept, one.objectives), nullptr, nullptr, options);
  const Objective objective = [&](const Point& point, const Report&) {
    return measure(point, one.objectives);
  };
  study.run(std::vector<Objective>(static_cast<size_t>(jobs), objective));
  return {study.trials().begin(), study.trials().end()};
}

TEST(SearchSpace, CountsAndEnumeratesConditionalConfigurations) {
  const Space space = discrete_space();
  EXPECT_EQ(space.size(), 4 * (3 + 2 * 2 + 2 * 2));
  std::set<uint64_t> seen;
  for (double i = 0; i < space.size(); ++i) {
    const Point point = space.nth(i);
    EXPECT_TRUE(space.contains(point)) << i;
    seen.insert(hash_point(point));
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(space.size()));
}

TEST(SearchStudy, EverySamplerProposesValidPointsOnce) {
  for (const Case& one : cases()) {
    const std::vector<Trial> trials = run(one, 1, 1, enough);
    EXPECT_EQ(trials.size(), size_t{enough}) << one.record->name;
    std::set<uint64_t> seen;
    for (const Trial& trial : trials) {
      EXPECT_TRUE(one.space.contains(trial.point)) << one.record->name;
      EXPECT_TRUE(seen.insert(hash_point(trial.point)).second)
          << one.record->name << " repeats trial " << trial.number;
    }
  }
}

TEST(SearchStudy, ExhaustsAFiniteSpaceAndStops) {
  for (const Case& one : cases()) {
    if (std::isinf(one.space.size())) continue;
    const std::vector<Trial> trials = run(one, 1, 1, 1000);
    EXPECT_EQ(trials.size(), static_cast<size_t>(one.space.size())) << one.record->name;
  }
}

TEST(SearchStudy, ThreadsDoNotChangeTheTrials) {
  for (const Case& one : cases()) {
    const std::vector<Trial> alone = run(one, 1, 3, enough), together = run(one, 3, 3, enough);
    ASSERT_EQ(alone.size(), together.size());
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(same_point(alone[i].point, together[i].point))
          << one.record->name << " trial " << i;
  }
}

TEST(SearchStudy, AKeptSamplerSuggestsWhatAFreshOneDoes) {
  for (const Case& one : cases()) {
    // Past 98 observations estimators are no longer rebuilt; a Gaussian process has none and is
    // dear.
    const std::vector<Trial> trials = run(one, 1, 1, one.record->name == "gp" ? 20 : 130);
    Trials history(one.space, std::vector<bool>(one.objectives, false));
    for (size_t i = 0; i < trials.size(); ++i) {
      if (i % 13 == 5 || i > 126) {
        const std::unique_ptr<Sampler> fresh = make(*one.record, history.space(), one.objectives);
        const Suggestion again =
            fresh->suggest(history, {.seed = 7, .number = static_cast<int64_t>(i), .visible = i});
        EXPECT_TRUE(same_point(again.point, trials[i].point)) << one.record->name << " trial " << i;
      }
      history.add(trials[i]);
    }
  }
}

// Of many equal observations two have wide kernels. Whatever their number, the newest is seldom one
// of them.
TEST(SearchParzen, TheWideKernelsAreNotThoseOfTheNewest) {
  Space space;
  space.add({"bit", Distribution::integer(0, 1)});
  ParzenEstimator estimator(space, {0}, false);
  const auto point = [](uint32_t key) -> const Point& {
    static const Point points[] = {{0.0}, {1.0}};
    return points[key % 2];
  };
  std::vector<uint32_t> keys;
  int wide = 0, newest_is_wide = 0;
  for (uint32_t key = 0; key < 200; ++key) {
    keys.push_back(key);
    estimator.observe(keys, point);
    if (key < 20) continue;
    const double least = 2.0 / std::min(100.0, static_cast<double>(keys.size() + 2));
    for (size_t i = 0; i < keys.size(); ++i)
      if (estimator.kernel(i, 0).sigma > least) {
        ++wide;
        newest_is_wide += i + 2 >= keys.size();  // of either value
      }
  }
  EXPECT_EQ(wide, 2 * 180);  // the last of the zeros and the first of the ones
  EXPECT_LT(newest_is_wide, 40);
}

// Two objectives: together on a grid, one by one where a parameter is a real number.
TEST(SearchStudy, ParametersAreDrawnTogetherWhereAllAreOnAGrid) {
  for (const bool grid : {true, false}) {
    Space space;
    for (const char* name : {"a", "b", "c"}) space.add({name, Distribution::integer(0, 15)});
    if (!grid) space.add({"d", Distribution::real(0, 1)});
    const SamplerRecord& tpe = find_sampler("tpe", "");
    const auto points = [&](const Dict& options) {
      StudyOptions study_options;
      study_options.trials = 30;
      Study study(Trials(space, {false, false}),
                  tpe.make(validate(Value(options), tpe.schema, ""), {&space, 2, 30}), nullptr,
                  nullptr, study_options);
      study.run({Objective([](const Point& x, const Report&) {
        return Measurement{.values = {x[0] + x[1] * x[1], 20 - x[0] + x[2]}};
      })});
      std::vector<Point> all;
      for (const Trial& trial : study.trials()) all.push_back(trial.point);
      return all;
    };
    const std::vector<Point> by_default = points({});
    EXPECT_EQ(by_default, points({{"multivariate", grid}}));
    EXPECT_NE(by_default, points({{"multivariate", !grid}}));
  }
}

// All of many observations are equal: another value of the range keeps a share, as another choice
// does, and is drawn as often. Without smoothing it is left to the prior's kernel.
TEST(SearchParzen, SmoothingLeavesEveryWholeNumberAShare) {
  Space space;
  space.add({"width", Distribution::integer(1, 8)});
  const Point seen = {2.0};
  const auto point = [&](uint32_t) -> const Point& { return seen; };
  for (const size_t count : {size_t{12}, size_t{97}, size_t{98}, size_t{150}}) {
    std::vector<uint32_t> keys(count);
    std::iota(keys.begin(), keys.end(), 0u);
    std::vector<Point> values;
    for (int value = 1; value <= 8; ++value) values.push_back({static_cast<double>(value)});
    constexpr double smoothing = 0.5;
    std::vector<double> plain(8), smooth(8);
    ParzenEstimator kept(space, {0}, false, smoothing), fresh(space, {0}, false, smoothing);
    for (size_t i = 1; i <= count; ++i) kept.observe(std::span(keys).first(i), point);
    fresh.observe(keys, point);
    fresh.log_density(values, plain);
    kept.log_density(values, smooth);
    EXPECT_EQ(plain, smooth) << count;
    ParzenEstimator without(space, {0}, false);
    without.observe(keys, point);
    without.log_density(values, plain);
    const double share = smoothing / (8 + std::min(100.0, static_cast<double>(count) + 2));
    double sum = 0;
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(std::exp(smooth[i]), std::exp(plain[i]) * (1 - 8 * share) + share, 1e-12);
      sum += std::exp(smooth[i]);
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    Random random(3, "smoothing", count);
    constexpr int draws = 20000;
    int far = 0;
    for (int i = 0; i < draws; ++i) far += kept.draw(random)[0] == 8;
    const double expected = std::exp(smooth[7]);
    EXPECT_NEAR(far / double{draws}, expected, 5 * std::sqrt(expected / draws));
  }
}

TEST(SearchStudy, AnExceptionOfTheObjectiveEndsTheSearch) {
  Trials history(numeric_space(), {false});
  const Space space = numeric_space();
  StudyOptions options;
  options.trials = 10;
  Study study(history, make(find_sampler("random", ""), space, 1), nullptr, nullptr, options);
  const Objective broken = [](const Point&, const Report&) -> Measurement {
    throw Error("x", "is broken");
  };
  EXPECT_THROW(study.run({broken}), Error);
  EXPECT_EQ(study.trials().size(), 1u);
  EXPECT_EQ(study.trials()[0].state, TrialState::fail);
}

// Whoever is told of a trial may fail, as a full disk does, while other threads wait for the lock.
TEST(SearchStudy, AnExceptionOfTheObserverEndsTheSearchWithItsLockHeldOnce) {
  for (const int jobs : {1, 4}) {
    Trials history(numeric_space(), {false});
    const Space space = numeric_space();
    StudyOptions options;
    options.trials = 200;
    options.jobs = jobs;
    Study study(history, make(find_sampler("random", ""), space, 1), nullptr, nullptr, options);
    const Objective objective = [](const Point& point, const Report&) { return measure(point, 1); };
    std::atomic<int> inside = 0, most = 0;
    StudyObserver observer;
    observer.finished = [&](const Trials& trials, const Trial&) {
      most = std::max<int>(most, ++inside);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      --inside;
      if (trials.size() >= 20) throw Error("disk", "is full");
    };
    EXPECT_THROW(study.run(std::vector<Objective>(static_cast<size_t>(jobs), objective), observer),
                 Error);
    EXPECT_EQ(most, 1);
  }
}

// Stopped after a fifth, an exhaustive search has met every value of every parameter.
TEST(SearchStudy, BruteForceSeesSomethingOfEverything) {
  Space space;
  for (const char* name : {"a", "b", "c", "d"}) space.add({name, Distribution::integer(1, 5)});
  SamplerSetup setup{&space, 1, -1};
  setup.together = 5;
  const SamplerRecord& record = find_sampler("brute-force", "");
  const auto sampler = record.make(validate(Value(Dict{}), record.schema, record.name), setup);
  Trials trials(space, {false});
  std::vector<std::set<double>> seen(4);
  std::set<uint64_t> all;
  for (int64_t number = 0; number < 625; ++number) {
    Trial trial;
    trial.point = sampler->suggest(trials, {.seed = 3, .number = number}).point;
    if (number % 5 != 0) {  // a group differs in the last parameter alone
      EXPECT_TRUE(std::equal(trial.point.begin(), trial.point.end() - 1,
                             trials[static_cast<size_t>(number - 1)].point.begin()));
    }
    for (size_t p = 0; p < 4 && number < 125; ++p) seen[p].insert(trial.point[p]);
    EXPECT_TRUE(all.insert(hash_point(trial.point)).second);
    trials.add(std::move(trial));
  }
  for (const std::set<double>& values : seen) EXPECT_EQ(values.size(), 5u);
}

TEST(SearchStudy, BestTrialsAreTheFeasibleFront) {
  Trials trials(numeric_space(), {false, true});
  const auto add = [&](double a, double b, double constraint) {
    Trial trial;
    trial.point = {0, 0.01, 4};
    trial.state = TrialState::complete;
    trial.values = {a, b};
    trial.constraints = {constraint};
    trials.add(std::move(trial));
  };
  add(1, 1, 0);    // front
  add(2, 3, -1);   // front
  add(2, 2, 0);    // dominated
  add(0, 9, 0.5);  // infeasible
  EXPECT_EQ(best_trials(trials), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace mase::search::study_test
