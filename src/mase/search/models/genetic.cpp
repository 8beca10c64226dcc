// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/genetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mase::search {
namespace {

class GeneticSampler final : public Sampler {
 public:
  GeneticSampler(const Value& options, const SamplerSetup& setup, std::string attribute,
                 Survival survival)
      : population_(static_cast<size_t>(options["population_size"].as_int())),
        crossover_probability_(options["crossover_prob"].as_double()),
        swapping_(options["swapping_prob"].as_double()),
        attribute_(std::move(attribute)),
        survival_(std::move(survival)),
        crossover_(&Registry<CrossoverRecord>::instance().get(options["crossover"].as_string())),
        polynomial_(options["mutation"].as_string() == "polynomial") {
    const double dimensions = static_cast<double>(std::max<size_t>(1, setup.space->dimensions()));
    mutation_ = options["mutation_prob"].is_number() ? options["mutation_prob"].as_double()
                                                     : 1 / dimensions;
  }

  Suggestion suggest(const Trials& trials, const Request& request) override {
    Random random(request.seed, "search " + attribute_, static_cast<uint64_t>(request.number));
    const int64_t generation = generation_of(trials, request);
    Point point;
    if (generation == 0) {
      point = first_untried(trials, request, random,
                            [&] { return random_point(trials.space(), random); });
    } else {
      const std::vector<size_t>& parents = parents_of(generation, trials, request);
      point =
          first_untried(trials, request, random, [&] { return child(trials, parents, random); });
    }
    return {std::move(point), Dict{{attribute_, generation}}};
  }

 private:
  struct Generation {
    std::vector<size_t> complete;            // numbers, ascending
    size_t first = static_cast<size_t>(-1);  // number of its first trial, finished or not
  };

  // Trials that others made have no generation: they belong to the first.
  int64_t mark(const Trial& trial) const {
    const Value* mark = trial.system_attributes.find(attribute_);
    return mark && mark->is_int() ? mark->as_int() : 0;
  }

  void absorb(const Trials& trials, size_t visible) {
    const auto take = [&](size_t number) {
      const Trial& trial = trials[number];
      if (number >= visible || !trial.finished()) return false;
      if (trial.state == TrialState::complete && trial.in_space)
        generations_[mark(trial)].complete.push_back(number);
      return true;
    };
    for (size_t& number : open_)
      if (take(number)) number = static_cast<size_t>(-1);
    open_.erase(std::remove(open_.begin(), open_.end(), static_cast<size_t>(-1)), open_.end());
    for (; seen_ < trials.size(); ++seen_) {
      Generation& generation = generations_[mark(trials[seen_])];
      generation.first = std::min(generation.first, seen_);
      if (!take(seen_)) open_.push_back(seen_);
    }
    for (auto& [number, generation] : generations_)
      if (!std::is_sorted(generation.complete.begin(), generation.complete.end()))
        std::sort(generation.complete.begin(), generation.complete.end());
  }

  int64_t generation_of(const Trials& trials, const Request& request) {
    absorb(trials, request.visible);
    int64_t highest = 0;
    for (const auto& [number, generation] : generations_)
      if (!generation.complete.empty()) highest = number;
    return generations_[highest].complete.size() >= population_ ? highest + 1 : highest;
  }

  // The parents of a generation are fixed by what its first trial saw.
  const std::vector<size_t>& parents_of(int64_t generation, const Trials& trials,
                                        const Request& request) {
    if (const auto known = parents_.find(generation); known != parents_.end()) return known->second;
    std::vector<size_t> all;
    if (generation > 1) all = parents_of(generation - 1, trials, request);
    const size_t lag = static_cast<size_t>(request.number) -
                       std::min(request.visible, static_cast<size_t>(request.number));
    const auto found = generations_.find(generation);
    size_t first = static_cast<size_t>(request.number);
    if (found != generations_.end()) first = std::min(first, found->second.first);
    const size_t seen = first - std::min(first, lag);
    const std::vector<size_t>& before = generations_[generation - 1].complete;
    for (const size_t number : before)
      if (number < std::max(seen, before[std::min(before.size(), population_) - 1] + 1))
        all.push_back(number);
    std::vector<Losses> losses;
    std::vector<double> penalties;
    bool constrained = false;
    for (const size_t number : all) {
      const Trial& trial = trials[number];
      Losses loss;
      for (size_t k = 0; k < trials.objectives(); ++k) loss.push_back(trials.loss(trial, k));
      losses.push_back(std::move(loss));
      penalties.push_back(trial.violation());
      constrained = constrained || !trial.constraints.empty();
    }
    Random random(request.seed, "search parents " + attribute_, static_cast<uint64_t>(generation));
    if (!constrained) penalties.clear();
    std::vector<size_t> chosen;
    for (const size_t i : fittest(losses, penalties, population_, survival_, random))
      chosen.push_back(all[i]);
    return parents_[generation] = std::move(chosen);
  }

