// SPDX-License-Identifier: Apache-2.0
// The one way a network comes into being: from a built-in name, a description in TOML, or a file
// (.mz, .ckpt, .pt, safetensors), with the file's weights, what its quantisers learned, and what it
// says about the data it was made for.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/run/observer.h"
#include "mase/run/spec.h"

namespace mase {

// What a file of ours says beside the weights; nothing in anybody else's.
struct NetworkNotes {
  std::string model = {};
  std::optional<Preprocessing> preprocessing = {};
  std::vector<std::string> class_names = {};
  Shape sample_shape = {};
  int64_t outputs = 0;
  std::string task = {};                    // "regression": outputs are numbers, not logits
  std::string dataset = {}, identity = {};  // what it was trained on
  std::optional<DataSpec> data = {};        // how those data were asked for
  std::string loss = {};                    // that it was trained with; empty: its task's
  Value loss_options = Dict{};
};
NetworkNotes notes_of(const Checkpoint& checkpoint);
// The "mase" table of a file.
Value notes_value(const NetworkNotes& notes);
// The same for files of other programs, but for where the data lay, which notes_of() takes back;
// and plain JSON for whoever reads them: scaling ("mase.preprocessing"), names ("mase.classes").
std::vector<std::pair<std::string, std::string>> notes_for_others(const NetworkNotes& notes);
NetworkNotes notes_about(const std::string& model, const std::string& task, const DataSpec& data,
                         const Dataset& dataset);

struct Network {
  Graph graph = {};
  std::string name = {};  // "jsc-toy", or what its description or its file calls it
  NetworkNotes notes = {};
  bool loaded = false;                  // it has the file's weights; else random ones
  TensorTable quantizer_state = {};     // the file's, of layers that passes will quantise
  Value extra = {};                     // what an .mz carries beside its graph
  std::vector<std::string> taken = {};  // tensors of the file that were loaded
};

// Whether a word where a network is named is a file or folder that holds one, with its weights.
bool is_network_file(const std::string& word);

// The file that the spec names, or nothing. Its kind is found out from its content. A checkpoint of
// ours describes its network too: it then has a graph, as an .mz has.
std::optional<Checkpoint> open_checkpoint(const NetworkSpec& spec);

// The graph before any weights, as far as it can be built without data: passes are checked on it.
// Nothing if only the data say its shapes.
std::optional<Graph> outline_network(const NetworkSpec& spec,
                                     const std::optional<Checkpoint>& checkpoint,
                                     bool passes_follow);

// `dataset` (null: none) says shapes and classes. `passes_follow`: passes will quantise it, so
// tensors that only quantised layers have wait in `quantizer_state`.
Network make_network(const NetworkSpec& spec, const std::optional<Checkpoint>& checkpoint,
                     const Dataset* dataset, bool passes_follow, const Observer& observer);
// What such a file holds, for whoever needs the graph alone.
Graph graph_of_file(const std::string& path, const std::vector<Shape>& input_shapes = {});
// After the passes: what the quantisers of the file had learned.
void take_quantizer_state(Network& network, const Observer& observer);

// The registered model that has exactly these tensors; "" if none has.
std::string guess_model(const TensorTable& tensors);

}  // namespace mase
