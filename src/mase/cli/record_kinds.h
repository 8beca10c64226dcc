// SPDX-License-Identifier: Apache-2.0
// Every kind of record that a user can name, for ch --info, completion and the reference.
#pragma once

#include <string>
#include <vector>

#include "mase/base/schema.h"

namespace mase {

struct RecordEntry {
  std::string name, summary;
  std::string note;  // Markdown after the summary
  std::vector<std::string> aliases;
  Schema options;
};

struct RecordKind {
  std::string name;     // "sampler", as ch --info takes it
  std::string heading;  // "Samplers"
  std::vector<RecordEntry> (*entries)();
};

const std::vector<RecordKind>& record_kinds();

std::string reference_default(const Field& field);  // "" where there is none

}  // namespace mase
