// SPDX-License-Identifier: Apache-2.0
// Why any moment is safe for a kill: last.ckpt is replaced atomically and describes one moment
// completely (weights, statistics, optimiser, position, lengths of the metrics files). What was
// written after it (metrics rows, a best.ckpt) is written again, equal, by the resumed run. Random
// draws are functions of seed and position, so there is no generator to save.
#include "mase/train/trainer.h"

#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <future>
#include <numeric>

#include "mase/base/file.h"
#include "mase/base/random.h"
#include "mase/engine/kernels/optimizer.h"
#include "mase/train/evaluation.h"
#include "mase/train/optimizer.h"
#include "mase/train/schedule.h"

namespace mase {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool file_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

// The rows of an epoch in the order they are taken, and their labels (empty: the data has none).
// Labels lie in that order too: picked one by one they cost a cache miss each, like a whole sample.
struct EpochOrder {
  std::vector<uint32_t> rows;
  std::vector<int32_t> labels;
};

// A function of seed and epoch alone: a resumed run finds the same order.
void shuffle_rows(EpochOrder& order, const int32_t* labels, uint64_t seed, int64_t epoch) {
  std::iota(order.rows.begin(), order.rows.end(), 0u);
  Random(seed, "shuffle", static_cast<uint64_t>(epoch))
      .shuffle(order.rows.data(), order.rows.size());
  for (size_t i = 0; i < order.labels.size(); ++i) order.labels[i] = labels[order.rows[i]];
}

// The network without its weights and without what analyses noted, so that a checkpoint can be read
// without anything else. Masks are no part of a state dict: a pruned network is told by its .mz.
Value network_description(const Graph& graph) {
  Graph bare = graph;
  bare.meta = {};
  for (const NodeId id : bare.order()) bare.node(id).meta = {};
  for (const auto& [path, module] : bare.modules())
    if (!module.masks.empty()) return {};
  return graph_to_value(bare);
}

class Loop {
 public:
  Loop(Graph& graph, const Dataset& dataset, const TrainOptions& options, const std::string& folder,
       const CheckpointNotes& notes, const TrainObserver& observer, Communicator& processes)
      : graph_(graph),
        data_(dataset),
        samples_(dataset.train.x),
        options_(options),
        folder_(processes.leads() ? folder : std::string()),
        notes_(notes),
        observer_(observer),
        processes_(processes),
        schedule_(options.schedule, options.schedule_arguments, options.warmup_steps) {
    // Rows are taken in random order: from own memory, in huge pages, this is much faster than from
    // the pages of a mapped file.
    samples_.mutable_raw();
    rows_ = data_.train.rows();
    batches_ = (rows_ + options_.batch_size - 1) / options_.batch_size;
    steps_per_epoch_ = (batches_ + options_.accumulate - 1) / options_.accumulate;
    total_steps_ = steps_per_epoch_ * options_.max_epochs;
    if (options_.max_steps > 0) total_steps_ = std::min(total_steps_, options_.max_steps);
  }

  TrainOutcome run(const std::string& folder, bool resume) {
    if (resume && !folder.empty()) load(checkpoint_path(folder, "last"));
    if (!folder_.empty()) {
      make_directories(folder_ + "/training_ckpts");
      log_ = std::make_unique<MetricsLog>(folder_, state_.csv_bytes, state_.jsonl_bytes);
    }
    if (log_ && !log_->notice().empty() && observer_.on_notice) observer_.on_notice(log_->notice());
    compile();
    start_ = last_checkpoint_ = Clock::now();
    base_seconds_ = state_.seconds;
    TrainOutcome outcome;
    while (!state_.done) {
      outcome.status = epoch(outcome);
      if (outcome.status != TrainStatus::finished) break;
    }
    if (log_) log_->flush();
    program_->write_to(graph_);
    outcome.state = state_;
    outcome.run_seconds = seconds_since(start_);
    outcome.run_steps = run_steps_;
    outcome.run_samples = run_samples_;
    return outcome;
  }

 private:
  bool frozen(int64_t epoch) const {
    return epoch >= options_.max_epochs - options_.freeze_bn_epochs;
  }

  bool folds(int64_t epoch) const {
    return options_.fold_batch_norm && state_.folded_at < 0 &&
           (options_.freeze_bn_epochs == 0 || frozen(epoch));
  }

  // The network has other parameters from here on: the optimiser and the search for the best epoch
  // begin anew.
  void fold() {
    program_->write_to(graph_);
    options_.fold_batch_norm(graph_);
    state_.folded_at = state_.step;
    state_.best_loss.reset();
    state_.best_accuracy.reset();
    state_.best_epoch = -1;
    state_.stale_epochs = 0;
    evaluation_.reset();
    compile();
  }

