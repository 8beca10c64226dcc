// SPDX-License-Identifier: Apache-2.0
// Losses. A loss is one file in losses/ that registers one record: it says in the engine's
// primitives how outputs and targets become a scalar, and is differentiated, fused and quantised
// like the rest of the network. Options have PyTorch's names and defaults.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/engine/program.h"

namespace mase {

struct LossRecord {
  static constexpr const char* kind = "loss";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema options = {};
  std::vector<TargetKind> targets;  // what it can compare outputs with
  std::function<Slot(Lowering& to, Slot output, Slot target, const Value& options)> lower;
};

// The loss of that name for data whose targets are classes or numbers; a loss that only knows
// numbers gets classes as rows of 0 and 1. Class weights (empty: all one) are for losses with the
// option `weight`. Data or weights that the loss cannot take are an error.
LossFunction make_loss(const std::string& name, const Value& options = Dict{}, bool classes = true,
                       const std::vector<float>& class_weights = {});

// For files in losses/: the mean of expr(output, target) over all values, operands 0 and 1.
LossRecord elementwise_loss(const std::string& name, const std::string& summary,
                            const Schema& options, std::function<Expr(const Value& options)> expr);

}  // namespace mase
