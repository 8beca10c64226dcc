// SPDX-License-Identifier: Apache-2.0
// Configurations of all registered formats, made from their schemas, so that a new format or key is
// tested by existing.
#pragma once

#include <algorithm>
#include <optional>

#include "mase/formats/measure.h"
#include "mase/formats/rounding.h"
#include "support/support.h"

namespace mase::test {

struct FormatCase {
  std::string format;
  Value config;
  QuantizerPtr quantizer;

  std::string text() const { return format + " " + python_repr(config); }
  bool has(const char* key, const char* value) const {
    return quantizer->config[key] == Value(value);
  }
  // MASE's published rules are compared with its own results only.
  bool by_reference() const { return has("rounding", reference_rounding); }
  bool stochastic() const { return quantizer->stochastic; }
  // Everything else decides by a threshold, or rounds to one side on purpose.
  bool nearest() const {
    if (format == "binary" || format == "binary_residual" || format == "ternary" ||
        format == "bipolar")
      return false;
    if (format == "integer_floor" || quantizer->config["floor"] == Value(true)) return false;
    for (const char* side : {"toward_zero", "away_from_zero", "floor", "ceil"})
      if (has("rounding", side)) return false;
    return !by_reference() && !stochastic() && !wraps();
  }
  bool wraps() const { return has("overflow", "wrap"); }
};

inline bool is_switch(const Field& field) {
  return field.type == FieldType::boolean || field.name == "is_signed";
}

// What is tried for one key beside its default.
inline std::vector<Value> values_to_try(const Field& field) {
  if (is_switch(field)) return {Value(true), Value(false)};
  if (field.name == "axis") return {Value(0), Value(-1)};
  std::vector<Value> values;
  for (const std::string& choice : field.choices) values.emplace_back(choice);
  if (field.name == "block_size" && field.type == FieldType::any)
    return {Value(List{Value(1), Value(16)}), Value(List{Value(2), Value(8)}), Value(3), Value(-1)};
  if (field.name == "block_size") return {Value(3), Value(16)};
  if (field.type == FieldType::integer || field.name == "frac_width")
    for (const int64_t value : {-4, -1, 0, 1, 3, 8, 20})
      if (value >= field.minimum.value_or(-1e9) && value <= field.maximum.value_or(1e9))
        values.emplace_back(value);
  if (field.type == FieldType::number) values.emplace_back(0.5);
  return values;
}

inline bool is_width(const Field& field) {
  return field.required || (field.name.ends_with("width") && !field.default_value.is_null());
}

// All values of the keys that make up the width, so far as they stay within `most`.
inline std::vector<Dict> all_widths(const Schema& schema, int64_t most) {
  std::vector<Dict> configs(1);
  for (const Field& field : schema.fields) {
    if (!is_width(field)) continue;
    std::vector<Dict> longer;
    for (const Dict& config : configs)
      for (auto value = static_cast<int64_t>(field.minimum.value_or(1));
           value <= std::min<double>(static_cast<double>(most), field.maximum.value_or(16));
           ++value) {
        Dict next = config;
        next.set(field.name, value);
        longer.push_back(next);
      }
    configs = std::move(longer);
  }
  return configs;
}

inline void add_case(std::vector<FormatCase>& all, const FormatRecord& record,
                     const Value& config) {
  try {
    all.push_back({record.name, config, make_quantizer(record.name, config)});
  } catch (const Error&) {
    // Keys that do not go together: tests/formats/command_test.cpp looks at the message.
  }
}

// The config, and the config with every other key (or every other switch) changed in turn.
inline void add_variations(std::vector<FormatCase>& all, const FormatRecord& record,
                           const Dict& config, bool all_keys = true) {
  add_case(all, record, Value(config));
  for (const Field& field : record.schema.fields) {
    if (is_width(field) || !(all_keys || is_switch(field))) continue;
    for (const Value& value : values_to_try(field)) {
      Dict changed = config;
      changed.set(field.name, value);
      add_case(all, record, Value(changed));
    }
  }
}

// One per registered format.
inline std::vector<FormatCase> one_case_each() {
  std::vector<FormatCase> all;
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    const std::vector<Value> ladder = record->ladder ? record->ladder(4) : List{Value(Dict())};
    add_case(all, *record, ladder.back());
  }
  return all;
}

// All widths that networks are tried in, and variations of the widest.
inline std::vector<FormatCase> some_cases() {
  std::vector<FormatCase> all;
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    const std::vector<Value> ladder = record->ladder ? record->ladder(4) : List{Value(Dict())};
    for (const Value& config : ladder) add_case(all, *record, config);
    add_variations(all, *record, ladder.back().as_dict());
  }
  // Keys that matter together only.
  const auto add = [&](const char* format, const Dict& config) {
    add_case(all, Registry<FormatRecord>::instance().get(format, ""), Value(config));
  };
  for (const int axis : {0, -1})
    add("scale_integer", {{"width", 8}, {"granularity", "channel"}, {"axis", axis}});
  add("scale_integer", {{"width", 8}, {"affine", true}, {"is_signed", false}});
  add("scale_integer", {{"width", 8}, {"step", 0.037}});
  add("scale_integer", {{"width", 5}, {"step", 0.25}, {"narrow", true}});
  add("scale_integer", {{"width", 8}, {"is_signed", false}, {"step", 0.1}, {"zero_point", 117}});
  add("mxint", {{"width", 8}, {"block_size", 1}});
  add("integer", {{"width", 32}, {"frac_width", 8}, {"is_signed", false}});
  for (const char* rounding : {"half_away", "toward_zero"})
    for (const char* format : {"half", "bfloat16", "e5m2"})
      add(format, {{"rounding", rounding}, {"overflow", "infinity"}});
  return all;
}

// Every format of at most `bits` bits: all widths, with all variations up to 10 bits and both
// values of switches (signs) above.
inline std::vector<FormatCase> small_cases(int bits) {
  std::vector<FormatCase> all;
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all())
    for (const Dict& config : all_widths(record->schema, bits)) {
      std::vector<FormatCase> plain;
      add_case(plain, *record, Value(config));
      const bool small = !plain.empty() && plain[0].quantizer->code_bits <= 10;
      add_variations(all, *record, config, small);
    }
  std::erase_if(all, [bits](const FormatCase& item) {
    // What training finds is not in the data.
    return item.by_reference() || item.quantizer->learned || item.quantizer->code_bits < 1 ||
           item.quantizer->code_bits > bits;
  });
  return all;
}

}  // namespace mase::test
