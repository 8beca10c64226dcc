// SPDX-License-Identifier: Apache-2.0
// What the program uses where it is there and does without where it is not: libraries that are
// loaded when they are needed, and other programs.
#pragma once

#include <string>
#include <vector>

namespace mase {

enum class PartKind { library, program, python };

struct OptionalPart {
  PartKind kind;
  std::string name;    // "libcurl"
  std::string file;    // what is loaded, run or imported: "libcurl.so.4"
  std::string serves;  // "ch data fetch, addresses instead of paths"
  std::string remedy;  // how to get it
};

std::vector<OptionalPart> optional_parts();

}  // namespace mase
