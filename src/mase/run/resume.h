// SPDX-License-Identifier: Apache-2.0
// A run is taken up again with its own options: only what cannot change what was done may be given
// anew, such as how long it goes on.
#pragma once

#include "mase/run/run_folder.h"
#include "mase/run/settings.h"
#include "mase/run/spec.h"

namespace mase {

// `values` are the caller's for options the run's record does not have; `anew` was given for this
// time, by option name.
Settings resumed_settings(const RunFolder& run, const Value& values, const Dict& anew);

// The graph that was saved after the run's passes, if it came so far, in place of network and
// passes.
void take_up(ExperimentSpec& spec, const RunFolder& run);

}  // namespace mase
