// SPDX-License-Identifier: Apache-2.0
// Why any moment is safe for a kill: last.ckpt is replaced atomically and describes one moment
// completely (weights, statistics, optimiser, position, lengths of the metrics files). What was
// written after it (metrics rows, a best.ckpt) is written again, equal, by the resumed run. Random
// draws are functions of seed and position, so there is no generator to save.
#include "mase/train/trainer.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/data/token_rows.h"
#include "mase/train/batch_feed.h"
#include "mase/train/divergence.h"
#include "mase/train/evaluation.h"
#include "mase/train/optimizer_state.h"
#include "mase/train/schedule.h"
#include "mase/train/task.h"
#include "mase/train/training_checkpoint.h"
#include "mase/train/validation.h"
#include "mase/train/weight_update.h"

namespace mase {
namespace {

// Epochs of small networks take less time than their files do: those in between stay in memory, and
// a kill loses no more than this.
constexpr double seconds_between_epochs_written = 2;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool file_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

// A larger batch than there are rows would only take memory.
TrainOptions with_batches_of_rows(TrainOptions options, const Dataset& dataset,
                                  const Communicator& processes) {
  options.batch_size =
      std::min(options.batch_size, std::max<int64_t>(dataset.train.rows(), processes.size()));
  return options;
}

class Loop {
 public:
  Loop(Graph& graph, const Dataset& dataset, const TrainOptions& options,
       const TrainSession& session, Communicator& processes)
      : graph_(graph),
        data_(dataset),
        options_(with_batches_of_rows(options, dataset, processes)),
        session_(session),
        writes_(!session.folder.empty() && processes.leads()),
        observer_(session.observer),
        processes_(processes),
        schedule_(options.schedule, options.schedule_arguments, options.warmup_steps),
        checkpoint_(dataset, options, session.notes, processes.size()),
        task_(task_for(dataset, options.task)),
        loss_(loss_for(dataset, options.loss.empty() ? task_.loss : options.loss,
                       options.loss_options)),
        validation_(dataset, task_, options.metrics, options.monitor),
        feed_(dataset, options_.batch_size, options.seed, options.max_epochs, processes) {
    if (options_.batch_size != options.batch_size)
      tell(fmt::format("batches of {} rows: the data have no more ({} were asked for)",
                       options_.batch_size, options.batch_size));
    batches_ = feed_.batches();
    steps_per_epoch_ = (batches_ + options_.accumulate - 1) / options_.accumulate;
    if (options_.max_epochs < 1 || batches_ > (INT64_C(1) << 53) / options_.max_epochs)
      throw Error("--max-epochs",
                  fmt::format("{} epochs of {} batches are more steps than can be counted",
                              options_.max_epochs, batches_),
                  "choose fewer epochs; --max-steps ends a run too");
    total_steps_ = steps_per_epoch_ * options_.max_epochs;
    if (options_.max_steps > 0) total_steps_ = std::min(total_steps_, options_.max_steps);
    schedule_.check(position());
    check_batch_norms();
  }

  TrainOutcome run() {
    if (session_.resume && !session_.folder.empty()) load(checkpoint_path(session_.folder, "last"));
    if (writes_) {
      make_directories(session_.folder + "/training_ckpts");
      std::vector<std::string> figures = {"train_acc_epoch", "train_loss_epoch"};
      for (size_t i = 0; i < validation_.size(); ++i) figures.push_back(validation_.name(i));
      log_ = std::make_unique<MetricsLog>(session_.folder, std::move(figures), state_.csv_bytes,
                                          state_.jsonl_bytes);
      tell(log_->notice());
    }
    compile();
    start_ = last_written_ = Clock::now();
    base_seconds_ = state_.seconds;
    TrainOutcome outcome;
    try {
      while (!state_.done) {
        outcome.status = epoch(outcome);
        if (outcome.status != TrainStatus::finished) break;
      }
    } catch (...) {
      // What was done before the error stays; the error itself says more than a full disk would.
      try {
        write_checkpoints();
      } catch (const Error&) {
      }
      throw;
    }
    write_checkpoints();
    if (log_) log_->flush();
    program_->write_to(graph_);
    outcome.state = state_;
    outcome.run_seconds = seconds_since(start_);
    outcome.step_seconds = step_seconds_;
    outcome.run_steps = run_steps_;
    outcome.run_samples = run_samples_;
    outcome.evaluation = std::move(evaluation_);
    outcome.monitor = validation_.monitored_name();
    return outcome;
  }

