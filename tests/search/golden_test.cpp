// SPDX-License-Identifier: Apache-2.0
// Every deterministic part beside what Optuna 5.0.0 computes (tests/golden/search).
#include <cmath>
#include <limits>

#include "mase/base/file.h"
#include "mase/search/crossovers/crossover.h"
#include "mase/search/importances/importance.h"
#include "mase/search/models/cma.h"
#include "mase/search/models/gaussian_process.h"
#include "mase/search/models/genetic.h"
#include "mase/search/models/low_discrepancy.h"
#include "mase/search/models/parzen.h"
#include "mase/search/models/split.h"
#include "mase/search/models/truncated_normal.h"
#include "mase/search/pruners/pruner.h"
#include "mase/search/storages/python_json.h"
#include "mase/search/study/pareto.h"
#include "support/support.h"

namespace mase::search::golden_test {
namespace {

Value golden(const std::string& name) {
  const std::string path = test::golden_path("search/" + name + ".json");
  return parse_python_json(read_text_file(path), path);
}

std::vector<double> numbers(const Value& list) {
  std::vector<double> all;
  for (const Value& item : list.as_list()) all.push_back(item.as_double());
  return all;
}

std::vector<Losses> rows(const Value& list) {
  std::vector<Losses> all;
  for (const Value& item : list.as_list()) all.push_back(numbers(item));
  return all;
}

std::vector<size_t> indices(const Value& list) {
  std::vector<size_t> all;
  for (const Value& item : list.as_list()) all.push_back(static_cast<size_t>(item.as_int()));
  return all;
}

// Relative where numbers are large, absolute where they are small; infinities are themselves.
void expect_close(double ours, double theirs, double tolerance, const std::string& what) {
  if (std::isinf(theirs) || std::isinf(ours)) {
    EXPECT_EQ(ours, theirs) << what;
    return;
  }
  EXPECT_NEAR(ours, theirs, tolerance * std::max(1.0, std::abs(theirs))) << what;
}

TEST(SearchGolden, TruncatedNormal) {
  const Value all = golden("truncnorm");
  for (const Value& one : all.as_list()) {
    const double a = one["a"].as_double(), b = one["b"].as_double(), q = one["q"].as_double();
    const std::string what = to_json(one);
    expect_close(normal_log_mass(a, b), one["log_mass"].as_double(), 1e-10, what);
    const double x = truncated_normal_quantile(q, a, b);
    expect_close(x, one["ppf"].as_double(), 1e-9, what);
    expect_close(truncated_normal_log_pdf(one["ppf"].as_double(), a, b), one["logpdf"].as_double(),
                 1e-9, what);
  }
}

TEST(SearchGolden, WeightsAndNumberOfGoodTrials) {
  const Value all = golden("weights_gamma");
  for (const auto& [m, weights] : all["weights"].as_dict()) {
    const std::vector<double> ours = recency_weights(static_cast<size_t>(*parse_integer(m)));
    const std::vector<double> theirs = numbers(weights);
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], theirs[i], 1e-14, m);
  }
  for (const auto& [n, count] : all["gamma"].as_dict())
    EXPECT_EQ(good_trials(static_cast<size_t>(*parse_integer(n)), 1),
              static_cast<size_t>(count.as_int()));
  for (const auto& [n, count] : all["gamma_multi"].as_dict())
    EXPECT_EQ(good_trials(static_cast<size_t>(*parse_integer(n)), 2),
              static_cast<size_t>(count.as_int()));
}

Space parzen_space(const Value& all) {
  Space space;
  for (const auto& [name, distribution] : all["space"].as_dict())
    space.add({name, distribution_from_json(to_json(distribution), name)});
  return space;
}

