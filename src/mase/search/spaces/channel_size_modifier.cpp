// SPDX-License-Identifier: Apache-2.0
// graph/quantize/channel_size_modifier: how many channels each layer has, as the labs search it.
//   [search.search_space.seed.seq_blocks_2.config]
//   name = ["output_only"]            # or "both"; "input_only" follows the layer before it
//   channel_multiplier = [1, 2, 4]    # or channels = [16, 32, 64]
#include <cmath>

#include "mase/base/text.h"
#include "mase/passes/channels.h"
#include "mase/search/spaces/candidate.h"

namespace mase::channel_size_modifier_space {
namespace {

using namespace search;

// Copies of a channel start a little apart, so that training can tell them apart.
constexpr double training_noise = 0.05;

constexpr const char* keys[] = {
    "name", "channel_multiplier", "channel_multiplier_output", "channels", "parent", "prev_link"};

struct Layer {
  std::string node, name, key;  // key: channel_multiplier or channels
  int64_t channels = 0;         // of the original
  Value fixed;                  // the only choice
  int parameter = -1;
};

class ChannelSpace final : public SpacePart {
 public:
  ChannelSpace(const SpaceSetup& setup, Problems& problems) {
    const Graph& graph = setup.graph;
    const auto takes = [&](const Node& node) { return output_channels(graph, node) > 0; };
    for (const SeededNode& seeded :
         seeded_nodes(setup, takes, "multiplies by a weight", unused_, problems))
      add_layer(graph, seeded, problems);
    if (problems.empty()) check(graph, setup.path, problems);
  }

  void apply(const Point& point, const CandidateUse& use, Candidate& candidate) const override {
    ResizeOptions options;
    options.keep_weights = use.warm_start;
    options.noise = use.trained ? training_noise : 0;
    options.seed = use.seed;
    candidate.graph = resize_channels(candidate.graph, outputs(point), options);
  }

  Dict sampled_config(const Point& point) const override {
    Dict all;
    for (const Layer& layer : layers_)
      all.set(layer.node,
              Dict{{"config", Dict{{"name", layer.name}, {layer.key, value(layer, point)}}}});
    return all;
  }

  List passes(const Point& point) const override {
    Dict call{{"name", "resize_channels"}};
    for (auto& [node, rule] : sampled_config(point)) call.add(node, rule);
    return {Value(std::move(call))};
  }

 private:
  Value value(const Layer& layer, const Point& point) const {
    if (layer.parameter < 0) return layer.fixed;
    const auto index = static_cast<size_t>(layer.parameter);
    return space_.parameters()[index].distribution.external(point[index]);
  }

  std::map<std::string, int64_t> outputs(const Point& point) const {
    std::map<std::string, int64_t> sizes;
    for (const Layer& layer : layers_) {
      const Value chosen = value(layer, point);
      sizes[layer.node] =
          layer.key == "channels"
              ? chosen.as_int()
              : std::llround(static_cast<double>(layer.channels) * chosen.as_double());
    }
    return sizes;
  }