 private:
  void tell(const std::string& notice) const {
    if (!notice.empty() && observer_.on_notice && processes_.leads()) observer_.on_notice(notice);
  }

  // One value has no variance: PyTorch refuses it too.
  void check_batch_norms() const {
    if (frozen(0)) return;
    const std::vector<Shape> shapes = infer_shapes(graph_, 1);
    for (const NodeId id : graph_.order()) {
      const Module* module = graph_.module_of(graph_.node(id));
      if (!module || !starts_with(module->op, "batch_norm")) continue;
      const Shape& shape = shapes[static_cast<size_t>(id)];
      if (shape.size() < 2 || element_count(shape) != shape[1]) continue;
      int64_t smallest = feed_.size(batches_ - 1);
      const bool sharded = processes_.size() > 1 && !options_.sync_batch_norm;
      if (sharded && !feed_.is_shared(batches_ - 1)) smallest /= processes_.size();
      if (smallest > 1) return;
      throw Error("--batch-size",
                  fmt::format("with {} the {} batch of {} training rows has one row{}, of which {} "
                              "cannot take the variance",
                              options_.batch_size, batches_ > 1 ? "last" : "only", feed_.rows(),
                              sharded ? " on a process" : "", graph_.node(id).target),
                  "choose another one");
    }
  }

  bool frozen(int64_t epoch) const {
    return epoch >= options_.max_epochs - options_.freeze_bn_epochs;
  }

  bool folds(int64_t epoch) const {
    return session_.fold_batch_norm && state_.folded_at < 0 &&
           (options_.freeze_bn_epochs == 0 || frozen(epoch));
  }

  // The network has other parameters from here on: the optimiser and the search for the best epoch
  // begin anew.
  void fold() {
    write_checkpoints();
    program_->write_to(graph_);
    session_.fold_batch_norm(graph_);
    state_.folded_at = state_.step;
    state_.best_loss.reset();
    state_.best_accuracy.reset();
    state_.best_monitored.reset();
    state_.best_figures = Dict();
    state_.best_epoch = -1;
    state_.stale_epochs = 0;
    program_.reset();
    compile();
  }

  // Steps of the optimiser since its own beginning.
  int64_t optimizer_steps() const { return state_.step - std::max<int64_t>(0, state_.folded_at); }

  // The training program, and the one that validates on the same parameters. Both stay until the
  // network itself changes; only what batch norms do in training may.
  void compile() {
    CompileOptions training;
    training.training = true;
    training.batch_size = (options_.batch_size + processes_.size() - 1) / processes_.size();
    if (processes_.size() > 1)
      training.batch_size =
          std::max(training.batch_size, std::min<int64_t>(processes_.size() - 1, feed_.rows()));
    training.loss = loss_;
    training.threads = options_.threads;
    training.seed = options_.seed;
    training.freeze_batch_norm = frozen(state_.epoch);
    training.sync_batch_norm = options_.sync_batch_norm;
    if (processes_.size() > 1)
      training.all_reduce = [this](std::span<double> sums) { processes_.sum(sums); };
    if (program_) {
      program_ = std::make_unique<Program>(program_->sharing(training));
      return;
    }
    checkpoint_.describe(graph_);
    program_ = std::make_unique<Program>(Program::compile(graph_, training));
    CompileOptions evaluating;
    evaluating.batch_size = data_.validation.rows() > 0
                                ? std::min(options_.batch_size, data_.validation.rows())
                                : options_.batch_size;
    evaluating.loss = loss_;
    evaluating.threads = options_.threads;
    evaluating.seed = options_.seed;
    evaluation_ = std::make_shared<Program>(program_->sharing(evaluating));
    update_.emplace(*program_, options_);
    restore_optimizer();
    program_->parameters_changed();
  }

