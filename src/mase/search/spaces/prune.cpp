// SPDX-License-Identifier: Apache-2.0
// graph/prune: which share of each layer's weights is removed, and how they are chosen. Keys are
// those of the prune pass. The table `all` is one setting for the whole network, where a global
// scope weighs layers against each other.
//   [search.search_space.seed.linear.config]
//   sparsity = [0.0, 0.25, 0.5, 0.75]
#include "mase/ir/layer_text.h"
#include "mase/passes/pass.h"
#include "mase/search/spaces/candidate.h"

namespace mase::prune_space {
namespace {

using namespace search;

const std::vector<std::string> keys = {"sparsity", "scope", "granularity", "method"};

struct Key {
  std::string name;
  Value fixed;
  int parameter = -1;
};

struct Layer {
  std::string node;  // empty: the whole network
  std::vector<Key> keys = {};
};

class PruneSpace final : public SpacePart {
 public:
  PruneSpace(const SpaceSetup& setup, Problems& problems) {
    const Graph& graph = setup.graph;
    const auto takes = [&](const Node& node) {
      return graph.module_of(node) && op_of(graph, node)->multiplies_weights();
    };
    if (const Value* all = setup.seed.as_dict().find("all")) {
      if (setup.seed.as_dict().size() > 1)
        problems.add(Error(all->position(), setup.path,
                           "'all' is one setting for the network: other tables have no meaning "
                           "beside it"));
      else if (!all->is_dict() || !(*all)["config"].is_dict())
        problems.add(Error(all->position(), setup.path + ".all", "'config' is missing"));
      else
        add_layer("", (*all)["config"], setup.path + ".all.config", problems);
    } else {
      for (const SeededNode& seeded :
           seeded_nodes(setup, takes, "multiplies by a weight", unused_, problems))
        add_layer(graph.node(seeded.node).name, seeded.config, seeded.path, problems);
    }
    if (problems.empty()) check(graph, setup.path, problems);
  }

  void apply(const Point& point, const CandidateUse& use, Candidate& candidate) const override {
    PassContext context;
    context.seed = use.seed;
    for (const Value& call : passes(point)) {
      Dict arguments = call.as_dict();
      arguments.erase("name");
      run_pass(candidate.graph, "prune", arguments, context);
    }
  }

  Dict sampled_config(const Point& point) const override {
    Dict all;
    for (const Layer& layer : layers_)
      all.set(layer.node.empty() ? "all" : layer.node, Dict{{"config", config(layer, point)}});
    return all;
  }

  List passes(const Point& point) const override {
    List calls;
    for (const Layer& layer : layers_) {
      Dict call{{"name", "prune"}, {"weight", config(layer, point)}};
      if (!layer.node.empty()) {
        call.set("by", "name");
        call.set("target_nodes", List{Value(layer.node)});
      }
      calls.emplace_back(std::move(call));
    }
    return calls;
  }

 private:
  Dict config(const Layer& layer, const Point& point) const {
    Dict chosen;
    for (const Key& key : layer.keys) {
      if (key.parameter < 0) {
        chosen.set(key.name, key.fixed);
      } else {
        const auto index = static_cast<size_t>(key.parameter);
        chosen.set(key.name, space_.parameters()[index].distribution.external(point[index]));
      }
    }
    return chosen;
  }

  void add_layer(const std::string& node, const Value& config, const std::string& path,
                 Problems& problems) {
    if (means_none(choices_of(config["name"]).front()) && config.as_dict().size() == 1 &&
        config.as_dict().contains("name"))
      return;  // name = ["NA"]: this layer stays as it is
    Layer layer{node};
    for (const auto& [key, value] : config.as_dict()) {
      const List choices = choices_of(value);
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                           suggestion(key, keys))
                         .as(Mistake::unknown_key));
      } else if (choices.empty()) {
        problems.add(Error(value.position(), path + "." + key, "the list is empty"));
      } else if (choices.size() == 1) {
        layer.keys.push_back({key, choices[0], -1});
      } else {
        const std::string name = (node.empty() ? "all" : node) + "/config/" + key;
        layer.keys.push_back(
            {key,
             {},
             static_cast<int>(space_.add({name, Distribution::categorical(choices, path)}))});
      }
    }
    layers_.push_back(std::move(layer));
  }

  void check(const Graph& graph, const std::string& path, Problems& problems) const {
    for (const Point& point : covering_points(space_)) {
      std::vector<PassCall> calls;
      for (const Value& call : passes(point)) {
        Dict arguments = call.as_dict();
        arguments.erase("name");
        calls.push_back({"prune", arguments, path});
      }
      try {
        prepare_passes(graph, calls);
      } catch (const Error& error) {
        problems.add(error);
        return;
      }
    }
  }

  std::vector<Layer> layers_;
};

const Register<SpaceRecord> registered{{
    .name = "graph/prune",
    .aliases = {"prune", "prune/iterative"},
    .summary = "share of weights removed per layer",
    .keys =
        [] {
          std::vector<std::string> all = keys;
          all.emplace_back("name");
          return all;
        },
    .make = [](const SpaceSetup& setup,
               Problems& problems) { return std::make_unique<PruneSpace>(setup, problems); },
}};

}  // namespace
}  // namespace mase::prune_space
