// SPDX-License-Identifier: Apache-2.0
#include "mase/data/feature_names.h"

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {
namespace {

// The largest coloured picture: a file claims no more.
constexpr int64_t most_places = int64_t{3} << 24;

std::string place_name(const std::string& prefix, const Shape& shape, size_t index) {
  std::vector<std::string> parts(shape.size() + 1, prefix);
  for (size_t axis = shape.size(); axis-- > 0;) {
    parts[axis + 1] = std::to_string(index % static_cast<size_t>(shape[axis]));
    index /= static_cast<size_t>(shape[axis]);
  }
  return join(parts, "_");
}

// Element count, or nothing if a size is not positive or there are too many.
std::optional<size_t> places_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 1 || size > most_places / count) return {};
    count *= size;
  }
  return static_cast<size_t>(count);
}

}  // namespace

FeatureNames::FeatureNames(std::vector<std::string> names) : names_(std::move(names)) {
  if (names_.empty()) return;
  const std::vector<std::string> parts = split(names_.back(), '_');
  Shape shape;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::optional<int64_t> last = parse_integer(parts[i]);
    if (!last || *last < 0 || *last >= most_places) return;
    shape.push_back(*last + 1);
  }
  if (shape.empty() || parts[0].empty() || places_of(shape) != names_.size()) return;
  for (size_t i = 0; i < names_.size(); ++i)
    if (names_[i] != place_name(parts[0], shape, i)) return;
  *this = of_places(parts[0], shape);
}

FeatureNames FeatureNames::of_places(std::string prefix, Shape shape) {
  FeatureNames result;
  result.prefix_ = std::move(prefix);
  result.places_ = static_cast<size_t>(element_count(shape));
  result.shape_ = std::move(shape);
  return result;
}

std::string FeatureNames::operator[](size_t index) const {
  return prefix_.empty() ? names_[index] : place_name(prefix_, shape_, index);
}

Value FeatureNames::to_value() const {
  if (prefix_.empty()) return Value::of(names_);
  return Dict{{"prefix", prefix_}, {"shape", Value::of(shape_)}};
}

FeatureNames FeatureNames::from_value(const Value& value, const std::string& what) {
  if (!value.is_dict()) return value.as_string_list(what);
  const std::string prefix = value["prefix"].as_string(what + ".prefix");
  const Shape shape = value["shape"].as_int_list(what + ".shape");
  if (prefix.empty() || !places_of(shape))
    throw Error(value.position(), what,
                fmt::format("'{}' and {} name no places", printable(prefix), shape_text(shape)));
  return of_places(prefix, shape);
}

}  // namespace mase