  void load(const std::string& path) {
    if (!file_exists(path)) return;  // killed before the first checkpoint: start at the beginning
    restored_ = load_checkpoint(path, CheckpointType::pl);
    restored_from_ = path;
    std::string notice;
    state_ = checkpoint_.position(*restored_, path, notice);
    tell(notice);
    if (state_.batch > batches_)
      throw Error(path,
                  fmt::format("stopped after batch {} of an epoch of {}", state_.batch, batches_),
                  "resume with the batch size of the run");
    // More epochs or steps may be asked for than before; a run that stopped early has stopped.
    const bool early =
        options_.early_stopping > 0 && state_.stale_epochs >= options_.early_stopping;
    if (!early && state_.epoch < options_.max_epochs &&
        (options_.max_steps <= 0 || state_.step < options_.max_steps))
      state_.done = false;
    if (state_.folded_at >= 0 && session_.fold_batch_norm) session_.fold_batch_norm(graph_);
    load_into(graph_, *restored_, path);
  }

  void restore_optimizer() {
    if (!restored_) return;
    restore_optimizer_state(update_->optimizer(), *program_, restored_->others, optimizer_steps(),
                            restored_from_);
    restored_.reset();
  }

  TrainingMoment moment() {
    if (log_) {
      state_.csv_bytes = log_->csv_bytes();
      state_.jsonl_bytes = log_->jsonl_bytes();
    }
    return {program_->state(),
            optimizer_state_tensors(update_->optimizer(), *program_, optimizer_steps()),
            std::ssize(program_->parameters()), rate(), state_};
  }

  // The run as it is now is what a resumed one goes on with; the file may come later.
  void checkpoint() {
    if (!writes_) return;
    state_.seconds = now();
    last_ = moment();
  }

  // Best before last: a run killed between the two computes the same best epoch again.
  void write_checkpoints() {
    if (!last_) return;
    if (observer_.before_checkpoint) observer_.before_checkpoint();
    if (log_) log_->flush();
    if (best_) checkpoint_.write(checkpoint_path(session_.folder, "best"), *best_);
    checkpoint_.write(checkpoint_path(session_.folder, "last"), *last_);
    best_.reset();
    last_.reset();
    last_written_ = Clock::now();
  }

  double now() const { return base_seconds_ + seconds_since(start_); }

  SchedulePosition position() const {
    SchedulePosition at;
    at.base = options_.learning_rate;
    at.epoch = state_.epoch;
    at.step = state_.step;
    at.max_epochs = options_.max_epochs;
    at.total_steps = total_steps_;
    return at;
  }

  double rate() const { return schedule_.rate(position()); }

  TrainStatus epoch(TrainOutcome& outcome) {
    if (folds(state_.epoch)) {
      fold();
    } else if (program_->options().freeze_batch_norm != frozen(state_.epoch)) {
      compile();
    }
    const Clock::time_point epoch_start = Clock::now();
    feed_.start(state_.epoch);
    StepEvent event;
    event.epoch = state_.epoch;
    event.batches = batches_;
    bool enough = false;
    while (state_.batch < batches_ && !enough) {
      const int64_t index = state_.batch;
      const bool first_of_group = index % options_.accumulate == 0;
      const bool last_of_group = (index + 1) % options_.accumulate == 0 || index + 1 == batches_;
      const int64_t global_size = feed_.size(index);
      const StepResult result = program_->forward_backward(feed_.take(index), !first_of_group);
      double sums[3] = {result.loss, static_cast<double>(result.correct),
                        observer_.stop_requested && observer_.stop_requested() ? 1.0 : 0.0};
      if (processes_.size() > 1) processes_.sum(std::span<double>(sums));
      if (feed_.is_shared(index)) sums[1] /= processes_.size();
      event.learning_rate = rate();
      event.loss = sums[0];
      event.accuracy = sums[1] / (has_token_labels(data_) ? std::max(1.0, result.weight)
                                                          : static_cast<double>(global_size));
      if (!std::isfinite(event.loss)) {
        explain_divergence(
            outcome, data_,
            fmt::format("the loss became {} in epoch {}, step {}",
                        std::isnan(event.loss) ? "NaN" : "infinite", state_.epoch, state_.step));
        return TrainStatus::diverged;
      }
      if (last_of_group) {
        if (processes_.size() > 1) processes_.sum(program_->gradient_memory());
        update_->average_gradients(*program_);
        if (session_.penalty) session_.penalty(*program_, state_.step, total_steps_);
        update_->step(*program_, event.learning_rate);
        ++state_.step;
        ++run_steps_;
      }
      ++state_.batch;
      run_samples_ += global_size;
      state_.loss_sum += event.loss * result.weight;
      state_.loss_weight += result.weight;
      state_.hits += static_cast<int64_t>(std::lround(sums[1]));
      state_.rows += global_size;
      event.batch = state_.batch;
      event.step = state_.step;
      event.epoch_seconds = seconds_since(epoch_start);
      step_seconds_ = earlier_step_seconds_ + event.epoch_seconds;
      event.seconds = now();
      if (processes_.leads()) {
        if (observer_.on_step) observer_.on_step(event);
        if (last_of_group && state_.step % options_.log_every_n_steps == 0) log_step(event);
      }
      enough = last_of_group && options_.max_steps > 0 && state_.step >= options_.max_steps;
      // Between the batches of one accumulated step there is nothing consistent to save.
      if (!last_of_group || state_.batch == batches_ || enough) continue;
      if (sums[2] > 0) {
        checkpoint();
        return TrainStatus::interrupted;
      }
      if (writes_ && checkpoint_is_due()) {
        checkpoint();
        write_checkpoints();
      }
    }
    earlier_step_seconds_ = step_seconds_;
    return finish_epoch(event, seconds_since(epoch_start), enough, outcome);
  }

