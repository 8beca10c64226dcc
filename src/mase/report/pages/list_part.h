// SPDX-License-Identifier: Apache-2.0
// The runs below a folder, for `ch view`: links to their pages, their figures, and boxes to compare
// several of them.
#pragma once

#include <string>
#include <vector>

#include "mase/report/pages/page.h"
#include "mase/report/pages/run_folder.h"

namespace mase {

struct ListedRun {
  std::string id;
  RunData run;
};

// What a list needs of run.json; the rest would only take memory.
Value run_outline(const Value& run);

PagePart list_part(const std::vector<ListedRun>& runs, const std::string& folder);

}  // namespace mase