// The mixture's formula as it stands, without any of the estimator's shortcuts.
double plain_density(const Space& space, const std::vector<double>& weights,
                     const std::vector<std::vector<ParzenEstimator::Kernel>>& kernels,
                     const Point& point) {
  std::vector<double> terms;
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    double term = std::log(weights[i]);
    for (size_t p = 0; p < point.size(); ++p) {
      const Distribution& d = space.parameters()[p].distribution;
      const ParzenEstimator::Kernel& kernel = kernels[i][p];
      if (d.is_categorical()) {
        term += std::log(kernel.probabilities[static_cast<size_t>(point[p])]);
        continue;
      }
      const auto z = [&](double x) { return (x - kernel.mu) / kernel.sigma; };
      const double all = normal_log_mass(z(d.line_low()), z(d.line_high()));
      if (d.step > 0)
        term += normal_log_mass(z(d.to_line(point[p] - d.step / 2)),
                                z(d.to_line(point[p] + d.step / 2))) -
                all;
      else
        term +=
            truncated_normal_log_pdf(z(d.to_line(point[p])), z(d.line_low()), z(d.line_high())) -
            std::log(kernel.sigma);
    }
    terms.push_back(term);
    most = std::max(most, term);
  }
  for (const double term : terms) sum += std::exp(term - most);
  return most + std::log(sum);
}

TEST(SearchGolden, ParzenEstimator) {
  const Value all = golden("parzen");
  const Space space = parzen_space(all);
  std::vector<size_t> parameters(space.dimensions());
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] = i;
  for (const Value& one : all["cases"].as_list()) {
    const auto n = static_cast<size_t>(one["n"].as_int());
    const std::string what = "n = " + std::to_string(n);
    const auto column = [&](const Value& table, size_t p) {
      return numbers(table[space.parameters()[p].name]);
    };
    const auto points = [&](const Value& table, size_t count) {
      std::vector<Point> made(count, Point(parameters.size()));
      for (size_t p = 0; p < parameters.size(); ++p) {
        const std::vector<double> values = column(table, p);
        for (size_t i = 0; i < count; ++i) made[i][p] = values[i];
      }
      return made;
    };
    const std::vector<Point> observed = points(one["observations"], n);
    // In one go, and one after the other: the estimator that is kept gives the same.
    for (const bool at_once : {true, false}) {
      ParzenEstimator estimator(space, parameters, false);
      std::vector<uint32_t> keys;
      const auto point = [&](uint32_t key) { return observed[key]; };
      for (uint32_t i = 0; i < n; ++i) {
        keys.push_back(i);
        if (!at_once) estimator.observe(keys, point);
      }
      if (at_once) estimator.observe(keys, point);
      const std::vector<double> weights = numbers(one["weights"]);
      ASSERT_EQ(estimator.kernels(), weights.size());
      const std::vector<double> ours = estimator.weights();
      for (size_t i = 0; i < weights.size(); ++i) expect_close(ours[i], weights[i], 1e-12, what);
      // Which of several equal observations has the wide kernel depends on the order in which
      // NumPy sorts equal numbers: they are compared as a set.
      std::vector<std::vector<ParzenEstimator::Kernel>> theirs(weights.size()),
          kept(weights.size());
      for (size_t p = 0; p < parameters.size(); ++p) {
        const Value& kernels = one["kernels"][space.parameters()[p].name];
        std::vector<std::pair<double, double>> a, b;
        for (size_t i = 0; i < weights.size(); ++i) {
          const ParzenEstimator::Kernel kernel = estimator.kernel(i, p);
          kept[i].push_back(kernel);
          if (kernels["categorical"].is_list()) {
            theirs[i].push_back({0, 0, numbers(kernels["categorical"].as_list()[i])});
            for (size_t c = 0; c < kernel.probabilities.size(); ++c)
              expect_close(kernel.probabilities[c], theirs[i].back().probabilities[c], 1e-12, what);
            continue;
          }
          theirs[i].push_back({kernels["mu"].as_list()[i].as_double(),
                               kernels["sigma"].as_list()[i].as_double(),
                               {}});
          a.emplace_back(kernel.mu, kernel.sigma);
          b.emplace_back(theirs[i].back().mu, theirs[i].back().sigma);
          expect_close(kernel.mu, theirs[i].back().mu, 1e-12, what);
        }
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        for (size_t i = 0; i < a.size(); ++i)
          expect_close(a[i].second, b[i].second, 1e-12, what + " " + space.parameters()[p].name);
      }
      const std::vector<double> golden_density = numbers(one["log_pdf"]);
      const std::vector<Point> queries = points(one["queries"], golden_density.size());
      std::vector<double> density(queries.size());
      estimator.log_density(queries, density);
      for (size_t i = 0; i < queries.size(); ++i) {
        expect_close(plain_density(space, weights, theirs, queries[i]), golden_density[i], 1e-9,
                     what);
        expect_close(density[i], plain_density(space, ours, kept, queries[i]), 1e-9, what);
        if (n <= 5) {
          expect_close(density[i], golden_density[i], 1e-9, what);
        }
      }
    }
  }
}

