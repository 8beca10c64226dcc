// SPDX-License-Identifier: Apache-2.0
// The regular expressions of tokenizer files as trees. Taken is what can be matched in linear time:
// sets, groups, choices, repetitions (also reluctant ones, and possessive ones of a set), ^, $, and
// looking ahead at a single code point, as (?!\S) does. The rest is refused by name.
#pragma once

#include <string>
#include <vector>

#include "mase/text/code_set.h"

namespace mase {

struct PatternNode {
  enum Kind { nothing, set, sequence, choice, repeat, look, line_start, line_end, text_end };
  Kind kind = nothing;
  CodeSet codes = {};  // of a set, or of what is looked at
  std::vector<PatternNode> parts = {};
  int least = 0, most = 0;  // repeat; most -1: no limit
  bool greedy = true;
  bool negative = false;  // look
};

// What is wrong with an expression is an Error at `place`.
PatternNode parse_text_pattern(const std::string& expression, const std::string& place);

}  // namespace mase
