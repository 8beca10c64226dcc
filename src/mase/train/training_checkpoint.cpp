// SPDX-License-Identifier: Apache-2.0
#include "mase/train/training_checkpoint.h"

#include "mase/base/text.h"
#include "mase/engine/kernels/instruction_set.h"

namespace mase {
namespace {

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

Value augmentation_to_value(const Augmentation& augmentation) {
  return Dict{{"flip", augmentation.flip}, {"crop", augmentation.crop}};
}

// What differs between the two tables of what bits depend on, as a sentence; empty if nothing does
// or `before` is none.
std::string difference_of_makers(const Value& before, const Dict& now) {
  if (!before.is_dict()) return "";
  std::vector<std::string> differences;
  for (const auto& [name, mine] : now) {
    const Value& then = before[name];
    if (then == mine) continue;
    differences.push_back(
        fmt::format("{} {}, was {}", replace_all(name, "_", " "),
                    mine.is_int() ? std::to_string(mine.as_int()) : mine.as_string(),
                    then.is_int()      ? std::to_string(then.as_int())
                    : then.is_string() ? printable(then.as_string())
                                       : "unknown"));
  }
  if (differences.empty()) return "";
  return fmt::format(
      "resumed elsewhere ({}): its last bits may differ from those of a run that "
      "was not interrupted",
      join(differences, "; "));
}

}  // namespace

TrainingCheckpoint::TrainingCheckpoint(const Dataset& dataset, const TrainOptions& options,
                                       const CheckpointNotes& notes, int processes)
    : run_{{"format", 1},
           {"made_by", Dict{{"version", notes.version},
                            {"instruction_set", instruction_set()},
                            {"processes", processes}}},
           {"optimizer", options.optimizer},
           {"seed", static_cast<int64_t>(options.seed)},
           {"model", notes.model},
           {"classes", Value::of(notes.class_names)},
           {"sample_shape", Value::of(dataset.sample_shape())},
           {"outputs", dataset.outputs()},
           {"dataset", dataset.name},
           {"dataset_identity", dataset.identity},
           {"augmentation", augmentation_to_value(dataset.augmentation)},
           {"preprocessing", notes.preprocessing}},
      dataset_(dataset.name) {
  if (notes.more.is_dict())
    for (const auto& [key, value] : notes.more.as_dict()) run_.set(key, value);
}

void TrainingCheckpoint::describe(const Graph& graph) {
  run_.set("graph", network_description(graph));
}

void TrainingCheckpoint::write(const std::string& path, const TrainingMoment& moment) const {
  TensorTable tensors = moment.optimizer;
  List indices;
  for (int64_t i = 0; i < moment.parameters; ++i) indices.emplace_back(i);
  tensors.emplace_back("optimizer_states.0.param_groups.0.lr",
                       Tensor::of<double>({}, std::vector<double>{moment.learning_rate}));
  Dict ours = run_;
  ours.set("state", moment.state.to_value());
  // Numbers travel as tensors and our own table as JSON text: PyTorch 1.13's weights_only reader
  // knows no floating-point opcode.
  const Value extra =
      Dict{{"epoch", moment.state.epoch},
           {"global_step", moment.state.step},
           {"optimizer_states",
            List{Dict{{"state", Dict()}, {"param_groups", List{Dict{{"params", indices}}}}}}},
           {"mase", to_json(ours)}};
  save_lightning(path, moment.weights, extra, tensors);
}

TrainState TrainingCheckpoint::position(const Checkpoint& checkpoint, const std::string& path,
                                        std::string& notice) const {
  const Value& ours = checkpoint.contents["mase"];
  const TrainState state = TrainState::from_value(ours.is_dict() ? ours["state"] : Value(), path);
  notice = difference_of_makers(ours["made_by"], run_.at("made_by").as_dict());
  if (ours["optimizer"].as_string("mase.optimizer") != run_.at("optimizer").as_string())
    throw Error(path, "was written with another optimiser", "resume with the options of the run");
  if (ours["dataset_identity"].as_string("mase.dataset_identity") !=
      run_.at("dataset_identity").as_string())
    throw Error(path, fmt::format("was trained on other data than {} holds now", dataset_),
                "put the data back as they were, or start a new run with --load");
  // Runs of earlier versions do not say.
  if (!ours["augmentation"].is_null() && ours["augmentation"] != run_.at("augmentation"))
    throw Error(path,
                "saw its images flipped or moved by other options (--dataset-flip, "
                "--dataset-crop)",
                "resume with the options of the run");
  return state;
}

}  // namespace mase
