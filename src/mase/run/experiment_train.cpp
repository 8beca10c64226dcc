// SPDX-License-Identifier: Apache-2.0
// Training: the loop with its run folder around it, and the evaluation of the best weights.
#include <algorithm>
#include <filesystem>

#include "mase/base/text.h"
#include "mase/passes/costs.h"
#include "mase/passes/saturation.h"
#include "mase/run/describe.h"
#include "mase/run/event_log.h"
#include "mase/run/experiment.h"

namespace mase {
namespace {

void fold_batch_norms(Graph& graph, const Observer& observer) {
  PassContext context;
  const PassResult result = run_pass(graph, "fuse_batch_norm", Dict{{"quantized", true}}, context);
  for (const Value& pair : result.data["fused"].as_list())
    observer.info("Folded " + pair.as_string());
  for (const auto& [name, why] : result.data["left_alone"].as_dict())
    observer.info(fmt::format("{} is not folded: {}", name, why.as_string()));
}

void record_outcome(Value& record, const TrainOutcome& outcome) {
  const TrainState& state = outcome.state;
  if (state.best_epoch >= 0) {
    record["best"] =
        Dict{{"epoch", state.best_epoch}, {"path", "software/training_ckpts/best.ckpt"}};
    record["best"]["monitor"] = outcome.monitor;
    for (const auto& [name, value] : state.best_figures) record["best"][name] = value;
  }
  if (outcome.run_seconds > 0 && outcome.run_steps > 0)
    // Rates are those of steps alone; the rest of the time is validation and files.
    record["speed"] = Dict{
        {"seconds", outcome.run_seconds},
        {"step_seconds", outcome.step_seconds},
        {"steps_per_second", static_cast<double>(outcome.run_steps) / outcome.step_seconds},
        {"samples_per_second", static_cast<double>(outcome.run_samples) / outcome.step_seconds}};
}

// The single numbers among the metrics, and what they were measured on.
Value figures_of(const Value& evaluation) {
  Dict figures;
  for (const auto& [key, value] : evaluation.as_dict())
    if (value.is_number() || key == "split") figures.set(key, value);
  return figures;
}

// What number formats cut off, on so many training rows as take no time.
void tell_saturation(const Graph& graph, const Dataset& dataset, const std::string& when,
                     const Observer& observer) {
  if (graph.placeholders().size() != 1) return;
  const bool quantized = std::any_of(graph.order().begin(), graph.order().end(), [&](NodeId id) {
    return graph.quantization_of(graph.node(id)).active();
  });
  if (!quantized) return;
  constexpr int64_t most = 256, fewest = 8, work = int64_t{1} << 32;
  const int64_t macs = std::max<int64_t>(1, network_cost(graph, 1).total().macs);
  const int64_t rows = std::min(dataset.train.rows(), std::clamp(work / macs, fewest, most));
  const std::string text = saturation_text(saturations(graph, {dataset.train.samples(0, rows)}));
  if (!text.empty()) observer.warning(fmt::format("{}, on {} training rows, {}", when, rows, text));
}

// The loop's own calls, with the event files between it and the observer.
TrainObserver observed(const Observer& observer, EventLog* events) {
  TrainObserver calls = observer.training;
  if (!calls.stop_requested) calls.stop_requested = observer.cancelled;
  if (!calls.on_notice)
    calls.on_notice = [&observer](const std::string& line) { observer.warning(line); };
  if (!events) return calls;
  calls.on_log = [events, then = calls.on_log](const StepEvent& event) {
    events->on_log(event);
    if (then) then(event);
  };
  calls.on_epoch = [events, then = calls.on_epoch](const EpochEvent& event,
                                                   const Program& program) {
    events->on_epoch(event, program);
    if (then) then(event, program);
  };
  calls.before_checkpoint = [events, then = calls.before_checkpoint] {
    events->flush();
    if (then) then();
  };
  return calls;
}

}  // namespace

TrainResult Experiment::train(const TrainSpec& spec, RunFolder* folder, bool resume) {
  TrainResult result;
  if (folder) result.folder = folder->path();
  if (!processes_->leads()) folder = nullptr;  // the others only read where a resumed run stands
  if (folder) folder->lock();
  const auto train = [&] {
    result.outcome = train_in(spec, folder, resume, result);
    if (folder) finish_training(spec, *folder, result);
  };
  if (folder)
    folder->guard(train);
  else
    train();
  return result;
}

TrainOutcome Experiment::train_in(const TrainSpec& spec, RunFolder* folder, bool resume,
                                  TrainResult& result) {
  const Dataset& dataset = data();
  apply_passes_aloud(folder ? folder->path() + "/software/transform" : "");
  if (network_.loaded && !resume)
    tell_saturation(network_.graph, dataset, "before training", observer_);
  TrainOptions options = spec.options;
  options.batch_size = spec_.batch_size;
  options.threads = spec_.threads;
  options.seed = spec_.seed;
  network_.notes.loss = options.loss;
  network_.notes.loss_options = options.loss_options;
  const Value summary = summary_record(network_.graph, options.batch_size);
  observer_.text(summary_text(summary, network_.graph));
  TrainSession session;
  if (!result.folder.empty()) session.folder = result.folder + "/software";
  session.resume = resume;
  session.notes = {network_.name, preprocessing_to_value(dataset.preprocessing),
                   dataset.class_names, file_contents()["mase"]};
  session.processes = processes_.get();
  if (spec.fold_bn)
    session.fold_batch_norm = [this](Graph& graph) { fold_batch_norms(graph, observer_); };
  std::optional<EventLog> events;
  if (folder) {
    Value& record = folder->record();
    record["model"] =
        Dict{{"name", network_.name}, {"parameters", network_.graph.parameter_count()}};
    record["dataset"] = dataset_record(dataset);
    record["summary"] = summary;
    if (!std::filesystem::exists(folder->initial_graph()) || !resume)
      save_mz(folder->initial_graph(), network_.graph, file_contents());
    record["status"] = "running";
    record.dict().erase("finished");
    folder->save();
    events.emplace(folder->software(), dataset.classification, resume);
  }
  if (observer_.started)
    observer_.started({result.folder, events ? events->version() : "", dataset.classification});
  observer_.info(fmt::format("Training model '{}' on '{}'...", network_.name, dataset.name));
  if (folder && folder->record()["version"].is_string())
    session.notes.version = folder->record()["version"].as_string();
  session.observer = observed(observer_, events ? &*events : nullptr);
  TrainOutcome outcome = mase::train(network_.graph, dataset, options, session);
  if (events) events->flush();
  return outcome;
}

void Experiment::finish_training(const TrainSpec& spec, RunFolder& folder, TrainResult& result) {
  record_outcome(folder.record(), result.outcome);
  const std::string best = folder.checkpoint("best");
  if (result.outcome.status == TrainStatus::finished && std::filesystem::exists(best)) {
    load_into(network_.graph, load_checkpoint(best, CheckpointType::pl), best);
    tell_saturation(network_.graph, data(), "in the best network", observer_);
    Value& record = folder.record();
    Program& program = *result.outcome.evaluation;
    program.load_from(network_.graph);
    record["evaluations"] = Dict{};
    const auto measure = [&](const std::string& split, std::optional<Evaluation>& into) {
      check_split(this->split(split), data(), network_.graph);
      into = evaluate_program(program, split);
      record["evaluation"] = into->record;  // the last one in full, with its curves
      record["evaluations"][split] = figures_of(into->record);
    };
    if (data().validation.rows() > 0) measure("validation", result.validation);
    if (spec.test && data().test.rows() > 0) {
      measure("test", result.test);
      for (const auto& [name, value] : named_figures(*result.test, data().classification))
        record[name] = value;
    }
    const std::string stem = best.substr(0, best.size() - 5);
    if (spec.save_type == "pt") save_state_dict(stem + ".pt", state_dict(network_.graph));
    if (spec.save_type == "safetensors")
      save_safetensors(stem + ".safetensors", state_dict(network_.graph));
    if (!network_.graph.modules().empty()) save_mz(stem + ".mz", network_.graph, file_contents());
  }
  folder.finish(status_name(result.outcome.status));
}

}  // namespace mase
