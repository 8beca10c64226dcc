// SPDX-License-Identifier: Apache-2.0
// What a quantize table means for a graph, before anything is changed: for every node the rule that
// takes it and the formats it would get, or why it is left alone. The pass applies the plan,
// --dry-run prints it, and every mistake in the table is found while making it.
#pragma once

#include <any>
#include <string>
#include <vector>

#include "mase/ir/graph.h"
#include "mase/ir/op.h"
#include "mase/ir/quantization.h"
#include "mase/passes/pass.h"

namespace mase {

struct PlannedNode {
  NodeId node = -1;
  std::string rule;           // "linear", "default"
  Quantization quantization;  // what it would get; config null when left alone
  std::string reason;         // why it is left alone
  bool changes() const { return !quantization.config.is_null(); }
};

// by, default, and one open table per op, node name or expression.
Schema quantize_schema();

std::vector<PlannedNode> plan_quantize(const Graph& graph, const Value& args,
                                       const std::string& path, Problems& problems);

PassResult apply_quantize_plan(Graph& graph, const std::vector<PlannedNode>& plan,
                               const PassContext& context);

// The plan as a table: node, op, rule, formats or reason.
std::string describe_quantize_plan(const Graph& graph, const std::any& plan);

// A config with only the keys that an op has operands for: one table may serve several ops.
Value config_for_op(const Value& config, const OpRecord& op);

}  // namespace mase