  // Steps of the optimiser since its own beginning.
  int64_t optimizer_steps() const { return state_.step - std::max<int64_t>(0, state_.folded_at); }

  void compile() {
    CompileOptions training;
    training.training = true;
    training.batch_size = (options_.batch_size + processes_.size() - 1) / processes_.size();
    if (processes_.size() > 1)
      training.batch_size =
          std::max(training.batch_size, std::min<int64_t>(processes_.size() - 1, rows_));
    training.loss = options_.loss;
    training.class_weights = data_.class_weights;
    training.threads = options_.threads;
    training.seed = options_.seed + static_cast<uint64_t>(processes_.rank());
    training.freeze_batch_norm = frozen(state_.epoch);
    training.sync_batch_norm = options_.sync_batch_norm;
    if (processes_.size() > 1)
      training.all_reduce = [this](std::span<double> sums) { processes_.sum(sums); };
    program_ = std::make_unique<Program>(Program::compile(graph_, training));
    if (!evaluation_) {
      CompileOptions evaluating;
      evaluating.batch_size = options_.batch_size;
      evaluating.loss = options_.loss;
      evaluating.class_weights = data_.class_weights;
      evaluating.threads = options_.threads;
      evaluating.seed = options_.seed;
      evaluation_ = std::make_unique<Program>(Program::compile(graph_, evaluating));
      optimizer_ = std::make_unique<Optimizer>(options_.optimizer, options_.optimizer_arguments,
                                               program_->parameter_memory().size());
      restore_optimizer();
    }
    description_ = network_description(graph_);
    masked_ = false;
    for (ParameterView& parameter : program_->parameters()) masked_ |= !parameter.mask.empty();
    apply_masks(true);
    program_->parameters_changed();
  }

  // Pruned weights stay zero: their gradients are removed before norms and updates see them.
  void apply_masks(bool values) {
    if (!masked_) return;
    for (ParameterView& parameter : program_->parameters())
      for (size_t i = 0; i < parameter.mask.size(); ++i)
        (values ? parameter.value : parameter.gradient)[i] *= parameter.mask[i];
  }

  void load(const std::string& path) {
    if (!file_exists(path)) return;  // killed before the first checkpoint: start at the beginning
    restored_ = load_checkpoint(path, CheckpointType::pl);
    restored_from_ = path;
    const Value& ours = restored_->contents["mase"];
    state_ = TrainState::from_value(ours.is_dict() ? ours["state"] : Value(), path);
    if (ours["optimizer"].as_string("mase.optimizer") != options_.optimizer)
      throw Error(path, "was written with another optimiser", "resume with the options of the run");
    if (ours["dataset_identity"].as_string("mase.dataset_identity") != data_.identity ||
        state_.batch > batches_)
      throw Error(path, fmt::format("was trained on other data than {} holds now", data_.name),
                  "put the data back as they were, or start a new run with --load");
    // More epochs or steps may be asked for than before; a run that stopped early has stopped.
    const bool early =
        options_.early_stopping > 0 && state_.stale_epochs >= options_.early_stopping;
    if (!early && state_.epoch < options_.max_epochs &&
        (options_.max_steps <= 0 || state_.step < options_.max_steps))
      state_.done = false;
    if (state_.folded_at >= 0 && options_.fold_batch_norm) options_.fold_batch_norm(graph_);
    load_into(graph_, *restored_, path);
  }

  void restore_optimizer() {
    if (!restored_) return;
    TensorTable flat;
    const TensorTable empty = optimizer_->state();
    const float* base = program_->parameter_memory().data();
    for (const auto& [name, zeros] : empty) {
      Tensor block = zeros;
      float* values = block.mutable_data<float>();
      size_t index = 0;
      for (const ParameterView& parameter : program_->parameters()) {
        const std::string key = fmt::format("optimizer_states.0.state.{}.{}", index++, name);
        for (const auto& [other, tensor] : restored_->others) {
          if (other != key) continue;
          if (tensor.dtype() != DType::f32 ||
              tensor.numel() != static_cast<int64_t>(parameter.value.size()))
            throw Error(restored_from_, fmt::format("{} does not fit {}", key, parameter.name),
                        "resume with the network of the run");
          std::copy_n(tensor.data<float>(), tensor.numel(),
                      values + (parameter.value.data() - base));
        }
      }
      flat.emplace_back(name, std::move(block));
    }
    optimizer_->restore(flat, optimizer_steps(), restored_from_);
    restored_.reset();
  }