TEST(SearchGolden, SplitOfOneObjective) {
  const Value all = golden("tpe_split");
  const Value& one = all["single"];
  for (const Value& result : one["results"].as_list()) {
    Space space;
    space.add({"x", Distribution::real(0, 1)});
    Trials trials(space, {result["direction"].as_string() == "maximize"});
    for (size_t i = 0; i < one["states"].as_list().size(); ++i) {
      Trial trial;
      trial.point = {0.5};
      trial.state = state_from_name(one["states"].as_list()[i].as_string(), "");
      if (one["values"].as_list()[i].is_list()) trial.values = numbers(one["values"].as_list()[i]);
      if (one["constraints"].as_list()[i].is_list())
        trial.constraints = numbers(one["constraints"].as_list()[i]);
      for (const auto& [step, value] : one["intermediate"].as_list()[i].as_dict())
        trial.intermediate[*parse_integer(step)] = value.as_double();
      trials.add(std::move(trial));
    }
    SplitHistory history;
    history.absorb(trials, trials.size());
    std::vector<uint32_t> below, above;
    history.split(static_cast<size_t>(result["n_below"].as_int()), below, above);
    EXPECT_EQ(std::vector<size_t>(below.begin(), below.end()), indices(result["below"]));
    EXPECT_EQ(std::vector<size_t>(above.begin(), above.end()), indices(result["above"]));
  }
}

TEST(SearchGolden, SplitOfSeveralObjectives) {
  const Value all = golden("tpe_split");
  for (const Value& one : all["multi"].as_list()) {
    const std::vector<Losses> values = rows(one["values"]);
    Space space;
    space.add({"x", Distribution::real(0, 1)});
    Trials trials(space, std::vector<bool>(values.front().size(), false));
    for (const Losses& value : values) {
      Trial trial;
      trial.point = {0.5};
      trial.state = TrialState::complete;
      trial.values = value;
      trials.add(std::move(trial));
    }
    SplitHistory history;
    history.absorb(trials, trials.size());
    std::vector<uint32_t> below, above;
    history.split(static_cast<size_t>(one["n_below"].as_int()), below, above);
    EXPECT_EQ(std::vector<size_t>(below.begin(), below.end()), indices(one["below"]));
  }
}

TEST(SearchGolden, ParetoRanksVolumesAndSubsets) {
  const Value all = golden("pareto");
  for (const Value& one : all["hypervolume"].as_list())
    expect_close(hypervolume(rows(one["points"]), numbers(one["reference"])),
                 one["hypervolume"].as_double(), 1e-12, "hypervolume");
  for (const Value& one : all["hssp"].as_list())
    EXPECT_EQ(hypervolume_subset(rows(one["points"]), static_cast<size_t>(one["k"].as_int()),
                                 numbers(one["reference"])),
              indices(one["selected"]));
  for (const Value& one : all["ranks"].as_list()) {
    const std::vector<double> penalties =
        one["penalty"].is_list() ? numbers(one["penalty"]) : std::vector<double>();
    const std::vector<int> ranks = domination_ranks(rows(one["values"]), penalties);
    EXPECT_EQ(std::vector<size_t>(ranks.begin(), ranks.end()), indices(one["ranks"]));
  }
  for (const Value& one : all["crowding"].as_list()) {
    const std::vector<double> ours = crowding_distances(rows(one["values"]));
    const std::vector<double> theirs = numbers(one["distance"]);
    for (size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], theirs[i], 1e-12, "crowding");
  }
  for (const Value& one : all["nsgaii_elite"].as_list()) {
    Random random(0, "");
    EXPECT_EQ(fittest(rows(one["values"]), {}, static_cast<size_t>(one["population_size"].as_int()),
                      survive_by_crowding, random),
              indices(one["elite"]));
  }
}

