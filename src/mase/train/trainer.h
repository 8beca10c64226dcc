// SPDX-License-Identifier: Apache-2.0
// The training loop: shuffled batches, forward and backward in a compiled program, one sweep of the
// optimiser, validation after each epoch, best and last checkpoints. A run that was killed at any
// moment continues from last.ckpt and ends in the same bits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/train/communicator.h"
#include "mase/train/metrics_log.h"

namespace mase {

struct TrainOptions {
  std::string optimizer = "adam";
  Value optimizer_arguments = Dict{};
  std::string schedule = "cosine";
  Value schedule_arguments = Dict{};
  int64_t warmup_steps = 0;
  double learning_rate = 1e-5;
  int64_t max_epochs = 20, max_steps = -1;
  int64_t batch_size = 128, accumulate = 1;
  double clip = 0;  // 0: gradients are not clipped
  bool clip_values = false;
  int64_t early_stopping = 0;  // epochs without a better monitored figure; 0: never
  int64_t freeze_bn_epochs = 0;
  int64_t log_every_n_steps = 50;
  double checkpoint_seconds = 30;
  int64_t checkpoint_steps = 0;
  std::string task = {};  // empty: what such data are for
  std::string loss = {};  // empty: the task's
  Value loss_options = Dict{};
  Value metrics = Dict{};    // figures besides the task's, by name, and their options
  std::string monitor = {};  // the figure that chooses the best epoch; empty: the task's
  uint64_t seed = 0;
  int threads = 1;
  bool sync_batch_norm = true;
};

struct StepEvent {
  int64_t epoch = 0;
  int64_t batch = 0, batches = 0;  // done in this epoch, and in all
  int64_t step = 0;                // optimiser steps done in the run
  double loss = 0, accuracy = 0, learning_rate = 0;
  double seconds = 0;        // of the run
  double epoch_seconds = 0;  // since this epoch (or the resumed part of it) began
};

struct EpochEvent {
  int64_t epoch = 0, batches = 0, step = 0;
  double seconds = 0;        // of the run
  double epoch_seconds = 0;  // since this epoch (or the resumed part of it) began
  double learning_rate = 0;
  // Means over all batches of the epoch, as the network was when it saw them.
  std::optional<double> train_loss, train_accuracy;
  std::optional<double> val_loss, val_accuracy;
  // Every figure of this epoch as curves call it: train_loss_epoch, val_acc_epoch, val_mae_epoch.
  std::vector<std::pair<std::string, double>> figures;
  bool best = false;
};

// Called from the loop on the leading process. `on_step` is called for each batch and must be
// quick.
struct TrainObserver {
  std::function<void(const StepEvent&)> on_step = {};
  std::function<void(const StepEvent&)> on_log = {};  // every log_every_n_steps
  std::function<void(const EpochEvent&, const Program&)> on_epoch = {};
  std::function<void()> before_checkpoint = {};
  std::function<bool()> stop_requested = {};
  // What was repaired, or not done as it was asked for.
  std::function<void(const std::string& line)> on_notice = {};
};

enum class TrainStatus { finished, interrupted, diverged };
const char* status_name(TrainStatus status);

// Everything that the position of a run consists of, weights and optimiser state aside.
struct TrainState {
  int64_t epoch = 0;
  int64_t batch = 0;  // batches of this epoch that are done
  int64_t step = 0;   // optimiser steps done
  double seconds = 0;
  double loss_sum = 0;  // over this epoch's rows so far, as are hits and rows
  double loss_weight = 0;
  int64_t hits = 0, rows = 0;
  std::optional<double> best_loss, best_accuracy;  // of the best epoch
  std::optional<double> best_monitored;
  Dict best_figures = {};  // by the names of curves
  int64_t best_epoch = -1;
  int64_t stale_epochs = 0;  // since the best one
  int64_t csv_bytes = 0, jsonl_bytes = 0;
  int64_t folded_at = -1;  // the step at which batch-norms were folded; -1: they were not
  bool done = false;

  Value to_value() const;
  static TrainState from_value(const Value& value, const std::string& place);
};

struct TrainOutcome {
  TrainStatus status = TrainStatus::finished;
  TrainState state;
  std::string message;      // what happened, when the run diverged,
  std::string remedy;       // and what to do about it
  std::string monitor;      // what chose the best epoch: "val_loss_epoch"
  double run_seconds = 0;   // of this process
  double step_seconds = 0;  // of it in training steps, without validation and files
  int64_t run_steps = 0, run_samples = 0;
  bool stopped_early = false;
  // The program that validated, for whoever evaluates further weights of this network.
  std::shared_ptr<Program> evaluation = {};
};

// What checkpoints carry beside the weights: how rows are prepared, and who made them.
struct CheckpointNotes {
  std::string model = {};
  Value preprocessing;  // see preprocessing_to_value
  std::vector<std::string> class_names;
  Value more = {};           // further keys of the checkpoint's "mase" table
  std::string version = {};  // of the program
};
// The preprocessing a checkpoint of ours carries; nothing in anybody else's.
std::optional<Preprocessing> preprocessing_of(const Checkpoint& checkpoint);

// What a training run may have besides; most callers need none of it.
struct TrainSession {
  // Receives metrics.csv, metrics.jsonl and training_ckpts/; empty: no files. If it has a last.ckpt
  // and `resume` is set, training continues there.
  std::string folder = {};
  bool resume = false;
  CheckpointNotes notes = {};
  TrainObserver observer = {};
  // Folds batch-norms into the layers before them: called once, when they freeze, or at the start
  // if they never do. Null: they stay.
  std::function<void(Graph& graph)> fold_batch_norm = {};
  // Called before each step of the optimiser with the gradients of the loss: adds those of whatever
  // else is minimised. `step` of `steps` are done.
  std::function<void(Program& program, int64_t step, int64_t steps)> penalty = {};
  Communicator* processes = nullptr;  // null: this one alone
};

// The checkpoint called "best" or "last" below a session's folder.
std::string checkpoint_path(const std::string& folder, const std::string& name);

// Trains the graph in place: it holds the last weights at the end.
TrainOutcome train(Graph& graph, const Dataset& dataset, const TrainOptions& options,
                   const TrainSession& session = {});

}  // namespace mase