  void save(const std::string& name) {
    if (folder_.empty()) return;
    if (log_) {
      log_->flush();
      state_.csv_bytes = log_->csv_bytes();
      state_.jsonl_bytes = log_->jsonl_bytes();
    }
    List indices;
    TensorTable tensors;
    const TensorTable flat = optimizer_->state();
    const float* base = program_->parameter_memory().data();
    int64_t index = 0;
    for (const ParameterView& parameter : program_->parameters()) {
      indices.emplace_back(index);
      tensors.emplace_back(fmt::format("optimizer_states.0.state.{}.step", index),
                           Tensor::scalar(static_cast<float>(optimizer_steps())));
      for (const auto& [state_name, block] : flat)
        tensors.emplace_back(
            fmt::format("optimizer_states.0.state.{}.{}", index, state_name),
            Tensor::of<float>(
                parameter.shape,
                block.values<float>().subspan(static_cast<size_t>(parameter.value.data() - base),
                                              parameter.value.size())));
      ++index;
    }
    tensors.emplace_back("optimizer_states.0.param_groups.0.lr",
                         Tensor::of<double>({}, std::vector<double>{rate()}));
    Dict ours{{"format", 1},
              {"state", state_.to_value()},
              {"optimizer", options_.optimizer},
              {"seed", static_cast<int64_t>(options_.seed)},
              {"model", notes_.model},
              {"classes", Value::of(notes_.class_names)},
              {"sample_shape", Value::of(data_.sample_shape())},
              {"outputs", data_.outputs()},
              {"dataset", data_.name},
              {"dataset_identity", data_.identity},
              {"preprocessing", notes_.preprocessing},
              {"graph", description_}};
    if (notes_.more.is_dict())
      for (const auto& [key, value] : notes_.more.as_dict()) ours.set(key, value);
    // Numbers travel as tensors and our own table as JSON text: PyTorch 1.13's weights_only reader
    // knows no floating-point opcode.
    const Value extra =
        Dict{{"epoch", state_.epoch},
             {"global_step", state_.step},
             {"optimizer_states",
              List{Dict{{"state", Dict()}, {"param_groups", List{Dict{{"params", indices}}}}}}},
             {"mase", to_json(ours)}};
    save_lightning(checkpoint_path(folder_, name), program_->state(), extra, tensors);
  }

  void checkpoint() {
    state_.seconds = now();
    if (observer_.before_checkpoint && processes_.leads()) observer_.before_checkpoint();
    save("last");
    last_checkpoint_ = Clock::now();
  }

  double now() const { return base_seconds_ + seconds_since(start_); }

  double rate() const {
    SchedulePosition at;
    at.base = options_.learning_rate;
    at.epoch = state_.epoch;
    at.step = state_.step;
    at.max_epochs = options_.max_epochs;
    at.total_steps = total_steps_;
    return schedule_.rate(at);
  }

  void clip() {
    if (options_.clip <= 0) return;
    const std::span<float> gradients = program_->gradient_memory();
    if (options_.clip_values) {
      const float limit = static_cast<float>(options_.clip);
      for (float& g : gradients) g = std::min(std::max(g, -limit), limit);
      return;
    }
    const double norm = std::sqrt(kernels::sum_of_squares(gradients));
    const double factor = options_.clip / (norm + 1e-6);
    if (factor < 1) kernels::scale(gradients, static_cast<float>(factor));
  }

  // A last batch with fewer rows than processes is run by all of them: means stay what they are.
  bool is_shared(int64_t size) const { return size < processes_.size(); }

  // This process's part of the batch, into the same object each time: a step allocates nothing.
  void take_part(int64_t index, Program::Batch& batch) const {
    const int64_t first = index * options_.batch_size;
    const int64_t size = std::min(options_.batch_size, rows_ - first);
    int64_t from = size * processes_.rank() / processes_.size();
    int64_t to = size * (processes_.rank() + 1) / processes_.size();
    if (is_shared(size)) from = 0, to = size;
    batch.rows = order_.rows.data() + first + from;
    batch.own_labels = order_.labels.empty() ? nullptr : order_.labels.data() + first + from;
    batch.size = to - from;
    const int64_t rest = rows_ - first - options_.batch_size;
    batch.upcoming = {};
    if (rest > 0 && processes_.size() == 1)
      batch.upcoming = {batch.rows + batch.size,
                        static_cast<size_t>(std::min(options_.batch_size, rest))};
    batch.step = static_cast<uint64_t>(state_.epoch * batches_ + index);
  }