  bool beats(const Trials& trials, const Trial& a, const Trial& b) const {
    const double va = a.violation(), vb = b.violation();
    if (va > 0 || vb > 0) return va < vb;
    bool better = false;
    for (size_t k = 0; k < trials.objectives(); ++k) {
      if (trials.loss(a, k) > trials.loss(b, k)) return false;
      better = better || trials.loss(a, k) < trials.loss(b, k);
    }
    return better;
  }

  std::vector<size_t> tournament(const Trials& trials, std::vector<size_t> pool, size_t count,
                                 Random& random) const {
    std::vector<size_t> chosen;
    while (chosen.size() < count && !pool.empty()) {
      const size_t a = pool[random.below(pool.size())], b = pool[random.below(pool.size())];
      chosen.push_back(beats(trials, trials[a], trials[b]) ? a : b);
      if (pool.size() > 1) pool.erase(std::find(pool.begin(), pool.end(), chosen.back()));
    }
    return chosen;
  }

  Point child(const Trials& trials, const std::vector<size_t>& parents, Random& random) const {
    const Space& space = trials.space();
    Point point;
    if (parents.size() >= crossover_->parents && random.uniform() < crossover_probability_)
      point = crossed(trials, tournament(trials, parents, crossover_->parents, random), random);
    else
      point = trials[parents[random.below(parents.size())]].point;
    for (size_t i = 0; i < point.size(); ++i) {
      const Distribution& distribution = space.parameters()[i].distribution;
      if (std::isnan(point[i]) || random.uniform() >= mutation_) continue;
      if (polynomial_ && !distribution.is_categorical())
        point[i] = distribution.from_line(
            polynomial_mutation(random.uniform(), distribution.to_line(point[i]),
                                distribution.line_low(), distribution.line_high(), 20));
      else
        point[i] = std::numeric_limits<double>::quiet_NaN();  // drawn anew below
    }
    complete_point(space, point, random);
    return point;
  }

  Point crossed(const Trials& trials, const std::vector<size_t>& parents, Random& random) const {
    const Space& space = trials.space();
    Point point(space.dimensions(), std::numeric_limits<double>::quiet_NaN());
    const Point& first = trials[parents.front()].point;
    const Point& last = trials[parents.back()].point;
    CrossoverInput input;
    input.several_objectives = trials.objectives() > 1;
    input.uniform = [&] { return random.uniform(); };
    input.normal = [&] { return random.normal(); };
    input.parents.resize(parents.size());
    std::vector<size_t> numeric;
    for (size_t i = 0; i < point.size(); ++i) {
      const Distribution& distribution = space.parameters()[i].distribution;
      const auto has = [&](size_t parent) { return !std::isnan(trials[parent].point[i]); };
      const bool everywhere = std::all_of(parents.begin(), parents.end(), has);
      if (distribution.is_categorical() || !everywhere) {
        point[i] = random.uniform() < swapping_ ? last[i] : first[i];
        continue;
      }
      numeric.push_back(i);
      input.bounds.emplace_back(distribution.line_low(), distribution.line_high());
      for (size_t p = 0; p < parents.size(); ++p)
        input.parents[p].push_back(distribution.to_line(trials[parents[p]].point[i]));
    }
    std::vector<double> numbers;
    constexpr int attempts = 100;
    for (int attempt = 0; attempt < attempts && !numeric.empty(); ++attempt) {
      numbers = crossover_->cross(input);
      bool inside = true;
      for (size_t k = 0; k < numbers.size(); ++k)
        inside =
            inside && numbers[k] >= input.bounds[k].first && numbers[k] <= input.bounds[k].second;
      if (inside) break;
    }
    for (size_t k = 0; k < numeric.size(); ++k)
      point[numeric[k]] = space.parameters()[numeric[k]].distribution.from_line(
          std::clamp(numbers[k], input.bounds[k].first, input.bounds[k].second));
    return point;
  }

