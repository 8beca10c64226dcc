// SPDX-License-Identifier: Apache-2.0
// rewind: weights that pruning left get back the values they had before any pass, and masks stay:
// the winning ticket of a lottery (Frankle and Carbin, "The lottery ticket hypothesis", 2019;
// values of an early epoch: Frankle et al., "Stabilizing the lottery ticket hypothesis", 2019).
//   train -> prune -> rewind -> train
#include "mase/base/table.h"
#include "mase/passes/output.h"
#include "mase/passes/pass.h"

namespace mase::rewind_pass {
namespace {

PassResult run(Graph& graph, const Value&, PassContext& context) {
  if (!context.original)
    throw Error("rewind", "the network as it was before is not known",
                "run it in one chain with the passes that changed the network");
  Graph changed = graph;
  int64_t layers = 0, values = 0, removed = 0;
  for (auto& [path, module] : changed.modules()) {
    const auto before = context.original->modules().find(path);
    if (before == context.original->modules().end())
      throw Error("rewind", fmt::format("'{}' was not there before", path),
                  "rewind networks whose layers are the same");
    for (TensorTable* table : {&module.parameters, &module.buffers})
      for (auto& [name, tensor] : *table) {
        const Tensor* old = before->second.find(name);
        if (!old || old->shape() != tensor.shape() || old->dtype() != tensor.dtype())
          throw Error("rewind", fmt::format("'{}.{}' was not there before", path, name),
                      "rewind before number formats that learn");
        tensor = *old;
        for (const auto& [masked, mask] : module.masks) {
          if (masked != name) continue;
          float* data = tensor.mutable_data<float>();
          for (int64_t i = 0; i < tensor.numel(); ++i)
            if (mask.data<float>()[i] == 0) data[i] = 0, ++removed;
        }
        values += tensor.numel();
      }
    ++layers;
  }
  graph = std::move(changed);
  print(context, fmt::format("rewind: {} values of {} modules as before, {} pruned ones stay 0\n",
                             values - removed, layers, removed));
  return {Dict{{"values", values}, {"pruned", removed}}, true};
}

const Register<PassRecord> registered{{
    .name = "rewind",
    .aliases = {"rewind_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "What pruning left gets back its values from before (lottery tickets)",
    .help = "Masks stay. Before is the network as it was loaded, so a checkpoint of an early epoch "
            "rewinds to that epoch: --methods train:max_epochs=5+prune:weight.sparsity=0.8+rewind+"
            "train:max_epochs=5",
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::rewind_pass
