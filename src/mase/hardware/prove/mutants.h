// SPDX-License-Identifier: Apache-2.0
// Tests the check of a design by faults: one is planted in the SystemVerilog of a module at a time
// (an operator, a bit of a constant, a slice, an operand, an inversion, a clock edge), and the
// check must refuse it. What it accepts is held to the module by another program's SAT solver:
// either it is the same function, or the check has a hole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace mase {

struct Mutant {
  std::string module, kind;
  int64_t line = 0;
  std::string before, after;  // the line
  enum class Fate { refused, equivalent, undecided } fate = Fate::refused;
};

struct MutationReport {
  int64_t planted = 0, refused = 0, equivalent = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> kinds;  // refused and planted
  std::vector<Mutant> survivors;                             // accepted and not shown equivalent
};

// Faults of one module's text; each is another text. In their order, drawn by the seed.
struct Fault {
  std::string kind;
  size_t at = 0, length = 0;  // what is replaced
  std::string with;
};
std::vector<Fault> faults_of(const std::string& text, int64_t count, uint64_t seed);

// So many faults, spread over the modules of the folder's certificate by their length.
MutationReport plant_faults(const std::string& folder, int64_t count, uint64_t seed,
                            const std::function<void(const Mutant&)>& planted = {});

}  // namespace mase
