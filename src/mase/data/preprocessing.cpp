// SPDX-License-Identifier: Apache-2.0
// Preprocessing as plain values, for checkpoints.
#include "mase/data/dataset.h"

namespace mase {
namespace {

Value numbers(const std::vector<float>& values) {
  List list;
  for (const float value : values) list.emplace_back(double{value});  // exact
  return list;
}

std::vector<float> floats(const Value& value, const std::string& what) {
  std::vector<float> result;
  for (const Value& number : value.as_list(what))
    result.push_back(static_cast<float>(number.as_double(what)));
  return result;
}

}  // namespace

Value preprocessing_to_value(const Preprocessing& preprocessing) {
  return Dict{{"description", preprocessing.description},
              {"feature_names", Value::of(preprocessing.feature_names)},
              {"offset", numbers(preprocessing.offset)},
              {"scale", numbers(preprocessing.scale)}};
}

Preprocessing preprocessing_from_value(const Value& value) {
  Preprocessing preprocessing;
  const Dict& dict = value.as_dict("preprocessing");
  for (const char* key : {"feature_names", "offset", "scale"})
    if (!dict.contains(key))
      throw Error(value.position(), "preprocessing", fmt::format("'{}' is missing", key));
  preprocessing.description = value["description"];
  preprocessing.feature_names =
      value["feature_names"].as_string_list("preprocessing.feature_names");
  preprocessing.offset = floats(value["offset"], "preprocessing.offset");
  preprocessing.scale = floats(value["scale"], "preprocessing.scale");
  const size_t count = preprocessing.feature_names.size();
  if (preprocessing.offset.size() != count || preprocessing.scale.size() != count)
    throw Error(value.position(), "preprocessing", "offsets, scales and names differ in number");
  for (const float scale : preprocessing.scale)
    if (!(scale != 0))
      throw Error(value.position(), "preprocessing", "a scale is zero or not a number");
  return preprocessing;
}

}  // namespace mase
