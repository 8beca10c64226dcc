// SPDX-License-Identifier: Apache-2.0
// A GGUF file as a checkpoint: its settings, and its tensors under their own names, as they are
// packed.
#include "mase/io/gguf/gguf_file.h"
#include "mase/io/networks/checkpoint_file.h"

namespace mase {

Checkpoint read_gguf(const std::shared_ptr<const MappedFile>& mapped, const ReadLimits& limits,
                     bool network_needed) {
  MemoryBudget budget(limits, mapped->bytes().size());
  const GgufFile file(mapped->bytes(), mapped->path(), budget);
  if (network_needed && file.tensors().empty())
    throw Error(mapped->path(), "holds no tensors", "it may be a vocabulary alone");
  Checkpoint checkpoint;
  checkpoint.type = CheckpointType::hf;
  constexpr size_t shown = 8, longest_list = 1024;
  checkpoint.contents = file.settings(network_needed ? longest_list : shown);
  Dict types;
  for (const GgufTensor& tensor : file.tensors()) {
    checkpoint.tensors.emplace_back(tensor.name,
                                    gguf_tensor(tensor, mapped, budget, mapped->path()));
    Value& count = types[tensor.type->name];
    count = count.is_int() ? count.as_int() + 1 : 1;
  }
  if (!network_needed) checkpoint.contents["number types"] = std::move(types);
  return checkpoint;
}

}  // namespace mase
