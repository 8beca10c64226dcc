// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/model.h"

#include <array>

namespace mase::onnx {

std::string element_name(Element element) {
  static constexpr std::array<const char*, 27> names = {
      "undefined",      "float32",  "uint8",        "int8",           "uint16",
      "int16",          "int32",    "int64",        "text",           "bool",
      "float16",        "float64",  "uint32",       "uint64",         "complex64",
      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
      "uint2",          "int2"};
  const auto number = static_cast<size_t>(element);
  return number < names.size() ? names[number]
                               : fmt::format("type {}", static_cast<int32_t>(element));
}

const std::string* find_property(const Properties& properties, const std::string& key) {
  for (const auto& [name, value] : properties)
    if (name == key) return &value;
  return nullptr;
}

const Attribute* NodeData::find(const std::string& attribute) const {
  for (const Attribute& candidate : attributes)
    if (candidate.name == attribute) return &candidate;
  return nullptr;
}

std::optional<int64_t> Model::operator_set(const std::string& wanted) const {
  for (const OperatorSet& set : operator_sets)
    if (set.domain == wanted || (wanted.empty() && set.domain == "ai.onnx")) return set.version;
  return {};
}

}  // namespace mase::onnx
