// SPDX-License-Identifier: Apache-2.0
// Preprocessing as plain values, for checkpoints. Images have as many offsets as pixels, all of a
// channel alike: equal neighbours are written once, with their number; long lists of others as the
// bits of their numbers, eight hexadecimal digits each.
#include <bit>
#include <charconv>

#include "mase/data/dataset.h"

namespace mase {
namespace {

constexpr size_t longest_list = 4096;

Value numbers(const std::vector<float>& values) {
  List runs, list;
  for (size_t i = 0; i < values.size();) {
    size_t end = i + 1;
    while (end < values.size() &&
           std::bit_cast<uint32_t>(values[end]) == std::bit_cast<uint32_t>(values[i]))
      ++end;
    runs.push_back(List{static_cast<int64_t>(end - i), double{values[i]}});  // exact
    i = end;
  }
  if (4 * runs.size() <= values.size() && values.size() > 16) return Dict{{"runs", runs}};
  if (values.size() > longest_list) {
    std::string bits;
    for (const float value : values) bits += fmt::format("{:08x}", std::bit_cast<uint32_t>(value));
    return Dict{{"bits", bits}};
  }
  for (const float value : values) list.emplace_back(double{value});
  return list;
}

std::vector<float> floats(const Value& value, const std::string& what, size_t count) {
  std::vector<float> result;
  const auto wrong = [&](const std::string& cause) { return Error(value.position(), what, cause); };
  if (value.is_list()) {
    for (const Value& number : value.as_list(what))
      result.push_back(static_cast<float>(number.as_double(what)));
  } else if (value.as_dict(what).contains("runs")) {
    for (const Value& run : value["runs"].as_list(what)) {
      const List& pair = run.as_list(what);
      const int64_t length = pair.size() == 2 ? pair[0].as_int(what) : 0;
      if (length < 1 || length > static_cast<int64_t>(count - result.size()))
        throw wrong("a run has a wrong length");
      result.insert(result.end(), static_cast<size_t>(length),
                    static_cast<float>(pair[1].as_double(what)));
    }
  } else {
    const std::string& bits = value["bits"].as_string(what);
    if (bits.size() != 8 * count) throw wrong("has another number of digits");
    for (size_t i = 0; i < bits.size(); i += 8) {
      uint32_t number = 0;
      const char* end = bits.data() + i + 8;
      if (std::from_chars(bits.data() + i, end, number, 16).ptr != end)
        throw wrong("is not made of hexadecimal digits");
      result.push_back(std::bit_cast<float>(number));
    }
  }
  if (result.size() != count) throw wrong("offsets, scales and names differ in number");
  return result;
}

}  // namespace

Value preprocessing_to_value(const Preprocessing& preprocessing) {
  Dict value{{"description", preprocessing.description},
             {"feature_names", preprocessing.feature_names.to_value()},
             {"offset", numbers(preprocessing.offset)},
             {"scale", numbers(preprocessing.scale)}};
  if (!preprocessing.fill.empty()) value.set("fill", numbers(preprocessing.fill));
  return value;
}

Preprocessing preprocessing_from_value(const Value& value) {
  Preprocessing preprocessing;
  const Dict& dict = value.as_dict("preprocessing");
  for (const char* key : {"feature_names", "offset", "scale"})
    if (!dict.contains(key))
      throw Error(value.position(), "preprocessing", fmt::format("'{}' is missing", key));
  preprocessing.description = value["description"];
  preprocessing.feature_names =
      FeatureNames::from_value(value["feature_names"], "preprocessing.feature_names");
  const size_t count = preprocessing.feature_names.size();
  preprocessing.offset = floats(value["offset"], "preprocessing.offset", count);
  preprocessing.scale = floats(value["scale"], "preprocessing.scale", count);
  if (dict.contains("fill"))
    preprocessing.fill = floats(value["fill"], "preprocessing.fill", count);
  for (const float scale : preprocessing.scale)
    if (!(scale != 0))
      throw Error(value.position(), "preprocessing", "a scale is zero or not a number");
  return preprocessing;
}

}  // namespace mase
