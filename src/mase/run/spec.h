// SPDX-License-Identifier: Apache-2.0
// What an experiment is made of, as plain structs: which network, which data, which passes, how to
// train, where results go. Commands and notebooks fill them from settings; a C++ caller may fill
// them by hand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mase/data/arrays.h"
#include "mase/data/dataset.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/passes/pass.h"
#include "mase/run/settings.h"
#include "mase/train/trainer.h"

namespace mase {

struct NetworkSpec {
  std::string model = {};  // a built-in name or the path of a .toml; empty: what `load` holds
  std::string load = {};   // a checkpoint; empty: random weights
  // In memory, in the place of a file; `load` is then what messages call it.
  std::shared_ptr<const Checkpoint> held = {};
  std::optional<CheckpointType> load_type = {};
  bool load_partial = false;
  uint64_t seed = 0;  // of the initial weights
  // Of what it is to take, with the rows in front (0: any), where no data set says it: for networks
  // that take several.
  std::vector<Shape> input_shapes = {};
  // Where a file names them, for messages.
  Position model_position = {}, load_position = {};
};

struct DataSpec {
  std::string name = {};                         // a registered data set or a path; empty: none
  std::shared_ptr<const ArrayData> arrays = {};  // in the place of what the name stands for
  DatasetOptions options = {};                   // `apply` and `notify` are the experiment's
  bool keep_scaling = true;  // scale features as the network's file says; false: fit them anew
  bool needed = false;       // without a name: the data that the network's file names, or an error
  bool noted = false;  // without a name: those data if they can be had, else none and a warning
  // What was asked for by name ("val_split"), and options of the data set itself: they hold where
  // the network's file says how its data were read.
  std::vector<std::string> given = {};
  Dict given_arguments = {};
  Position position = {};
};

// A network and rows that a library caller has in memory, in the place of what settings name.
struct InMemory {
  std::shared_ptr<const Checkpoint> network = {};
  std::shared_ptr<const ArrayData> rows = {};
};

struct PassList {
  std::vector<PassCall> calls = {};
  std::string base_dir = {};  // relative paths in their arguments start here
};

struct ExperimentSpec {
  NetworkSpec network = {};
  DataSpec data = {};
  PassList passes = {};
  std::string task = {};  // empty: what the data say
  int64_t batch_size = 128;
  int threads = 1;
  uint64_t seed = 0;
};

struct TrainSpec {
  TrainOptions options = {};
  bool fold_bn = false;
  bool test = true;              // measure the best weights on the test rows at the end
  std::string save_type = "pl";  // beside Lightning's
  std::string notice = {};       // what the user should know about these options
};

struct OutputSpec {
  std::string project_dir = "mase_output";
  std::string project = {};  // empty: from network, task, data and date
  Value record = Dict{};     // what the caller adds to run.json: "command", "version", "options"
  std::string config = {};   // text of config.toml; empty: none is written
};

// The parts of an experiment that the settings describe. Problems of single keys are known by then;
// these throw for what concerns several.
ExperimentSpec experiment_spec(const Settings& settings);
void take_from_memory(ExperimentSpec& spec, const InMemory& memory);
TrainSpec train_spec(const Settings& settings);
OutputSpec output_spec(const Settings& settings);
DataSpec data_spec(const Settings& settings);
// [passes.*] of the configuration, or of the file that quant_config names.
PassList pass_list(const Settings& settings);
// Names and arguments of passes, as far as they can be judged without a network.
void check_pass_arguments(const std::vector<PassCall>& calls, Problems& problems);

// The task in full ("cls" is classification); an error for what there are no networks for.
std::string task_name(const std::string& given);

}  // namespace mase
