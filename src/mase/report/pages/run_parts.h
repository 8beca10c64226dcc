// SPDX-License-Identifier: Apache-2.0
// The parts of the page of one run: key figures, curves, evaluation, what a transform did, the
// front of learned widths, network, options and where it all came from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mase/report/pages/page.h"
#include "mase/report/pages/run_folder.h"

namespace mase {

std::vector<PagePart> run_parts(const RunData& run);
PageFrame run_frame(const RunData& run);  // title, what it is, what it was measured on

// What was measured on which rows, by split. A record that does not say its split is kept as "" and
// never shown as another one's.
std::map<std::string, Value> evaluations_of(const RunData& run);
std::string data_name(const Value& run);  // "jsc, synthetic"

// The best value of all epochs (the lowest of a loss); the value at the epoch that was kept.
std::optional<double> best_of(const RunData& run, const std::string& curve);
std::optional<double> at_best_epoch(const RunData& run, const std::string& figure);

// Steps as epochs, by the rows that end each epoch; steps themselves where there are none.
std::vector<double> in_epochs(const RunData& run, const std::vector<double>& steps);

// Nothing where the record has nothing for it.
std::optional<PagePart> curves_part(const RunData& run);
std::optional<PagePart> evaluation_part(const RunData& run);
std::vector<PagePart> transform_parts(const RunData& run);
std::optional<PagePart> learned_part(const RunData& run);

}  // namespace mase
