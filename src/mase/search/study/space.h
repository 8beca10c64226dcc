// SPDX-License-Identifier: Apache-2.0
// What is searched over: named parameters in order. A parameter may exist only while an earlier one
// has certain values ("exponent_width" only of a minifloat). A point has one number for each
// parameter, not-a-number where the parameter does not exist.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/search/study/distribution.h"

namespace mase::search {

using Point = std::vector<double>;

struct Parameter {
  std::string name;
  Distribution distribution;
  int parent = -1;                // index of an earlier parameter; -1: always there
  std::vector<double> when = {};  // values of the parent with which it exists
};

class Space {
 public:
  // Parents come first; names are unique.
  size_t add(Parameter parameter);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  size_t dimensions() const { return parameters_.size(); }
  bool empty() const { return parameters_.empty(); }
  int find(const std::string& name) const;  // -1: none

  bool exists(size_t parameter, const Point& point) const;
  // A valid point: every parameter that exists has a value of its distribution, the others none.
  bool contains(const Point& point) const;

  double size() const;  // configurations; infinite if one parameter is continuous
  // The configurations in order, the last parameter fastest. Only of finite spaces.
  Point nth(double index) const;

  // Parameters that exist under one and the same condition, conditions in order.
  std::vector<std::vector<size_t>> groups() const;

 private:
  double count(size_t parameter) const;
  double count_below(size_t parameter, double value) const;
  void decode(const std::vector<size_t>& siblings, double index, Point& point) const;
  std::vector<size_t> roots() const;
  std::vector<size_t> children(size_t parameter, double value) const;

  std::vector<Parameter> parameters_;
  std::vector<std::vector<size_t>> children_;
};

// Equal points have equal bits here: discrete values are computed one way.
uint64_t hash_point(const Point& point);
bool same_point(const Point& a, const Point& b);

// A few points in which every value of every discrete parameter occurs: for checks before a search.
std::vector<Point> covering_points(const Space& space);

Value point_to_value(const Space& space, const Point& point);  // {name: external value}

}  // namespace mase::search