TEST(SearchGolden, Niches) {
  const Value all = golden("nsgaiii");
  const std::vector<Losses> lattice = lattice_points(3, 3);
  EXPECT_EQ(lattice, rows(all["reference_points"]));
  const std::vector<Losses> ours = normalised_losses(rows(all["objectives"]));
  const std::vector<Losses> theirs = rows(all["normalized"]);
  for (size_t i = 0; i < ours.size(); ++i)
    for (size_t k = 0; k < 3; ++k) expect_close(ours[i][k], theirs[i][k], 1e-10, "normalised");
  const Niches niches = niches_of(ours, lattice);
  EXPECT_EQ(niches.closest, indices(all["closest"]));
  for (size_t i = 0; i < ours.size(); ++i)
    expect_close(niches.distance[i], numbers(all["distance"])[i], 1e-10, "distance");
}

TEST(SearchGolden, CrossoversAndMutation) {
  const Value all = golden("crossover");
  for (const Value& one : all["crossovers"].as_list()) {
    const std::string name = one["crossover"].as_string();
    CrossoverInput input;
    input.parents = rows(one["parents"]);
    for (const Losses& bound : rows(one["bounds"])) input.bounds.emplace_back(bound[0], bound[1]);
    input.several_objectives = one["study"].as_string() == "multi";
    size_t used = 0;
    input.uniform = [&] { return one["uniforms"].as_list().at(used++).as_double(); };
    const std::vector<double> child = Registry<CrossoverRecord>::instance().get(name).cross(input);
    const std::vector<double> theirs = numbers(one["child"]);
    for (size_t i = 0; i < theirs.size(); ++i) expect_close(child[i], theirs[i], 1e-12, name);
    EXPECT_EQ(used, static_cast<size_t>(one["used"].as_int())) << name;
  }
  for (const Value& one : all["polynomial_mutation"].as_list())
    expect_close(
        polynomial_mutation(one["u"].as_double(), one["x"].as_double(), one["low"].as_double(),
                            one["high"].as_double(), one["eta"].as_double()),
        one["result"].as_double(), 1e-12, "mutation");
}

TEST(SearchGolden, LowDiscrepancySequences) {
  const Value all = golden("qmc");
  for (const auto& [dimensions, points] : all["sobol"].as_dict()) {
    const Sobol sobol(static_cast<size_t>(*parse_integer(dimensions)));
    for (size_t i = 0; i < points.as_list().size(); ++i)
      EXPECT_EQ(sobol.point(i), numbers(points.as_list()[i])) << dimensions << " " << i;
  }
  for (const auto& [dimensions, points] : all["halton"].as_dict())
    for (size_t i = 0; i < points.as_list().size(); ++i) {
      const std::vector<double> ours =
          halton_point(i, static_cast<size_t>(*parse_integer(dimensions)));
      const std::vector<double> theirs = numbers(points.as_list()[i]);
      for (size_t k = 0; k < ours.size(); ++k) expect_close(ours[k], theirs[k], 1e-14, "halton");
    }
}

