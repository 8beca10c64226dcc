// SPDX-License-Identifier: Apache-2.0
// Split: cuts by a pattern of the file.
#include "mase/text/splitters/split.h"

namespace mase {

Field behavior_field() {
  return {.name = "behavior",
          .type = FieldType::text,
          .default_value = "Isolated",
          .help = "what becomes of matches",
          .choices = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}};
}

SplitBehavior split_behavior(const std::string& name) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  MASE_CHECK(name == "Isolated", "behavior {}", name);
  return SplitBehavior::isolated;
}

Splitter pattern_splitter(const char* expression, SplitBehavior behavior, bool invert) {
  return [pattern = TextPattern(expression, "pre-tokeniser"), behavior, invert](Pieces& pieces) {
    pieces.split(pattern, behavior, invert);
  };
}

}  // namespace mase

namespace mase::split_splitter {
namespace {

Splitter make(const Value& config) {
  return [pattern = read_part_pattern(config["pattern"]),
          behavior = split_behavior(config["behavior"].as_string()),
          invert = config["invert"].as_bool()](Pieces& pieces) {
    pieces.split(pattern, behavior, invert);
  };
}

const Register<SplitterRecord> registered{
    {.name = "Split",
     .summary = "cuts by a pattern",
     .schema = {{{.name = "pattern", .type = FieldType::table, .required = true},
                 behavior_field(),
                 {.name = "invert", .type = FieldType::boolean, .default_value = false}}},
     .make = make}};

}  // namespace
}  // namespace mase::split_splitter
