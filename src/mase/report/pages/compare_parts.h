// SPDX-License-Identifier: Apache-2.0
// Several runs on one page: what the options do, curves over each other, settings over seeds, a
// table of runs with their results right behind the name, and the options that differ.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mase/report/pages/page.h"
#include "mase/report/pages/run_folder.h"

namespace mase {

// Runs that gave no figures, with the cause.
using FailedRuns = std::vector<std::pair<std::string, std::string>>;

std::vector<PagePart> compare_parts(const std::vector<RunData>& runs,
                                    const FailedRuns& failed = {});
PageFrame compare_frame(const std::vector<RunData>& runs);

}  // namespace mase
