// SPDX-License-Identifier: Apache-2.0
#include "mase/search/study/space.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace mase::search {

size_t Space::add(Parameter parameter) {
  if (find(parameter.name) >= 0)
    throw Error(parameter.name, "is a parameter of this search space already");
  MASE_CHECK(parameter.parent < static_cast<int>(parameters_.size()), "parents come first");
  const size_t index = parameters_.size();
  if (parameter.parent >= 0) children_[static_cast<size_t>(parameter.parent)].push_back(index);
  parameters_.push_back(std::move(parameter));
  children_.emplace_back();
  return index;
}

int Space::find(const std::string& name) const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == name) return static_cast<int>(i);
  return -1;
}

bool Space::exists(size_t index, const Point& point) const {
  const Parameter& parameter = parameters_[index];
  if (parameter.parent < 0) return true;
  const double value = point[static_cast<size_t>(parameter.parent)];
  return std::find(parameter.when.begin(), parameter.when.end(), value) != parameter.when.end();
}

bool Space::contains(const Point& point) const {
  if (point.size() != parameters_.size()) return false;
  for (size_t i = 0; i < point.size(); ++i)
    if (exists(i, point) ? !parameters_[i].distribution.contains(point[i]) : !std::isnan(point[i]))
      return false;
  return true;
}

std::vector<size_t> Space::roots() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].parent < 0) found.push_back(i);
  return found;
}

std::vector<size_t> Space::children(size_t parameter, double value) const {
  std::vector<size_t> found;
  for (const size_t child : children_[parameter]) {
    const std::vector<double>& when = parameters_[child].when;
    if (std::find(when.begin(), when.end(), value) != when.end()) found.push_back(child);
  }
  return found;
}

double Space::count_below(size_t parameter, double value) const {
  double product = 1;
  for (const size_t child : children(parameter, value)) product *= count(child);
  return product;
}

double Space::count(size_t parameter) const {
  const Distribution& distribution = parameters_[parameter].distribution;
  const double values = distribution.count();
  if (children_[parameter].empty() || std::isinf(values)) return values;
  double sum = 0;
  for (double i = 0; i < values; ++i) sum += count_below(parameter, distribution.nth(i));
  return sum;
}

double Space::size() const {
  double product = 1;
  for (const size_t root : roots()) product *= count(root);
  return product;
}

void Space::decode(const std::vector<size_t>& siblings, double index, Point& point) const {
  // Mixed radix, the last sibling fastest.
  for (size_t s = siblings.size(); s-- > 0;) {
    const size_t parameter = siblings[s];
    const double radix = count(parameter);
    double digit = std::fmod(index, radix);
    index = std::floor(index / radix);
    const Distribution& distribution = parameters_[parameter].distribution;
    if (children_[parameter].empty()) {
      point[parameter] = distribution.nth(digit);
      continue;
    }
    for (double i = 0; i < distribution.count(); ++i) {
      const double value = distribution.nth(i), inside = count_below(parameter, value);
      if (digit < inside) {
        point[parameter] = value;
        decode(children(parameter, value), digit, point);
        break;
      }
      digit -= inside;
    }
  }
}

Point Space::nth(double index) const {
  Point point(parameters_.size(), std::numeric_limits<double>::quiet_NaN());
  decode(roots(), index, point);
  return point;
}

std::vector<std::vector<size_t>> Space::groups() const {
  std::vector<std::vector<size_t>> groups;
  std::map<std::pair<int, std::vector<double>>, size_t> known;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto key = std::make_pair(parameters_[i].parent, parameters_[i].when);
    const auto [found, first] = known.emplace(key, groups.size());
    if (first) groups.emplace_back();
    groups[found->second].push_back(i);
  }
  return groups;
}

uint64_t hash_point(const Point& point) {
  uint64_t hash = 0x9e3779b97f4a7c15;
  for (const double value : point) {
    const double plain = std::isnan(value) ? 0x1p1000 : value + 0.0;  // -0 is 0
    hash ^= std::bit_cast<uint64_t>(plain);
    hash *= 0xbf58476d1ce4e5b9;
    hash ^= hash >> 29;
  }
  return hash;
}

bool same_point(const Point& a, const Point& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  return true;
}

std::vector<Point> covering_points(const Space& space) {
  double most = 1;
  for (const Parameter& parameter : space.parameters())
    if (std::isfinite(parameter.distribution.count()))
      most = std::max(most, parameter.distribution.count());
  constexpr double enough = 1024;  // of a wide range of whole numbers the beginning is
  std::vector<Point> points;
  for (double i = 0; i < std::min(most, enough); ++i) {
    Point point(space.dimensions(), std::numeric_limits<double>::quiet_NaN());
    for (size_t p = 0; p < point.size(); ++p) {
      const Distribution& one = space.parameters()[p].distribution;
      if (space.exists(p, point))
        point[p] = std::isfinite(one.count()) ? one.nth(std::min(i, one.count() - 1)) : one.low;
    }
    points.push_back(std::move(point));
  }
  return points;
}

Value point_to_value(const Space& space, const Point& point) {
  Dict values;
  for (size_t i = 0; i < point.size(); ++i)
    if (!std::isnan(point[i]))
      values.add(space.parameters()[i].name, space.parameters()[i].distribution.external(point[i]));
  return values;
}

}  // namespace mase::search
