// SPDX-License-Identifier: Apache-2.0
// Everything of ch search before the first trial: settings read and told, network and data at hand.
#pragma once

#include <memory>
#include <string>

#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/run/search_experiment.h"

namespace mase::search_command {

struct Prepared {
  Settings settings;
  Logger log;
  std::unique_ptr<Experiment> experiment;
  std::unique_ptr<SearchExperiment> search;

  Prepared(Settings read, SearchSpec spec, bool speaks);
  RunFolder create_folder(const Arguments& arguments) const;
};

std::string study_name(const Settings& settings);
std::vector<Field> search_options();  // of this command alone

}  // namespace mase::search_command
