// SPDX-License-Identifier: Apache-2.0
// How an operation of a network is written in exact integers: one record for each, one file each in
// hardware/lower/ops. Operations without a record that are functions of one number become tables
// where their result is rounded; everything else is refused, by the list of these records.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/ir/evaluate.h"

namespace mase {

// One call of an operation whose operands are integers, rounded as their formats say.
struct IntegerCall {
  const Node& node;
  const BoundCall& call;
  const std::vector<std::vector<IntegerId>>& inputs;  // features of each operand, in their order
  const std::vector<Shape>& shapes;                   // of each operand, for one row
  const Shape& shape;                                 // of the result, for one row
  // The format of an operand (weight, bias, data_out); null: none.
  const std::function<QuantizerPtr(const std::string& operand)>& format;
  IntegerBuilder& builder;
  LoweredNetwork& network;  // for what is noted of sums

  [[noreturn]] void refuse(const std::string& cause, const std::string& remedy) const;

  // The function of each feature of the first operand.
  template <class Function>
  std::vector<IntegerId> each(const Function& function) const {
    std::vector<IntegerId> result;
    for (const IntegerId feature : inputs[0]) result.push_back(function(feature));
    return result;
  }
  // Every feature of the first operand within these limits.
  std::vector<IntegerId> limited(double low, double high) const;
};

struct IntegerLowering {
  static constexpr const char* kind = "lowering to integers";
  std::string name;  // the op's
  std::vector<std::string> aliases = {};
  std::string summary;
  // The features of the result, in their order; nothing: not with these attributes, a table may do.
  std::function<std::optional<std::vector<IntegerId>>(const IntegerCall& call)> lower;
  // What an op rounds its operand to by itself, where that comes from outside; empty or null: it
  // does not.
  std::function<QuantizerPtr(const Value& attributes)> first_input = {};
};

// By the record of its op, or as a table.
std::vector<IntegerId> lower_call(const IntegerCall& call);

}  // namespace mase