  // The order of this epoch's rows. That of the next one is made meanwhile by a thread of its own,
  // in memory that is there already.
  void take_order() {
    if (shuffling_.valid()) shuffling_.get();
    const int32_t* labels =
        data_.train.labels.numel() > 0 ? data_.train.labels.data<int32_t>() : nullptr;
    const auto make_room = [&](EpochOrder& order) {
      order.rows.resize(static_cast<size_t>(rows_));
      order.labels.resize(labels ? order.rows.size() : 0);
    };
    if (upcoming_epoch_ == state_.epoch) {
      std::swap(order_, upcoming_order_);
    } else {
      make_room(order_);
      shuffle_rows(order_, labels, options_.seed, state_.epoch);
    }
    upcoming_epoch_ = state_.epoch + 1;
    if (upcoming_epoch_ >= options_.max_epochs) return;
    make_room(upcoming_order_);
    shuffling_ = std::async(std::launch::async, shuffle_rows, std::ref(upcoming_order_), labels,
                            options_.seed, upcoming_epoch_);
  }

  TrainStatus epoch(TrainOutcome& outcome) {
    if (folds(state_.epoch)) {
      fold();
    } else if (program_->options().freeze_batch_norm != frozen(state_.epoch)) {
      program_->write_to(graph_);
      compile();
    }
    const Clock::time_point epoch_start = Clock::now();
    take_order();
    StepEvent event;
    event.epoch = state_.epoch;
    event.batches = batches_;
    Program::Batch batch;
    batch.sources = {samples_.data<float>()};
    if (data_.train.targets.numel() > 0) batch.targets = data_.train.targets.data<float>();
    bool enough = false;
    while (state_.batch < batches_ && !enough) {
      const int64_t index = state_.batch;
      const bool first_of_group = index % options_.accumulate == 0;
      const bool last_of_group = (index + 1) % options_.accumulate == 0 || index + 1 == batches_;
      const int64_t global_size =
          std::min(options_.batch_size, rows_ - index * options_.batch_size);
      take_part(index, batch);
      const StepResult result = program_->forward_backward(batch, !first_of_group);
      double sums[3] = {result.loss, static_cast<double>(result.correct),
                        observer_.stop_requested && observer_.stop_requested() ? 1.0 : 0.0};
      if (processes_.size() > 1) processes_.sum(std::span<double>(sums));
      if (is_shared(global_size)) sums[1] /= processes_.size();
      event.learning_rate = rate();
      event.loss = sums[0];
      event.accuracy = sums[1] / static_cast<double>(global_size);
      if (!std::isfinite(event.loss)) {
        outcome.message =
            fmt::format("the loss became {} in epoch {}, step {}",
                        std::isnan(event.loss) ? "NaN" : "infinite", state_.epoch, state_.step);
        return TrainStatus::diverged;
      }
      if (last_of_group) {
        if (processes_.size() > 1) processes_.sum(program_->gradient_memory());
        if (options_.accumulate > 1)
          kernels::scale(program_->gradient_memory(),
                         1.0f / static_cast<float>(options_.accumulate));
        apply_masks(false);
        clip();
        optimizer_->step(program_->parameter_memory(), program_->gradient_memory(),
                         event.learning_rate);
        apply_masks(true);
        program_->parameters_changed();
        ++state_.step;
        ++run_steps_;
      }
      ++state_.batch;
      run_samples_ += global_size;
      state_.loss_sum += event.loss;
      event.batch = state_.batch;
      event.step = state_.step;
      event.epoch_seconds = seconds_since(epoch_start);
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
      if (!folder_.empty() && checkpoint_is_due()) checkpoint();
    }
    return finish_epoch(event, seconds_since(epoch_start), enough, outcome);
  }

