// SPDX-License-Identifier: Apache-2.0
// What formats that wrap do to a network: for every feature a proof that it never leaves its
// format, or an input for which it does, and how often that happens on given rows. Sums themselves
// never overflow: they have all bits of their intervals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/hardware/lower/lower_graph.h"

namespace mase {

struct OverflowPlace {
  std::string node;  // whose operand it is
  int64_t feature = 0;
  IntegerRange value, format;        // before it wraps, by its interval; what the format holds
  int64_t rows = 0;                  // of the given ones on which it wraps
  std::vector<int64_t> inputs = {};  // codes for which it wraps; empty: none was found
  int64_t reached = 0;               // the value there
};

struct OverflowReport {
  int64_t features = 0;               // that have a format that wraps
  int64_t proved = 0;                 // that never do, for all inputs
  std::vector<OverflowPlace> places;  // the others
  std::string rows_are;               // what the given rows are
  int64_t rows = 0, rows_wrapped = 0;

  int64_t found() const;  // places with an input for which they wrap
  int64_t undecided() const { return static_cast<int64_t>(places.size()) - found(); }
};

// `rows`: input codes side by side. Inputs that wrap are looked for in them, in drawn rows, and by
// pushing one input after another.
OverflowReport find_overflow(const LoweredNetwork& network, const std::vector<int64_t>& rows,
                             const std::string& rows_are, uint64_t seed);

// One line; empty if no format wraps.
std::string overflow_text(const OverflowReport& overflow);
Value to_value(const OverflowReport& overflow);

}  // namespace mase
