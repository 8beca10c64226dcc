// SPDX-License-Identifier: Apache-2.0
// What one parameter of a search may be: a real or whole number in a range, on a logarithmic scale
// or in steps, or one of several choices. A value is kept as one double (the number, or the index
// of the choice), which is also what Optuna's storages hold.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/value.h"

namespace mase::search {

struct Distribution {
  enum class Kind { real, integer, categorical };

  Kind kind = Kind::real;
  double low = 0, high = 0;
  bool log = false;
  double step = 0;  // 0: every number in between
  std::vector<Value> choices = {};

  // Errors name `what`: an empty range, a logarithm of nothing, no choices.
  static Distribution real(double low, double high, bool log = false, double step = 0,
                           const std::string& what = "");
  static Distribution integer(double low, double high, bool log = false, double step = 1,
                              const std::string& what = "");
  static Distribution categorical(std::vector<Value> choices, const std::string& what = "");

  bool operator==(const Distribution&) const = default;

  bool is_categorical() const { return kind == Kind::categorical; }
  bool is_discrete() const { return is_categorical() || step > 0; }
  bool is_single() const;  // one value: nothing to choose
  double count() const;    // values it can take; infinite for continuous ones
  double nth(double index) const;
  double index_of(double value) const;  // of discrete ones
  bool contains(double value) const;

  // The line samplers work on: logarithms, widened by half a step at both ends where values are
  // discrete, so that rounding gives the outermost values their share.
  double line_low() const;
  double line_high() const;
  double to_line(double value) const;
  double from_line(double position) const;  // rounded to a step, kept inside

  Value external(double value) const;  // the number or the choice itself
  std::optional<double> internal(const Value& value) const;
};

// As Optuna stores them.
std::string distribution_to_json(const Distribution& distribution);
Distribution distribution_from_json(const std::string& text, const std::string& place);

}  // namespace mase::search