TEST(SearchGolden, CovarianceMatrixAdaptation) {
  const Value all = golden("cmaes");
  for (const Value& one : all.as_list()) {
    Cma cma(std::vector<double>(static_cast<size_t>(one["dim"].as_int()), 0.5), 1.0 / 6);
    const Cma::Constants& k = cma.constants();
    EXPECT_EQ(cma.population(), static_cast<size_t>(one["population_size"].as_int()));
    EXPECT_EQ(k.mu, static_cast<size_t>(one["mu"].as_int()));
    const std::pair<const char*, double> constants[] = {
        {"mu_eff", k.mu_eff},   {"c1", k.c1}, {"cmu", k.cmu},    {"c_sigma", k.c_sigma},
        {"d_sigma", k.d_sigma}, {"cc", k.cc}, {"chi_n", k.chi_n}};
    for (const auto& [name, value] : constants)
      expect_close(value, one[name].as_double(), 1e-13, name);
    for (size_t i = 0; i < k.weights.size(); ++i)
      expect_close(k.weights[i], numbers(one["weights"])[i], 1e-13, "weights");
    for (const Value& generation : one["generations"].as_list()) {
      std::vector<std::pair<std::vector<double>, double>> solutions;
      for (const Value& solution : generation["solutions"].as_list())
        solutions.emplace_back(numbers(solution["x"]), solution["y"].as_double());
      cma.tell(std::move(solutions));
      const auto compare = [&](const std::vector<double>& ours, const char* name) {
        const std::vector<double> theirs = numbers(generation[name]);
        for (size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], theirs[i], 1e-9, name);
      };
      compare(cma.mean(), "mean");
      compare(cma.sigma_path(), "p_sigma");
      compare(cma.covariance_path(), "p_c");
      expect_close(cma.sigma(), generation["sigma"].as_double(), 1e-9, "sigma");
      const std::vector<Losses> theirs = rows(generation["C"]);
      for (size_t i = 0; i < theirs.size(); ++i)
        for (size_t j = 0; j < theirs.size(); ++j)
          expect_close(cma.covariance()[i][j], theirs[i][j], 1e-9, "C");
    }
  }
}

TEST(SearchGolden, GaussianProcess) {
  const Value all = golden("gp");
  GpParameters parameters{numbers(all["inverse_squared_lengthscales"]),
                          all["kernel_scale"].as_double(), all["noise"].as_double()};
  std::vector<bool> categorical;
  for (const Value& flag : all["categorical"].as_list()) categorical.push_back(flag.as_bool());
  const std::vector<double> values = numbers(all["y"]);
  const GaussianProcess process(rows(all["X"]), categorical, values, parameters);
  const std::vector<Losses> covariance = process.covariance(), theirs = rows(all["K"]);
  for (size_t i = 0; i < theirs.size(); ++i)
    for (size_t j = 0; j < theirs.size(); ++j)
      expect_close(covariance[i][j], theirs[i][j], 1e-12, "K");
  expect_close(process.log_likelihood(), all["log_marginal_likelihood"].as_double(), 1e-9, "mll");
  const double best = *std::max_element(values.begin(), values.end());
  const std::vector<Losses> queries = rows(all["queries"]);
  for (size_t i = 0; i < queries.size(); ++i) {
    const GaussianProcess::Posterior at = process.at({queries[i]})[0];
    expect_close(at.mean, numbers(all["mean"])[i], 1e-9, "mean");
    expect_close(at.variance, numbers(all["variance"])[i], 1e-9, "variance");
    expect_close(
        log_expected_improvement(numbers(all["mean"])[i], numbers(all["variance"])[i], best),
        numbers(all["log_ei"])[i], 1e-6, "log EI");
  }
  const GpParameters fitted = GaussianProcess::fit(rows(all["X"]), categorical, values, parameters);
  const GaussianProcess better(rows(all["X"]), categorical, values, fitted);
  EXPECT_GE(better.log_likelihood() + GaussianProcess::log_prior(fitted),
            process.log_likelihood() + GaussianProcess::log_prior(parameters));
}

