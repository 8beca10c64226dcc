// SPDX-License-Identifier: Apache-2.0
// The page of a search: best value so far over trials, the front of the best trials with a way to
// each configuration, heat maps over widths, parallel coordinates, which parameters matter, what
// each of them alone costs, and the best trials on test rows. From search.json, which a search
// writes into its folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/report/pages/page.h"
#include "mase/report/text/plot.h"

namespace mase {

// software/search_ckpts/search.json of a run folder, if it has one.
std::optional<Value> read_search_record(const std::string& run_folder);

std::vector<PagePart> search_parts(const Value& record);
PageFrame search_frame(const Value& record);  // without the run's name

// Best so far and the front, for a terminal.
std::string search_plots(const Value& record, const PlotStyle& style);

}  // namespace mase
