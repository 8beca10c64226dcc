// SPDX-License-Identifier: Apache-2.0
// graph/quantize/mixed_precision_ptq: number formats per layer as a search space. A seed gives
// lists of values for each key of a layer's config; every layer that the seed names, by op, by node
// name or by expression, has parameters of its own, called node/config/key as in MASE.
//   [search.search_space.seed.linear.config]
//   name = ["integer"]
//   weight_width = [2, 4, 8]
//   weight_frac_width = ["NA"]       # half of the width
#pragma once

#include <string>
#include <vector>

#include "mase/passes/quantize_plan.h"
#include "mase/search/spaces/candidate.h"

namespace mase::search {

class QuantizeSpace final : public SpacePart {
 public:
  // Every mistake is added: keys that no format has, values that no format takes, seeds for nodes
  // that are not there.
  QuantizeSpace(const SpaceSetup& setup, Problems& problems);
  static std::vector<std::string> keys();  // of any format, for any operand

  const QuantizeSpace* formats() const override { return this; }
  void apply(const Point& point, const CandidateUse& use, Candidate& candidate) const override;
  Dict sampled_config(const Point& point) const override;
  List passes(const Point& point) const override;

  // The arguments of the quantize pass: by name, one table per layer.
  Value pass_arguments(const Point& point) const;
  // The layers' quantisation for a point, ready to be set.
  std::vector<PlannedNode> plan(const Graph& graph, const Point& point) const;

 private:
  struct Key {
    std::string name;                       // "weight_width"
    Value fixed;                            // the only value, or the first where it is not searched
    int parameter = -1;                     // in the space; -1: fixed
    std::vector<std::string> formats = {};  // that have it; empty: all
  };
  struct Layer {
    std::string node;
    std::vector<Key> keys;  // `name` first
  };
  void add_layer(const Graph& graph, NodeId node, const Value& config, const std::string& path,
                 Problems& problems);
  void check(const Graph& graph, const std::string& path, Problems& problems) const;

  std::vector<Layer> layers_;
};

}  // namespace mase::search