Value pruner_named(const std::string& name) {
  if (name == "median") return Dict{{"name", "median"}};
  if (name == "median_warm2_int2")
    return Dict{
        {"name", "median"}, {"n_startup_trials", 3}, {"n_warmup_steps", 2}, {"interval_steps", 2}};
  if (name == "percentile25") return Dict{{"name", "percentile"}, {"percentile", 25.0}};
  if (name == "sha") return Dict{{"name", "halving"}};
  if (name == "sha_min1_eta3")
    return Dict{{"name", "halving"}, {"min_resource", 1}, {"reduction_factor", 3}};
  if (name == "hyperband_27") return Dict{{"name", "hyperband"}, {"max_resource", 27}};
  if (name == "patient") return Dict{{"name", "patient"}, {"patience", 3}};
  return {};
}

TEST(SearchGolden, Pruners) {
  const Value all = golden("pruners");
  int compared = 0;
  for (const Value& run : all["runs"].as_list()) {
    const Value table = pruner_named(run["pruner"].as_string());
    if (table.is_null()) continue;  // Wilcoxon's is not one of ours
    ++compared;
    const std::unique_ptr<Pruner> pruner = make_pruner(table, "pruner");
    Space space;
    space.add({"x", Distribution::real(0, 1)});
    Trials trials(space, {run["direction"].as_string() == "maximize"},
                  run["study_name"].as_string());
    for (const Value& one : run["trials"].as_list()) {
      Trial& trial = trials.add({.point = {0.5}});
      const std::vector<double> curve = numbers(one["curve"]);
      Value pruned_at;
      for (size_t i = 0; i < curve.size() && pruned_at.is_null(); ++i) {
        const auto step = static_cast<int64_t>(i + 1);
        trial.intermediate[step] = curve[i];
        if (pruner->prune(trials, trial)) pruned_at = step;
      }
      EXPECT_EQ(to_json(pruned_at), to_json(one["pruned_at"]))
          << run["study_name"].as_string() << " trial " << trial.number;
      trial.state = pruned_at.is_null() ? TrialState::complete : TrialState::pruned;
      trial.values = {trial.intermediate.rbegin()->second};
    }
  }
  EXPECT_EQ(compared, 14);
}

TEST(SearchGolden, Importances) {
  const Value all = golden("importance");
  Space space;
  std::map<std::string, double> categories;
  double x_low = 1e9, x_high = -1e9, z_low = 1e9, z_high = -1e9, w_low = 1e9, w_high = -1e9;
  for (const Value& row : all["rows"].as_list()) {
    const List& r = row.as_list();
    x_low = std::min(x_low, r[0].as_double()), x_high = std::max(x_high, r[0].as_double());
    w_low = std::min(w_low, r[1].as_double()), w_high = std::max(w_high, r[1].as_double());
    z_low = std::min(z_low, r[3].as_double()), z_high = std::max(z_high, r[3].as_double());
    categories[r[2].as_string()] = 0;
  }
  space.add({"x", Distribution::real(0, 1)});
  space.add({"w", Distribution::integer(w_low, w_high)});
  std::vector<Value> choices;
  for (auto& [name, index] : categories) {
    index = static_cast<double>(choices.size());
    choices.emplace_back(name);
  }
  space.add({"c", Distribution::categorical(choices)});
  space.add({"z", Distribution::real(0, 1)});
  EXPECT_LE(x_high, 1) << w_low << " " << w_high << " " << choices.size();
  EXPECT_LE(z_high, 1);
  Trials trials(space, {false});
  for (const Value& row : all["rows"].as_list()) {
    const List& r = row.as_list();
    Trial trial;
    trial.state = TrialState::complete;
    trial.point = {r[0].as_double(), r[1].as_double(), categories[r[2].as_string()],
                   r[3].as_double()};
    trial.values = {r[4].as_double()};
    trials.add(std::move(trial));
  }
  for (const auto& [name, share] : importances("ped-anova", trials))
    expect_close(share, all["ped_anova"][name].as_double(), 1e-9, name);
  // Forests are random: Optuna's own differ by this much from seed to seed.
  for (const auto& [name, share] : importances("fanova", trials))
    EXPECT_NEAR(share, all["fanova"]["0"][name].as_double(), 0.02) << name;
}

}  // namespace
}  // namespace mase::search::golden_test
