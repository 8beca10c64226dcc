// SPDX-License-Identifier: Apache-2.0
// Networks of Hugging Face folders: what a config.json describes, as a graph with the parameter
// names of the folder's own files. A family of networks is one record, in a file of its own in
// architectures/; hf_network.h is what they build with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/ir/graph.h"

namespace mase {

class HfNetwork;

// What GGUF files call such a network's settings and tensors (models/gguf.h).
struct GgufNames {
  struct Key {
    std::string gguf, hf;  // "embedding_length", "hidden_size"
    bool required = true;
  };
  std::string architecture = {};  // general.architecture; empty: there are no such files
  std::vector<Key> keys = {};
  // Parts of names, without ".weight" and ".bias"; # is the number of a layer.
  std::vector<std::pair<std::string, std::string>> tensors = {};
  // Layers of queries and keys whose rows lie in pairs: those that turn together are neighbours.
  std::vector<std::string> paired = {};
  std::vector<std::string> turned = {};  // stored the other way round in folders
};

struct ArchitectureRecord {
  static constexpr const char* kind = "architecture";
  std::string name;  // config.json's model_type
  std::vector<std::string> aliases = {};
  std::string summary;
  // Of the network, in the order of its own arguments. The first one must be given.
  std::vector<std::string> inputs;
  bool causal = false;  // predicts the next token
  std::function<void(HfNetwork& net)> build;
  GgufNames gguf = {};
};

struct HfOptions {
  // Of what it is to take, without the rows: one for each input, in the record's order, or fewer.
  std::vector<Shape> shapes = {};
  int64_t outputs = 0;  // classes; 0: as the folder says
  // Decoding, one token at a time: buffers of the graph hold keys and values of so many positions
  // (cache_name below), and position_ids says where the new token stands.
  int64_t cached = 0;
  // A prompt: keys and values of all positions are outputs too, of each layer in turn, and logits
  // are those of the last token only.
  bool keeps = false;
  // The only input are rows that hold more than token numbers: a negative one is padding, which
  // nothing attends to, and those from this on are of a second sentence and so much too large.
  std::optional<int64_t> packed = {};
  // With the head for classes of whole rows, whatever the folder's own one is.
  bool classify = false;
};

// `tensors` are the folder's and become those that the graph wants: what carries no weights
// (position_ids, masks) and copies of tied ones are taken out, layers that are stored the other way
// round are turned. Sizes that the tensors do not have are an error, before memory is taken for
// them. Graph::meta has "hf": the config, what was turned, and notes for the user.
Graph make_hf_network(const Value& config, TensorTable& tensors, const HfOptions& options,
                      const std::string& place);

// An Error of one line where these tensors, as make_hf_network leaves them, are not the graph's.
void check_hf_tensors(const Graph& graph, const TensorTable& tensors, const std::string& place);

// The buffer of a layer's cache: keys [heads, width, positions], values [heads, positions, width].
std::string cache_name(bool keys, int64_t layer);

// Whether this is a graph of make_hf_network, and its config.
bool is_hf_graph(const Graph& graph);
const Value& hf_config(const Graph& graph);
std::vector<std::string> hf_notes(const Graph& graph);
// The tensors of such a graph as its folder stores them.
TensorTable hf_tensors(const Graph& graph);
// The same network with the same weights and number formats for other inputs.
Graph resized_hf_network(const Graph& graph, const HfOptions& options);

}  // namespace mase
