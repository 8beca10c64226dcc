// SPDX-License-Identifier: Apache-2.0
#include "mase/search/study/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/base/text.h"
#include "mase/search/storages/python_json.h"

namespace mase::search {
namespace {

void check_range(const Distribution& distribution, const std::string& what) {
  const double low = distribution.low, high = distribution.high, step = distribution.step;
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(step))
    throw Error(what, "a range needs finite numbers");
  if (low > high) throw Error(what, fmt::format("the range {} to {} is empty", low, high));
  if (distribution.log && low <= 0)
    throw Error(what, fmt::format("a logarithmic range cannot start at {}", low));
  if (step < 0) throw Error(what, fmt::format("a step of {} leads nowhere", step));
}

// Of a stepped range: the last value that a whole number of steps reaches.
double last_value(double low, double high, double step) {
  const double steps = std::floor((high - low) / step + 1e-9);
  return low + steps * step;
}

}  // namespace

Distribution Distribution::real(double low, double high, bool log, double step,
                                const std::string& what) {
  Distribution made{.kind = Kind::real, .low = low, .high = high, .log = log, .step = step};
  check_range(made, what);
  if (log && step > 0) throw Error(what, "a logarithmic range has no step");
  if (step > 0) made.high = last_value(low, high, step);
  return made;
}

Distribution Distribution::integer(double low, double high, bool log, double step,
                                   const std::string& what) {
  Distribution made{.kind = Kind::integer, .low = low, .high = high, .log = log, .step = step};
  check_range(made, what);
  if (low != std::floor(low) || high != std::floor(high) || step != std::floor(step) || step < 1)
    throw Error(what, "a range of whole numbers needs whole numbers");
  if (log && step != 1) throw Error(what, "a logarithmic range has no step");
  if (std::abs(low) > 1e15 || std::abs(high) > 1e15)
    throw Error(what, "the range is wider than whole numbers are exact");
  made.high = last_value(low, high, step);
  return made;
}

Distribution Distribution::categorical(std::vector<Value> choices, const std::string& what) {
  if (choices.empty()) throw Error(what, "there is no choice");
  Distribution made{.kind = Kind::categorical};
  made.high = static_cast<double>(choices.size()) - 1;
  made.step = 1;
  made.choices = std::move(choices);
  return made;
}

bool Distribution::is_single() const { return low == high || (step > 0 && high - low < step); }

double Distribution::count() const {
  if (low == high) return 1;
  return step > 0 ? std::round((high - low) / step) + 1 : std::numeric_limits<double>::infinity();
}

double Distribution::nth(double index) const { return std::clamp(low + index * step, low, high); }

double Distribution::index_of(double value) const {
  return step > 0 ? std::round((value - low) / step) : 0;
}

bool Distribution::contains(double value) const {
  if (!(value >= low && value <= high)) return false;
  return step == 0 || std::abs(nth(index_of(value)) - value) <= 1e-8 * std::max(1.0, step);
}

double Distribution::line_low() const {
  const double edge = low - step / 2;
  return log ? std::log(edge) : edge;
}

double Distribution::line_high() const {
  const double edge = high + step / 2;
  return log ? std::log(edge) : edge;
}

double Distribution::to_line(double value) const { return log ? std::log(value) : value; }

double Distribution::from_line(double position) const {
  double value = log ? std::exp(position) : position;
  if (step > 0) return nth(std::round((value - low) / step));
  // The upper end of a continuous range belongs to it only if it is the only value.
  if (value >= high) value = low == high ? high : std::nextafter(high, low);
  return std::max(value, low);
}

Value Distribution::external(double value) const {
  if (kind == Kind::integer) return static_cast<int64_t>(value);
  if (kind == Kind::real) return value;
  return choices.at(static_cast<size_t>(value));
}

std::optional<double> Distribution::internal(const Value& value) const {
  if (kind == Kind::categorical) {
    // 1 and true and 1.0 are one choice to Python; here they are what was written.
    for (size_t i = 0; i < choices.size(); ++i)
      if (choices[i] == value) return static_cast<double>(i);
    return {};
  }
  if (!value.is_number()) return {};
  const double number = value.as_double();
  if (!contains(number)) return {};
  return number;
}

std::string distribution_to_json(const Distribution& distribution) {
  Dict attributes;
  const bool whole = distribution.kind == Distribution::Kind::integer;
  const auto number = [&](double x) { return whole ? Value(static_cast<int64_t>(x)) : Value(x); };
  const char* name = "CategoricalDistribution";
  if (distribution.is_categorical()) {
    attributes.set("choices", List(distribution.choices));
  } else if (whole) {
    name = "IntDistribution";
    attributes = {{"log", distribution.log},
                  {"step", number(distribution.step)},
                  {"low", number(distribution.low)},
                  {"high", number(distribution.high)}};
  } else {
    name = "FloatDistribution";
    attributes = {{"step", distribution.step > 0 ? Value(distribution.step) : Value()},
                  {"low", distribution.low},
                  {"high", distribution.high},
                  {"log", distribution.log}};
  }
  return write_python_json(Dict{{"name", name}, {"attributes", std::move(attributes)}});
}

Distribution distribution_from_json(const std::string& text, const std::string& place) {
  const Value all = parse_python_json(text, place);
  if (!all.is_dict()) throw Error(place, "is no distribution of a parameter");
  const bool current = all["name"].is_string();
  const Value& from = current ? all["attributes"] : all;
  const Value& named = current ? all["name"] : all["type"];
  if (!named.is_string() || !from.is_dict())
    throw Error(place, "is no distribution of a parameter");
  std::string name = lower_case(named.as_string());
  name = replace_all(name, "distribution", "");
  const auto flag = [&](const char* key) { return from[key].is_bool() && from[key].as_bool(); };
  const auto number = [&](const char* key, double fallback) {
    return from[key].is_null() ? fallback : from[key].as_double(key);
  };
  if (name == "categorical") return Distribution::categorical(from["choices"].as_list(), place);
  if (name == "int")
    return Distribution::integer(from["low"].as_double(), from["high"].as_double(), flag("log"),
                                 number("step", 1), place);
  if (name == "float")
    return Distribution::real(from["low"].as_double(), from["high"].as_double(), flag("log"),
                              number("step", 0), place);
  throw Error(place, fmt::format("unknown distribution '{}'", printable(named.as_string())))
      .as(Mistake::unknown_name);
}

}  // namespace mase::search
