// SPDX-License-Identifier: Apache-2.0
#include "mase/search/samplers/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/base/text.h"

namespace mase::search {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

double random_value(const Distribution& distribution, Random& random) {
  if (distribution.is_single()) return distribution.low;
  if (distribution.is_categorical())
    return static_cast<double>(random.below(static_cast<uint64_t>(distribution.count())));
  return distribution.from_line(random.uniform(distribution.line_low(), distribution.line_high()));
}

// Neighbours that differ in one discrete parameter, nearest values first.
bool change_one(const Trials& trials, Point& point, Random& random) {
  const Space& space = trials.space();
  std::vector<uint32_t> order = random.permutation(static_cast<uint32_t>(space.dimensions()));
  constexpr double farthest = 64;
  for (double distance = 1; distance <= farthest; ++distance)
    for (const uint32_t i : order) {
      const Distribution& distribution = space.parameters()[i].distribution;
      if (std::isnan(point[i]) || !distribution.is_discrete() || distance >= distribution.count())
        continue;
      const double at = distribution.index_of(point[i]);
      for (const double side : {1.0, -1.0}) {
        double index = at + side * distance;
        if (distribution.is_categorical())
          index = std::fmod(index + distribution.count(), distribution.count());
        if (index < 0 || index >= distribution.count()) continue;
        Point changed = point;
        changed[i] = distribution.nth(index);
        complete_point(space, changed, random);
        if (trials.tried(changed)) continue;
        point = std::move(changed);
        return true;
      }
    }
  return false;
}

}  // namespace

const SamplerRecord& find_sampler(const std::string& name, const std::string& place) {
  return Registry<SamplerRecord>::instance().get(lower_case(name), place);
}

void complete_point(const Space& space, Point& point, Random& random) {
  for (size_t i = 0; i < point.size(); ++i) {
    if (!space.exists(i, point))
      point[i] = none;
    else if (std::isnan(point[i]))
      point[i] = random_value(space.parameters()[i].distribution, random);
  }
}

Point random_point(const Space& space, Random& random) {
  Point point(space.dimensions(), none);
  complete_point(space, point, random);
  return point;
}

Point stratified_point(const Space& space, uint64_t seed, int64_t number, int64_t count) {
  Random parts(seed, "search strata", static_cast<uint64_t>(number / count));
  Random place(seed, "search start", static_cast<uint64_t>(number));
  Point point(space.dimensions(), none);
  for (size_t i = 0; i < point.size(); ++i) {
    const Distribution& d = space.parameters()[i].distribution;
    const uint32_t part =
        parts.permutation(static_cast<uint32_t>(count))[static_cast<size_t>(number % count)];
    const double share = (part + place.uniform()) / static_cast<double>(count);
    if (!space.exists(i, point)) continue;
    point[i] = d.is_single() ? d.low
               : d.is_categorical()
                   ? std::min(std::floor(share * d.count()), d.count() - 1)
                   : d.from_line(d.line_low() + share * (d.line_high() - d.line_low()));
  }
  return point;
}

Point untried(const Trials& trials, const Request& request, Point wish, Random& random) {
  if (request.repeats || !trials.tried(wish)) return wish;
  const Space& space = trials.space();
  const double size = space.size();
  if (std::isinf(size)) {
    // A continuous parameter: any other value of it makes the point new.
    for (int attempt = 0; attempt < 1000 && trials.tried(wish); ++attempt)
      wish = random_point(space, random);
    return wish;
  }
  if (static_cast<double>(trials.distinct()) >= size) return wish;
  if (change_one(trials, wish, random)) return wish;
  for (int attempt = 0; attempt < 100; ++attempt) {
    wish = random_point(space, random);
    if (!trials.tried(wish)) return wish;
  }
  // Nearly all were tried: the first one left, from a random place on.
  const double start = std::floor(random.uniform() * size);
  for (double i = 0; i < size; ++i) {
    Point point = space.nth(std::fmod(start + i, size));
    if (!trials.tried(point)) return point;
  }
  return wish;
}

Point first_untried(const Trials& trials, const Request& request, Random& random,
                    const std::function<Point()>& draw, int attempts) {
  Point point = draw();
  for (int i = 1; i < attempts && !request.repeats && trials.tried(point); ++i) point = draw();
  return untried(trials, request, std::move(point), random);
}

}  // namespace mase::search
