// SPDX-License-Identifier: Apache-2.0
// ch train --learn-bits.
#pragma once

#include <optional>

#include "mase/cli/command.h"
#include "mase/run/run_folder.h"
#include "mase/run/settings.h"
#include "mase/run/spec.h"

namespace mase {

std::vector<Field> learn_bits_options();
// `folder`: of the run that is resumed.
int train_and_learn_bits(const Arguments& arguments, const Settings& settings,
                         const ExperimentSpec& spec, std::optional<RunFolder> folder);

}  // namespace mase