  bool checkpoint_is_due() const {
    if (options_.checkpoint_steps > 0 && state_.step % options_.checkpoint_steps == 0) return true;
    return options_.checkpoint_seconds > 0 &&
           seconds_since(last_written_) >= options_.checkpoint_seconds;
  }

  void log_step(const StepEvent& event) {
    if (log_) {
      MetricsRow row;
      row.epoch = event.epoch;
      row.step = event.step;
      if (data_.classification) row.train_accuracy = event.accuracy;
      row.train_loss = event.loss;
      row.learning_rate = event.learning_rate;
      row.seconds = event.seconds;
      log_->add(row);
      if (event.seconds - flushed_ > 1) {  // so that others can watch
        log_->flush();
        flushed_ = event.seconds;
      }
    }
    if (observer_.on_log) observer_.on_log(event);
  }

  void validate(EpochEvent& event) {
    if (processes_.size() > 1 && !options_.sync_batch_norm) {
      const std::span<float> buffers = program_->buffer_memory();
      processes_.broadcast(buffers.data(), buffers.size_bytes());
      program_->parameters_changed();
    }
    validation_.measure(*evaluation_, processes_);
    for (size_t i = 0; i < validation_.size(); ++i) {
      const double value = validation_.value(i);
      event.figures.emplace_back(validation_.name(i), value);
      if (validation_.record(i).name == "loss") event.val_loss = value;
      if (validation_.record(i).name == "accuracy") event.val_accuracy = value;
    }
  }

