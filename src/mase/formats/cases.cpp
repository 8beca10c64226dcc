// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/cases.h"

#include <map>

#include "mase/base/fields.h"
#include "mase/base/text.h"

namespace mase {
namespace {

const Schema& microscaling_schema() {
  static const Schema schema{{
      text_field("format", "the element format").needed(),
      integer_field("block_size", {}, 32),
      integer_field("axis", {}, -1),
      text_field("round", {}, "even", {"even", "nearest", "floor"}),
      integer_field("scale_bits", {}, 8),
      text_field("input"),
      text_field("output"),
  }};
  return schema;
}

struct Element {
  int width, exponent, fraction;  // exponent 0: an integer
};
const std::map<std::string, Element> elements = {
    {"int8", {8, 0, 0}},      {"int4", {4, 0, 0}},     {"int2", {2, 0, 0}},
    {"fp8_e5m2", {8, 5, 2}},  {"fp8_e4m3", {8, 4, 3}}, {"fp6_e3m2", {6, 3, 2}},
    {"fp6_e2m3", {6, 2, 3}},  {"fp4_e2m1", {4, 2, 1}}, {"fp16", {16, 5, 10}},
    {"float16", {16, 5, 10}}, {"bf16", {16, 8, 7}},    {"bfloat16", {16, 8, 7}},
};

std::string text_of(const Value& entry, const char* key, const std::string& path) {
  if (!entry[key].is_string())
    throw Error(entry.position(), path, fmt::format("'{}' is missing", key),
                "name a tensor of the file");
  return entry[key].as_string();
}

}  // namespace

std::pair<std::string, Value> microscaling_config(const Value& keys, const std::string& path) {
  const Value given = validate(keys, microscaling_schema(), path);
  const std::string& name = given["format"].as_string();
  const auto found = elements.find(name);
  if (found == elements.end()) {
    std::vector<std::string> known;
    for (const auto& [element, layout] : elements) known.push_back(element);
    throw Error(given["format"].position(), path + ".format",
                fmt::format("unknown element format '{}'", printable(name)),
                suggestion(name, known));
  }
  const std::string& round = given["round"].as_string();
  Dict config{{"block_size", given["block_size"]},
              {"axis", given["axis"]},
              {"scale_bits", given["scale_bits"]},
              {"rounding", round == "nearest" ? "half_away"
                           : round == "floor" ? "toward_zero"
                                              : "nearest_even"}};
  const Element& element = found->second;
  if (element.exponent == 0) {
    config.set("width", element.width);
    return {"mxint", Value(config).set_position(keys.position())};
  }
  config.set("exponent_width", element.exponent);
  config.set("frac_width", element.fraction);
  return {"mxfp", Value(config).set_position(keys.position())};
}

std::vector<QuantizeCase> quantize_cases(const Value& list) {
  std::vector<QuantizeCase> cases;
  size_t number = 0;
  for (const Value& entry : list.as_list("cases")) {
    const std::string path = fmt::format("case {}", number++);
    if (!entry.is_dict())
      throw Error(entry.position(), path, "expected a table",
                  "a case is {\"quantizer\": ..., \"config\": {...}, \"input\": ..., ...}");
    QuantizeCase item;
    item.input = text_of(entry, "input", path);
    item.output = text_of(entry, "output", path);
    if (entry.as_dict().contains("quantizer")) {
      item.quantizer = make_quantizer(entry["quantizer"].as_string(path + ".quantizer"),
                                      entry["config"], path + ".config");
    } else {
      const auto [format, config] = microscaling_config(entry, path);
      item.quantizer = make_quantizer(format, config, path);
    }
    cases.push_back(std::move(item));
  }
  return cases;
}

}  // namespace mase
