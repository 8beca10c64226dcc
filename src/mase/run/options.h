// SPDX-License-Identifier: Apache-2.0
// The options that commands and library callers share, with MASE's names and defaults, as schemas.
#pragma once

#include <string>
#include <vector>

#include "mase/base/schema.h"

namespace mase {

// The options every action of MASE has: --config, --task, --load, --load-type, --batch-size, ...
std::vector<Field> general_options();
// The options that say where data come from and how they are prepared: --data-dir, --val-split ...
std::vector<Field> data_options();
// The options of MASE's trainer.
std::vector<Field> trainer_options();
// Those of a machine with GPUs, a cluster or a build farm: accepted, each with one warning.
std::vector<Field> machine_options();

// --set table.key=value changes the configuration of commands that read its tables.
std::vector<Field> config_options();

std::vector<Field> operator+(std::vector<Field> first, const std::vector<Field>& second);

// Those of them that a command reads.
std::vector<Field> without(std::vector<Field> fields, const std::vector<std::string>& names);
std::vector<Field> only(std::vector<Field> fields, const std::vector<std::string>& names);

}  // namespace mase