  size_t population_;
  double crossover_probability_, swapping_, mutation_ = 0;
  std::string attribute_;
  Survival survival_;
  const CrossoverRecord* crossover_;
  bool polynomial_;
  std::map<int64_t, Generation> generations_;
  std::map<int64_t, std::vector<size_t>> parents_;
  std::vector<size_t> open_;
  size_t seen_ = 0;
};

}  // namespace

std::vector<size_t> fittest(const std::vector<Losses>& losses, const std::vector<double>& penalties,
                            size_t count, const Survival& survival, Random& random) {
  const std::vector<int> ranks = domination_ranks(losses, penalties);
  std::vector<size_t> elite;
  const int last = ranks.empty() ? -1 : *std::max_element(ranks.begin(), ranks.end());
  for (int rank = 0; rank <= last && elite.size() < count; ++rank) {
    std::vector<size_t> members;
    for (size_t i = 0; i < losses.size(); ++i)
      if (ranks[i] == rank) members.push_back(i);
    if (elite.size() + members.size() <= count) {
      elite.insert(elite.end(), members.begin(), members.end());
      continue;
    }
    const std::vector<size_t> chosen =
        survival(losses, elite, members, count - elite.size(), random);
    elite.insert(elite.end(), chosen.begin(), chosen.end());
  }
  return elite;
}

std::vector<size_t> survive_by_crowding(const std::vector<Losses>& losses,
                                        const std::vector<size_t>&, const std::vector<size_t>& rank,
                                        size_t room, Random&) {
  std::vector<Losses> members;
  for (const size_t i : rank) members.push_back(losses[i]);
  std::vector<size_t> order;
  crowding_distances(members, &order);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < room; ++i) chosen.push_back(rank[order[i]]);
  return chosen;
}

namespace {

// Not `choices`: samplers may be registered before crossovers are.
std::optional<std::string> known_crossover(const Value& value) {
  const Registry<CrossoverRecord>& all = Registry<CrossoverRecord>::instance();
  if (all.find(value.as_string())) return {};
  return fmt::format("unknown crossover; {}", suggestion(value.as_string(), all.names()));
}

}  // namespace

Schema genetic_schema() {
  return {{{.name = "population_size",
            .type = FieldType::integer,
            .default_value = 50,
            .help = "trials of a generation",
            .minimum = 2},
           {.name = "crossover",
            .type = FieldType::text,
            .default_value = "uniform",
            .help = "how numbers of parents are combined",
            .check = known_crossover},
           {.name = "crossover_prob",
            .type = FieldType::number,
            .default_value = 0.9,
            .help = "share of children with several parents",
            .minimum = 0,
            .maximum = 1},
           {.name = "swapping_prob",
            .type = FieldType::number,
            .default_value = 0.5,
            .help = "chance that a choice comes from the last parent",
            .minimum = 0,
            .maximum = 1},
           {.name = "mutation_prob",
            .type = FieldType::number,
            .help = "chance that a parameter mutates (default: one in a child)",
            .minimum = 0,
            .maximum = 1},
           {.name = "mutation",
            .type = FieldType::text,
            .default_value = "uniform",
            .help = "drawn anew, or moved a little",
            .choices = {"uniform", "polynomial"}}}};
}

std::unique_ptr<Sampler> make_genetic(const Value& options, const SamplerSetup& setup,
                                      const std::string& attribute, Survival survival) {
  return std::make_unique<GeneticSampler>(options, setup, attribute, std::move(survival));
}

}  // namespace mase::search
