// SPDX-License-Identifier: Apache-2.0
// ch train --learn-bits of networks of tables, and of weightless ones.
#pragma once

#include "mase/cli/command.h"
#include "mase/run/experiment.h"
#include "mase/run/settings.h"

namespace mase {

class Logger;

std::vector<Field> learn_tables_options();
// What the network is for these; the experiment is prepared.
bool has_own_training(const Graph& graph);
int learn_tables_in(Experiment& experiment, const Settings& settings, const Observer& observer,
                    RunFolder& folder, const Logger& log, bool resume);

}  // namespace mase
