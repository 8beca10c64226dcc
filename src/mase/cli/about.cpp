// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/about.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "mase/base/late_library.h"
#include "mase/base/text.h"
#include "mase/cli/command.h"
#include "mase/cli/optional_parts.h"
#include "mase/engine/kernels/instruction_set.h"

#ifndef MASE_VERSION
#define MASE_VERSION "unknown"
#endif
#ifndef MASE_BUILD_TYPE
#define MASE_BUILD_TYPE "unknown"
#endif

namespace mase {
namespace {

std::string compiler_text() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string libraries_text() {
  std::vector<std::string> words;
  for (const OptionalPart& part : optional_parts())
    if (part.kind == PartKind::library)
      words.push_back(part.name + (library_exists(part.file) ? "" : " (not here)"));
  return join(words, ", ");
}

}  // namespace

const char* program_version() { return MASE_VERSION; }

std::string about_text() {
  return fmt::format(
      "ch {}\n"
      "commit              {}\n"
      "compiler            {}, {}\n"
      "instruction sets    {}; in use: {}\n"
      "optional libraries  {}\n",
      program_version(), program_commit(), compiler_text(), MASE_BUILD_TYPE,
      join(built_instruction_sets(), ", "), instruction_set(), libraries_text());
}

}  // namespace mase
