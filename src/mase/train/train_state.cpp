// SPDX-License-Identifier: Apache-2.0
// The position of a run as plain values, for checkpoints.
#include "mase/train/trainer.h"

namespace mase {
namespace {

Value optional_number(const std::optional<double>& number) {
  return number ? Value(*number) : Value();
}

std::optional<double> number_or_nothing(const Value& value) {
  if (value.is_null()) return {};
  return value.as_double();
}

}  // namespace

const char* status_name(TrainStatus status) {
  switch (status) {
    case TrainStatus::finished:
      return "finished";
    case TrainStatus::interrupted:
      return "interrupted";
    case TrainStatus::diverged:
      return "diverged";
  }
  return "failed";
}

Value TrainState::to_value() const {
  return Dict{{"epoch", epoch},
              {"batch", batch},
              {"step", step},
              {"seconds", seconds},
              {"loss_sum", loss_sum},
              {"loss_weight", loss_weight},
              {"hits", hits},
              {"rows", rows},
              {"best_loss", optional_number(best_loss)},
              {"best_accuracy", optional_number(best_accuracy)},
              {"best_monitored", optional_number(best_monitored)},
              {"best_figures", best_figures},
              {"best_epoch", best_epoch},
              {"stale_epochs", stale_epochs},
              {"csv_bytes", csv_bytes},
              {"jsonl_bytes", jsonl_bytes},
              {"folded_at", folded_at},
              {"done", done}};
}

TrainState TrainState::from_value(const Value& value, const std::string& place) {
  if (!value.is_dict())
    throw Error(place, "holds no position to continue from", "give a run that ch train wrote");
  TrainState state;
  const auto count = [&](const char* key) {
    const int64_t number = value[key].as_int(key);
    const bool may_be_none = key == std::string("best_epoch") || key == std::string("folded_at");
    if (number < (may_be_none ? -1 : 0))
      throw Error(place, fmt::format("{} is {}", key, number), "the file is damaged");
    return number;
  };
  state.epoch = count("epoch");
  state.batch = count("batch");
  state.step = count("step");
  state.seconds = value["seconds"].as_double("seconds");
  state.loss_sum = value["loss_sum"].as_double("loss_sum");
  if (value.as_dict().contains("rows")) {  // not in runs of earlier versions
    state.hits = count("hits");
    state.rows = count("rows");
  }
  state.loss_weight = value["loss_weight"].is_null() ? static_cast<double>(state.rows)
                                                     : value["loss_weight"].as_double();
  state.best_monitored = number_or_nothing(value["best_monitored"]);
  if (value["best_figures"].is_dict()) state.best_figures = value["best_figures"].as_dict();
  state.best_loss = number_or_nothing(value["best_loss"]);
  state.best_accuracy = number_or_nothing(value["best_accuracy"]);
  state.best_epoch = count("best_epoch");
  state.stale_epochs = count("stale_epochs");
  state.csv_bytes = count("csv_bytes");
  state.jsonl_bytes = count("jsonl_bytes");
  if (!value["folded_at"].is_null()) state.folded_at = count("folded_at");
  state.done = value["done"].as_bool("done");
  return state;
}

std::optional<Preprocessing> preprocessing_of(const Checkpoint& checkpoint) {
  if (!checkpoint.contents.is_dict()) return {};
  const Value& ours = checkpoint.contents["mase"];
  if (!ours.is_dict() || !ours["preprocessing"].is_dict()) return {};
  return preprocessing_from_value(ours["preprocessing"]);
}

}  // namespace mase
