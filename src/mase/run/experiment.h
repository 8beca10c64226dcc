// SPDX-License-Identifier: Apache-2.0
// What a command does, without a terminal: an experiment prepares data and network once, then
// trains, evaluates, predicts or transforms. It never prints or exits, holds no global state, and
// gives plain results, so that commands, searches and notebooks do the same things the same way.
//
//   Experiment experiment(experiment_spec(settings), observer);
//   experiment.prepare();
//   const Evaluation test = experiment.evaluate("test");
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/run/network.h"
#include "mase/run/observer.h"
#include "mase/run/run_folder.h"
#include "mase/run/spec.h"
#include "mase/train/evaluation.h"

namespace mase {

struct Evaluation {
  std::string split;  // "test", "validation", "train" or "all": what the figures were measured on
  Score score;
  Tensor outputs;  // of every row
  Value record;    // every metric, as run.json keeps it
  double seconds = 0;
};

// The figures every test names, with the split in their names: test_acc_epoch, val_loss_epoch; of
// numbers test_mae_epoch and the like too. As float32, which is how PyTorch prints them.
std::vector<std::pair<std::string, double>> named_figures(const Evaluation& evaluation,
                                                          bool classification);

struct TrainResult {
  TrainOutcome outcome;
  std::string folder;  // of the run; empty if nothing was written
  // Of the best weights, which the experiment's network then has, or of the last ones where nothing
  // was written.
  std::optional<Evaluation> validation, test;
};

struct PredictSpec {
  // Files of rows, one after another; for a network of several inputs one for each, in the graph's
  // order.
  std::vector<std::string> inputs;
  std::string tensor = {};  // which array of a .safetensors or .npz file
  bool preprocess = true;   // scale raw rows as the network's file says
  // Rows left out for missing or infinite values (the data's drop_bad_rows) keep their places:
  // their outputs are NaN.
  bool keep_places = false;
  // Of sentences in a .txt; empty: the one the network was trained with, or words that are ids.
  std::string vocabulary = {};
  std::vector<Tensor> tensors = {};  // the inputs themselves, with their rows in front; no files
};

struct Prediction {
  std::vector<Tensor> outputs;  // of every row, one for each output of the network
  // The file of each row, where there are pictures or several files; else empty.
  std::vector<std::string> files = {};
};

struct TransformResult {
  std::vector<PassOutcome> outcomes;
  Value record;  // for pages: nodes, histograms, costs and accuracies before and after
};

// "train", "validation" or "test"; any other name is an error.
const Split& split_called(const Dataset& dataset, const std::string& name);

class Experiment {
 public:
  explicit Experiment(ExperimentSpec spec, Observer observer = {},
                      std::shared_ptr<Communicator> processes = {});

  // Everything that can be known to be wrong before data are read is added to the problems.
  void check(Problems& problems);
  // Checks, then loads the data, if any are named, and the network.
  void prepare();

  // A new folder for what follows: <project-dir>/<project>, numbered if that is taken.
  RunFolder create_folder(const OutputSpec& output, const std::string& kind) const;

  // The spec's passes, once; files they write go to `save_dir` (empty: none are written).
  // `describe`: the graph gets MASE's metadata first.
  std::vector<PassOutcome> apply_passes(const std::string& save_dir = "", bool describe = false);

  // Runs the passes, if that did not happen, and trains. `folder` null: nothing is written.
  TrainResult train(const TrainSpec& spec, RunFolder* folder = nullptr, bool resume = false);
  Evaluation evaluate(const std::string& split = "test");
  Prediction predict(const PredictSpec& spec);
  // Runs the passes and describes what they did.
  TransformResult transform(RunFolder* folder = nullptr);

  // What passes may need: training rows, and where files go (empty: nowhere).
  PassContext pass_context(const std::string& save_dir) const;
  // What travels in an .mz beside the graph: preprocessing, classes, the data it was made for.
  Value file_contents() const;

  const ExperimentSpec& spec() const { return spec_; }
  // The spec's passes as prepare() found them good, until they run.
  const std::vector<PreparedCall>& prepared_passes() const { return prepared_passes_; }
  const Graph& graph() const { return network_.graph; }
  const Network& network() const { return network_; }
  const Dataset* dataset() const { return dataset_ ? &*dataset_ : nullptr; }
  const std::string& task() const { return task_; }
  Communicator& processes() { return *processes_; }
  // The rows of a split of the data; "all": every one.
  Split split(const std::string& name) const;

 private:
  void take_data_from_file();
  void match_data(const NetworkNotes& notes);
  const Dataset& data() const;  // an error without one
  void apply_passes_aloud(const std::string& save_dir = "");
  Evaluation evaluate_program(Program& program, const std::string& split) const;
  TrainOutcome train_in(const TrainSpec& spec, RunFolder* folder, bool resume, TrainResult& result);
  void finish_training(const TrainSpec& spec, RunFolder& folder, TrainResult& result);

  ExperimentSpec spec_;
  Observer observer_;
  std::shared_ptr<Communicator> processes_;
  std::optional<Checkpoint> checkpoint_;
  bool opened_ = false;      // the checkpoint was looked for
  bool spare_data_ = false;  // the data that its file names would be welcome, and are not needed
  std::optional<Dataset> dataset_;
  Network network_;
  Graph original_;  // before the passes
  std::vector<PreparedCall> prepared_passes_;
  std::string task_ = "classification";
  bool passes_ran_ = false;
};

}  // namespace mase
