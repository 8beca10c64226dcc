// SPDX-License-Identifier: Apache-2.0
// Which vector instructions the kernels are run with. Sums are rounded in an order that depends on
// the width of vectors, so the last bits of a result depend on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mase {

std::string instruction_set();  // "AVX2", as Highway calls it
// All that this program has kernels for, the plainest first, whether the machine has them or not.
std::vector<std::string> built_instruction_sets();

// Highway's bits of those the kernels may be run with. Asking Highway itself has a side effect: the
// kernels are then run with all that the machine has, those that were disabled too.
int64_t enabled_targets();
// From now on only these of those the machine has.
void use_targets(int64_t targets);

// From now on only those that every x86-64 machine since 2010 has (SSE4): slower, and the same bits
// on all of them; an error on one without. Call it before anything is computed. The C library
// chooses its own functions (exp, cos) when a program starts: see portable_environment.
void use_portable_instructions();

// The variable a program must be started with, and its value, for the C library to use the same
// functions on every x86-64 machine.
struct EnvironmentVariable {
  const char* name;
  const char* value;
};
EnvironmentVariable portable_environment();

}  // namespace mase