  void add_layer(const Graph& graph, const SeededNode& seeded, Problems& problems) {
    const Node& node = graph.node(seeded.node);
    Schema schema;
    for (const char* key : keys) schema.fields.push_back({.name = key});
    const size_t before = problems.errors().size();
    const Value config = validate(seeded.config, schema, seeded.path, problems);
    check_feeder(graph, node, config, seeded.path, problems);
    const List names = config["name"].is_null() ? List{} : choices_of(config["name"]);
    if (names.size() != 1 || (!means_none(names[0]) && !names[0].is_string())) {
      problems.add(Error(seeded.config.position(), seeded.path + ".name", "one word is wanted",
                         "write name = [\"output_only\"]"));
      return;
    }
    const std::string name = means_none(names[0]) ? "NA" : names[0].as_string();
    if (name == "NA" || name == "input_only") return;  // inputs follow the layers that feed them
    if (name != "output_only" && name != "both")
      problems.add(Error(config["name"].position(), seeded.path + ".name",
                         fmt::format("unknown kind '{}'", printable(name)),
                         "known: output_only, both, input_only, NA")
                       .as(Mistake::unknown_name));
    Layer layer{node.name, name, {}, output_channels(graph, node), {}, -1};
    const Value* list = nullptr;
    for (const char* key : {"channel_multiplier", "channel_multiplier_output", "channels"})
      if (const Value* given = seeded.config.as_dict().find(key)) {
        if (list)
          problems.add(Error(given->position(), seeded.path + "." + key,
                             "the channels are given twice", "keep one of the lists"));
        list = given;
        layer.key = std::string(key) == "channels" ? key : "channel_multiplier";
      }
    if (!list)
      problems.add(Error(seeded.config.position(), seeded.path, "says no numbers of channels",
                         "write channel_multiplier = [1, 2, 4]"));
    if (problems.errors().size() != before) return;
    const List choices = choices_of(*list);
    if (choices.empty())
      problems.add(Error(list->position(), seeded.path + "." + layer.key, "the list is empty"));
    for (const Value& choice : choices) {
      const bool whole = layer.key == "channels";
      const double number = choice.is_number() ? choice.as_double() : 0;
      const double size = whole ? number : number * static_cast<double>(layer.channels);
      if (!(whole ? choice.is_int() : choice.is_number()) || !(size >= 0.5) || size > 1e6)
        problems.add(Error(list->position(), seeded.path + "." + layer.key,
                           fmt::format("{} is no {}", python_repr(choice),
                                       whole ? "number of channels" : "factor"),
                           "give positive numbers"));
    }
    if (problems.errors().size() != before) return;
    if (!seeded.by_name && !can_change(graph, node.name, layer.channels)) return;
    if (choices.size() == 1)
      layer.fixed = choices[0];
    else
      layer.parameter = static_cast<int>(
          space_.add({node.name + "/config/" + layer.key,
                      Distribution::categorical(choices, seeded.path + "." + layer.key)}));
    layers_.push_back(std::move(layer));
  }

  // The labs' files say which layer feeds this one; the graph knows, and must agree.
  static void check_feeder(const Graph& graph, const Node& node, const Value& config,
                           const std::string& path, Problems& problems) {
    for (const char* key : {"parent", "prev_link"}) {
      if (config[key].is_null()) continue;
      for (const Value& name : choices_of(config[key])) {
        if (means_none(name)) continue;
        NodeId source = graph.inputs_of(node.id).front();
        while (output_channels(graph, graph.node(source)) < 0 && !graph.inputs_of(source).empty())
          source = graph.inputs_of(source).front();
        const std::string& feeder = graph.node(source).name;
        if (!name.is_string() || name.as_string() != feeder)
          problems.add(Error(config[key].position(), path + "." + key,
                             fmt::format("{} is fed by '{}'", node.name, feeder),
                             "name that layer, or leave the key out"));
      }
    }
  }

  // A rule for many layers leaves those alone whose channels are the network's outputs.
  static bool can_change(const Graph& graph, const std::string& node, int64_t channels) {
    try {
      resize_channels(graph, {{node, channels + 1}}, {.keep_weights = false});
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // Each number of each layer once, so that a mistake is told before the search begins.
  void check(const Graph& graph, const std::string& path, Problems& problems) const {
    for (const Point& point : covering_points(space_)) {
      try {
        resize_channels(graph, outputs(point), {.keep_weights = false});
      } catch (const Error& error) {
        problems.add(Error(path + "." + error.place(), error.cause(), error.remedy()));
        return;
      }
    }
  }

  std::vector<Layer> layers_;
};

const Register<SpaceRecord> registered{{
    .name = "graph/quantize/channel_size_modifier",
    .aliases = {"graph/channels", "channel_multiplier_search",
                "transform/linear_channel_multiplier"},
    .summary = "channels per layer",
    .telling_key = "channel_multiplier",
    .keys = [] { return std::vector<std::string>(std::begin(keys), std::end(keys)); },
    .make = [](const SpaceSetup& setup,
               Problems& problems) { return std::make_unique<ChannelSpace>(setup, problems); },
}};

}  // namespace
}  // namespace mase::channel_size_modifier_space
