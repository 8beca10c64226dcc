// SPDX-License-Identifier: Apache-2.0
// KANELE's truth_tables.json (Duchstf/KANELE): a table of whole numbers for every edge of a
// network,
//   "LAYER_IN_OUT": {"acive": 0 or 1, "values_int": [...]}
// (its spelling) with a value for each code of the input, the least one first. A neuron is the sum
// of its edges, which the next layer clamps to its codes; all numbers have one scale. It becomes
// layers `table_linear`, an edge that is not active one of no bits.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "mase/base/text.h"
#include "mase/io/networks/importer.h"
#include "mase/ir/op.h"

namespace mase::truth_tables_importer {
namespace {

constexpr int64_t most_layers = 64, most_features = 1 << 16, most_edges = 1 << 24;
constexpr int64_t most_entries = 256, most_value = 1 << 19;
constexpr int64_t most_heights = 1 << 26;  // of a layer

struct Layer {
  int64_t in = 0, out = 0, edges = 0, active = 0;
  size_t entries = 0;
};

struct Edge {
  int64_t layer, in, out;
};

Edge edge_of(const std::string& key, const std::string& path) {
  const std::vector<std::string> words = split(key, '_');
  std::vector<int64_t> numbers;
  for (const std::string& word : words)
    if (const std::optional<int64_t> number = parse_integer(word)) numbers.push_back(*number);
  if (words.size() != 3 || numbers.size() != 3 || numbers[0] < 0 || numbers[1] < 0 ||
      numbers[2] < 0 || numbers[0] >= most_layers || numbers[1] >= most_features ||
      numbers[2] >= most_features)
    throw Error(path, fmt::format("'{}' is no edge", printable(key)), "an edge is LAYER_IN_OUT");
  return {numbers[0], numbers[1], numbers[2]};
}

bool is_active(const Value& edge, const std::string& place) {
  const Value& flag = edge["acive"].is_null() ? edge["active"] : edge["acive"];
  if (flag.is_bool()) return flag.as_bool();
  const int64_t number = flag.as_int("acive");
  if (number != 0 && number != 1)
    throw Error(place, fmt::format("acive is {}, not 0 or 1", number));
  return number == 1;
}

// Sizes first: nothing is made room for before the file is known to fill it.
std::vector<Layer> layers_of(const Value& file, const std::string& path) {
  std::vector<Layer> layers;
  for (const auto& [key, value] : file.as_dict(path)) {
    const Edge edge = edge_of(key, path);
    const std::string place = fmt::format("{}: {}", path, key);
    const List& entries = value["values_int"].as_list(place);
    if (edge.layer >= static_cast<int64_t>(layers.size()))
      layers.resize(static_cast<size_t>(edge.layer) + 1);
    Layer& layer = layers[static_cast<size_t>(edge.layer)];
    layer.in = std::max(layer.in, edge.in + 1);
    layer.out = std::max(layer.out, edge.out + 1);
    ++layer.edges;
    layer.active += is_active(value, place);
    if (layer.entries == 0) layer.entries = entries.size();
    if (entries.size() != layer.entries || entries.size() < 2 || entries.size() > most_entries ||
        !std::has_single_bit(entries.size()))
      throw Error(
          place, fmt::format("has {} values; those of a layer are 2, 4, ... or {}, and as many for "
                             "each edge",
                             entries.size(), most_entries));
  }
  if (layers.empty()) throw Error(path, "has no edges");
  for (size_t n = 0; n < layers.size(); ++n) {
    const Layer& layer = layers[n];
    // Keys are different, so that as many as there must be are all of them.
    if (layer.in * layer.out > most_edges || layer.edges != layer.in * layer.out)
      throw Error(
          path, fmt::format("layer {} has {} of {} tables", n, layer.edges, layer.in * layer.out));
    if (n > 0 && layer.in != layers[n - 1].out)
      throw Error(path, fmt::format("layer {} takes {} features, the layer before gives {}", n,
                                    layer.in, layers[n - 1].out));
    if (layer.edges * static_cast<int64_t>(layer.entries) > most_heights)
      throw Error(path, fmt::format("layer {} has more than {} values", n, most_heights));
  }
  return layers;
}

// Codes of two's complement, and the plain bit as the lowest of two.
int width_of(const Layer& layer) {
  return std::max(2, static_cast<int>(std::bit_width(layer.entries)) - 1);
}

ImportedNetwork read(const std::string& path, const Value&) {
  const Value file = read_json(path);
  const std::vector<Layer> layers = layers_of(file, path);
  ImportedNetwork result;
  result.integers = true;
  Graph& graph = result.graph;
  graph.name = std::filesystem::path(path).stem().string();
  std::vector<Module> modules;
  for (size_t n = 0; n < layers.size(); ++n) {
    const Layer& layer = layers[n];
    const int width = width_of(layer);
    modules.push_back(make_module("table_linear",
                                  Dict{{"in_features", layer.in},
                                       {"out_features", layer.out},
                                       {"knots", int64_t{1} << width},
                                       {"input_width", width},
                                       {"input_frac", 0},
                                       {"output_frac", 0},
                                       {"rounded", true}},
                                  0, fmt::format("layer{}", n)));
    for (const char* name : {"heights", "edge_bits", "edge_frac"}) {
      Tensor& tensor = *modules.back().find(name);
      std::fill_n(tensor.mutable_data<float>(), tensor.numel(), 0.0F);
    }
  }
  for (const auto& [key, value] : file.as_dict(path)) {
    const Edge edge = edge_of(key, path);
    const std::string place = fmt::format("{}: {}", path, key);
    if (!is_active(value, place)) continue;
    const Layer& layer = layers[static_cast<size_t>(edge.layer)];
    Module& module = modules[static_cast<size_t>(edge.layer)];
    const int width = width_of(layer);
    const int64_t index = edge.out * layer.in + edge.in;
    module.find("edge_bits")->mutable_data<float>()[index] = static_cast<float>(width);
    float* const heights = module.find("heights")->mutable_data<float>() + (index << width);
    const List& entries = value["values_int"].as_list(place);
    for (int64_t code = 0; code < int64_t{1} << width; ++code) {
      const int64_t entry =
          entries[static_cast<size_t>(code) & (entries.size() - 1)].as_int("values_int");
      if (entry < -most_value || entry > most_value)
        throw Error(place, fmt::format("the value {} is beyond {}", entry, most_value));
      heights[code] = static_cast<float>(entry);
    }
  }
  NodeId last = graph.add_placeholder("x", {layers[0].in});
  std::vector<std::string> active, bits;
  for (size_t n = 0; n < layers.size(); ++n) {
    last = graph.add_module(fmt::format("layer{}", n), std::move(modules[n]), {last});
    active.push_back(fmt::format("{} of {}", layers[n].active, layers[n].edges));
    bits.push_back(std::to_string(std::bit_width(layers[n].entries) - 1));
  }
  graph.add_output({last});
  result.notes.push_back(fmt::format("tables: {}, of {} bits; inputs are codes", join(active, ", "),
                                     join(bits, ", ")));
  return result;
}

// {"0_0_0": ...
bool recognizes(std::span<const std::byte> start) {
  std::string text;
  for (const std::byte byte : start.first(std::min<size_t>(start.size(), 64)))
    if (const char c = static_cast<char>(byte); c != ' ' && c != '\n' && c != '\r' && c != '\t')
      text += c;
  const size_t end = text.find('"', 2);
  if (!starts_with(text, "{\"") || end == std::string::npos) return false;
  const std::string key = text.substr(2, end - 2);
  return std::count(key.begin(), key.end(), '_') == 2 &&
         key.find_first_not_of("0123456789_") == std::string::npos;
}

const Register<ImporterRecord> registered{{
    .name = "truth_tables",
    .summary = "KANELE's truth_tables.json: a table of whole numbers for every edge",
    .suffixes = {".json"},
    .recognizes = recognizes,
    .read = read,
}};

}  // namespace
}  // namespace mase::truth_tables_importer
