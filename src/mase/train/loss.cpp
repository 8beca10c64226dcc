// SPDX-License-Identifier: Apache-2.0
#include "mase/train/loss.h"

#include <algorithm>

namespace mase {

LossFunction make_loss(const std::string& name, const Value& given, bool classes,
                       const std::vector<float>& class_weights) {
  const LossRecord& record = Registry<LossRecord>::instance().get(name, "loss");
  const auto takes = [&](TargetKind kind) {
    return std::find(record.targets.begin(), record.targets.end(), kind) != record.targets.end();
  };
  LossFunction loss;
  loss.name = record.name;
  if (!classes) {
    if (!takes(TargetKind::numbers))
      throw Error("--loss",
                  fmt::format("{} wants classes, the data have numbers to predict", record.name),
                  "use mse, or another loss for numbers");
    loss.target = TargetKind::numbers;
  } else {
    if (!takes(TargetKind::classes) && !takes(TargetKind::one_hot))
      throw Error("--loss", fmt::format("{} wants numbers, the data have classes", record.name),
                  "use cross_entropy, or another loss for classes");
    loss.target = takes(TargetKind::classes) ? TargetKind::classes : TargetKind::one_hot;
  }
  Value options = validate(given.is_null() ? Value(Dict{}) : given, record.options, "loss");
  if (!class_weights.empty()) {
    if (!record.options.find("weight"))
      throw Error("--class-weights", fmt::format("the loss {} has no class weights", record.name),
                  "use cross_entropy, or leave the weights away");
    if (!options["weight"].is_null())
      throw Error("--class-weights", "the loss has weights of its own",
                  "give the weights of the data or those of the loss");
    options["weight"] = List(class_weights.begin(), class_weights.end());
  }
  loss.lower = [&record, options](Lowering& to, Slot output, Slot target) {
    return record.lower(to, output, target, options);
  };
  return loss;
}

LossRecord elementwise_loss(const std::string& name, const std::string& summary,
                            const Schema& options, std::function<Expr(const Value& options)> expr) {
  LossRecord record;
  record.name = name;
  record.summary = summary;
  record.options = options;
  record.targets = {TargetKind::one_hot, TargetKind::numbers};
  record.lower = [expr = std::move(expr)](Lowering& to, Slot output, Slot target,
                                          const Value& arguments) {
    return to.batch_mean(to.map(expr(arguments), {output, target}));
  };
  return record;
}

}  // namespace mase