  TrainStatus finish_epoch(const StepEvent& last, double epoch_seconds, bool enough,
                           TrainOutcome& outcome) {
    EpochEvent event;
    event.epoch = state_.epoch;
    event.batches = batches_;
    event.step = state_.step;
    event.learning_rate = last.learning_rate;
    event.epoch_seconds = epoch_seconds;
    // A run of an earlier version that was resumed within the epoch does not know all of its rows.
    if (state_.rows == std::min(feed_.rows(), state_.batch * options_.batch_size)) {
      const double rows = static_cast<double>(std::max<int64_t>(1, state_.rows));
      event.train_loss = state_.loss_sum / state_.loss_weight;
      if (data_.classification)
        event.train_accuracy = static_cast<double>(state_.hits) /
                               (has_token_labels(data_) ? std::max(1.0, state_.loss_weight) : rows);
      if (event.train_accuracy)
        event.figures.emplace_back("train_acc_epoch", *event.train_accuracy);
      event.figures.emplace_back("train_loss_epoch", *event.train_loss);
    }
    double measure = event.train_loss.value_or(last.loss);
    if (validation_.has_rows()) {
      validate(event);
      measure = validation_.monitored();
      if (event.val_loss && !std::isfinite(*event.val_loss)) {
        explain_divergence(
            outcome, data_,
            fmt::format("val_loss_epoch became {} after epoch {}",
                        std::isnan(*event.val_loss) ? "NaN" : "infinite", state_.epoch));
        return TrainStatus::diverged;
      }
    }
    event.best = std::isfinite(measure) &&
                 (!state_.best_monitored || validation_.is_better(measure, *state_.best_monitored));
    event.seconds = now();
    if (event.best) {
      state_.best_monitored = measure;
      state_.best_loss = validation_.has_rows() ? event.val_loss : measure;
      state_.best_accuracy = event.val_accuracy;
      state_.best_figures = Dict();
      for (const auto& [name, value] : event.figures) state_.best_figures.set(name, value);
      state_.best_epoch = state_.epoch;
      state_.stale_epochs = 0;
    } else {
      ++state_.stale_epochs;
    }
    if (log_) {
      MetricsRow row;
      row.epoch = state_.epoch;
      row.step = state_.step;
      row.figures = event.figures;
      row.learning_rate = event.learning_rate;
      row.seconds = event.seconds;
      log_->add(row);
    }
    if (observer_.on_epoch && processes_.leads()) observer_.on_epoch(event, *program_);
    if (event.best && writes_) best_ = moment();
    ++state_.epoch;
    state_.batch = 0;
    state_.loss_sum = 0;
    state_.loss_weight = 0;
    state_.hits = state_.rows = 0;
    outcome.stopped_early =
        options_.early_stopping > 0 && state_.stale_epochs >= options_.early_stopping;
    state_.done = state_.epoch >= options_.max_epochs || enough || outcome.stopped_early;
    checkpoint();
    if (seconds_since(last_written_) >= seconds_between_epochs_written) write_checkpoints();
    double stop[1] = {observer_.stop_requested && observer_.stop_requested() ? 1.0 : 0.0};
    if (processes_.size() > 1) processes_.sum(std::span<double>(stop));
    return stop[0] > 0 && !state_.done ? TrainStatus::interrupted : TrainStatus::finished;
  }

  Graph& graph_;
  const Dataset& data_;
  TrainOptions options_;
  const TrainSession& session_;
  bool writes_;  // only the leading process does
  const TrainObserver& observer_;
  Communicator& processes_;
  Schedule schedule_;
  TrainingCheckpoint checkpoint_;
  const TaskRecord& task_;
  LossFunction loss_;
  Validation validation_;
  BatchFeed feed_;
  std::unique_ptr<Program> program_;
  std::shared_ptr<Program> evaluation_;
  std::optional<WeightUpdate> update_;
  std::unique_ptr<MetricsLog> log_;
  std::optional<TrainingMoment> best_, last_;  // that are not in files yet
  std::optional<Checkpoint> restored_;
  std::string restored_from_;
  TrainState state_;
  int64_t batches_ = 0, steps_per_epoch_ = 0, total_steps_ = 0;
  int64_t run_steps_ = 0, run_samples_ = 0;
  Clock::time_point start_, last_written_;
  double base_seconds_ = 0, flushed_ = 0;
  double earlier_step_seconds_ = 0, step_seconds_ = 0;  // without validation and files
};

}  // namespace

std::string checkpoint_path(const std::string& folder, const std::string& name) {
  return fmt::format("{}/training_ckpts/{}.ckpt", folder, name);
}

TrainOutcome train(Graph& graph, const Dataset& dataset, const TrainOptions& options,
                   const TrainSession& session) {
  Communicator alone;
  Communicator& processes = session.processes ? *session.processes : alone;
  if (dataset.train.rows() == 0) throw Error(dataset.name, "has no training rows");
  if (dataset.train.rows() > INT32_MAX)
    throw Error(dataset.name, "has more than 2^31 training rows");
  if (options.batch_size < processes.size())
    throw Error(
        "--batch-size",
        fmt::format("{} is less than the {} processes", options.batch_size, processes.size()),
        "each process needs a part of every batch");
  if (graph.parameter_count() == 0) throw Error(graph.name, "has no parameters to train");
  check_split(dataset.train, dataset, graph);
  if (dataset.validation.rows() > 0) check_split(dataset.validation, dataset, graph);
  return Loop(graph, dataset, options, session, processes).run();
}

}  // namespace mase