  bool checkpoint_is_due() const {
    if (options_.checkpoint_steps > 0 && state_.step % options_.checkpoint_steps == 0) return true;
    return options_.checkpoint_seconds > 0 &&
           seconds_since(last_checkpoint_) >= options_.checkpoint_seconds;
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

  Score validate() {
    program_->write_to(graph_);
    if (processes_.size() > 1 && !options_.sync_batch_norm)
      for (auto& [path, module] : graph_.modules())
        for (auto& [name, tensor] : module.buffers)
          processes_.broadcast(tensor.mutable_raw(), tensor.bytes());
    evaluation_->load_from(graph_);
    const int64_t rows = data_.validation.rows(), rank = processes_.rank(),
                  size = processes_.size();
    // Whole batches to each process, so that the sums do not depend on their number.
    const int64_t batches = (rows + options_.batch_size - 1) / options_.batch_size;
    const int64_t first = batches * rank / size * options_.batch_size;
    const int64_t last = std::min(rows, batches * (rank + 1) / size * options_.batch_size);
    Score score = score_rows(*evaluation_, data_.validation, std::min(first, rows), last);
    if (size > 1) {
      double sums[3] = {score.loss_sum, static_cast<double>(score.correct),
                        static_cast<double>(score.rows)};
      processes_.sum(std::span<double>(sums));
      score = {sums[0], static_cast<int64_t>(sums[1]), static_cast<int64_t>(sums[2])};
    }
    return score;
  }

  TrainStatus finish_epoch(const StepEvent& last, double epoch_seconds, bool enough,
                           TrainOutcome& outcome) {
    EpochEvent event;
    event.epoch = state_.epoch;
    event.batches = batches_;
    event.step = state_.step;
    event.learning_rate = last.learning_rate;
    event.train_loss = last.loss;
    event.train_accuracy = last.accuracy;
    event.epoch_seconds = epoch_seconds;
    double measure = state_.loss_sum / static_cast<double>(std::max<int64_t>(1, state_.batch));
    if (data_.validation.rows() > 0) {
      const Score score = validate();
      event.val_loss = measure = score.loss();
      if (data_.classification) event.val_accuracy = score.accuracy();
      if (!std::isfinite(measure)) {
        outcome.message = fmt::format("val_loss_epoch became {} after epoch {}",
                                      std::isnan(measure) ? "NaN" : "infinite", state_.epoch);
        return TrainStatus::diverged;
      }
    }
    event.best = !state_.best_loss || measure < *state_.best_loss;
    event.seconds = now();
    if (event.best) {
      state_.best_loss = measure;
      state_.best_accuracy = event.val_accuracy;
      state_.best_epoch = state_.epoch;
      state_.stale_epochs = 0;
    } else {
      ++state_.stale_epochs;
    }
    if (log_) {
      MetricsRow row;
      row.epoch = state_.epoch;
      row.step = state_.step;
      row.val_accuracy = event.val_accuracy;
      row.val_loss = event.val_loss;
      row.learning_rate = event.learning_rate;
      row.seconds = event.seconds;
      log_->add(row);
    }
    if (observer_.on_epoch && processes_.leads()) observer_.on_epoch(event, *program_);
    if (event.best) save("best");
    ++state_.epoch;
    state_.batch = 0;
    state_.loss_sum = 0;
    outcome.stopped_early =
        options_.early_stopping > 0 && state_.stale_epochs >= options_.early_stopping;
    state_.done = state_.epoch >= options_.max_epochs || enough || outcome.stopped_early;
    checkpoint();
    double stop[1] = {observer_.stop_requested && observer_.stop_requested() ? 1.0 : 0.0};
    if (processes_.size() > 1) processes_.sum(std::span<double>(stop));
    return stop[0] > 0 && !state_.done ? TrainStatus::interrupted : TrainStatus::finished;
  }

  Graph& graph_;
  const Dataset& data_;
  Tensor samples_;  // of the training rows
  const TrainOptions& options_;
  std::string folder_;  // empty on processes that do not lead
  const CheckpointNotes& notes_;
  const TrainObserver& observer_;
  Communicator& processes_;
  Schedule schedule_;
  std::unique_ptr<Program> program_, evaluation_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<MetricsLog> log_;
  std::optional<Checkpoint> restored_;
  std::string restored_from_;
  TrainState state_;
  EpochOrder order_, upcoming_order_;
  int64_t upcoming_epoch_ = -1;
  std::future<void> shuffling_;  // fills upcoming_order_; waited for before that goes away
  Value description_;            // of the network, for checkpoints
  int64_t rows_ = 0, batches_ = 0, steps_per_epoch_ = 0, total_steps_ = 0;
  int64_t run_steps_ = 0, run_samples_ = 0;
  bool masked_ = false;
  Clock::time_point start_, last_checkpoint_;
  double base_seconds_ = 0, flushed_ = 0;
};

}  // namespace

std::string checkpoint_path(const std::string& folder, const std::string& name) {
  return folder + "/training_ckpts/" + name + ".ckpt";
}

TrainOutcome train(Graph& graph, const Dataset& dataset, const TrainOptions& options,
                   const std::string& folder, bool resume, const CheckpointNotes& notes,
                   const TrainObserver& observer, Communicator& processes) {
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
  Loop loop(graph, dataset, options, folder, notes, observer, processes);
  return loop.run(folder, resume);
}

}  // namespace mase
