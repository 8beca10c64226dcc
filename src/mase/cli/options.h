// SPDX-License-Identifier: Apache-2.0
// From what was typed to settings: the reader itself is run/settings.
#pragma once

#include "mase/cli/command.h"
#include "mase/run/options.h"
#include "mase/run/settings.h"

namespace mase {

// Every key and table that some command reads from a configuration.
KnownKeys keys_of_all_commands();

// The word that names a network, wherever one is expected.
Positional network_word(bool required = false);
// And the one that names a data set; both may be given as --model and --dataset, too.
Positional dataset_word(const std::string& help = "");

// Merges what was typed with the file named by --config. A file may serve several commands: keys
// and tables that another command reads are welcome, all others are errors that name the nearest
// one.
Settings merge_settings(const std::string& command, const Arguments& arguments, Problems& problems);
Settings merge_settings(const std::string& command, const Arguments& arguments);  // throws them

}  // namespace mase
