// SPDX-License-Identifier: Apache-2.0
// Checkpoints of every kind behind one interface: PyTorch's .pt/.pth, Lightning's .ckpt,
// safetensors, our own .mz, ONNX, and a Hugging Face folder. Reading never runs code; see pickle.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mase/io/read_limits.h"
#include "mase/ir/graph.h"

namespace mase {

enum class CheckpointType { pt, pl, mz, hf, safetensors, onnx };
std::optional<CheckpointType> checkpoint_type_from_name(const std::string& name);
const char* checkpoint_type_name(CheckpointType type);
std::vector<std::string> checkpoint_type_names();

struct Checkpoint {
  CheckpointType type = CheckpointType::pt;
  TensorTable tensors;         // network tensors by "<path>.<name>", Lightning's "model." removed
  std::string prefix;          // what was removed ("model.")
  TensorTable others;          // optimiser state and the like, by dotted path in the file
  Value contents;              // everything else as plain values
  std::optional<Graph> graph;  // .mz and .onnx
};

// `type` none: guessed from the content. `input_shapes`: of what the network is to take, with the
// batch in front (0: any), for files that leave sizes open.
Checkpoint load_checkpoint(const std::string& path, std::optional<CheckpointType> type = {},
                           const ReadLimits& limits = {},
                           const std::vector<Shape>& input_shapes = {});

// The same for looking into: files without a network are taken too.
Checkpoint inspect_checkpoint(const std::string& path, const ReadLimits& limits = {});

struct LoadReport {
  std::vector<std::string> taken, missing, unexpected, mismatched;
};
// Puts the tensors into the graph. Strict: any missing, unexpected or wrongly shaped tensor is an
// Error that lists them beside the nearest names; `partial` takes what fits instead.
//
//   checkpoint has 'model.seq_blocks.2.weight' [8, 16]; the network jsc-10x wants [60, 16]
//
// `guess` names the network the checkpoint's tensors belong to ("" if none is known), for the
// message. The graph may be quantised or not, whichever the checkpoint was.
using ModelGuess = std::function<std::string(const TensorTable& tensors)>;
LoadReport load_into(Graph& graph, const Checkpoint& checkpoint, const std::string& path,
                     bool partial = false, const ModelGuess& guess = {});

// Lightning layout (a zip holding a pickle that torch.load(weights_only=True) opens): state_dict
// keys are "model.<path>". `extra` and `extra_tensors` travel beside it (optimiser state, schedule,
// random state, preprocessing). Written atomically.
void save_lightning(const std::string& path, const TensorTable& state, const Value& extra = {},
                    const TensorTable& extra_tensors = {});
void save_state_dict(const std::string& path, const TensorTable& state);  // plain .pt
void save_safetensors(const std::string& path, const TensorTable& tensors,
                      const Dict& metadata = {});
TensorTable load_safetensors(const std::string& path, Dict* metadata = nullptr);

// Our own whole-graph file, a zip of readable JSON and safetensors: nodes, metadata, quantisation,
// masks, weights, and `extra`, which comes back in Checkpoint::contents.
void save_mz(const std::string& path, const Graph& graph, const Value& extra = {});

}  // namespace mase
