// SPDX-License-Identifier: Apache-2.0
// The readers behind load_checkpoint, one kind of file each. Not for other folders.
#pragma once

#include "mase/base/file.h"
#include "mase/io/networks/checkpoint.h"

namespace mase {

Checkpoint read_torch_checkpoint(const std::shared_ptr<const MappedFile>& file,
                                 std::optional<CheckpointType> type, const ReadLimits& limits,
                                 bool network_needed = true);
Checkpoint read_mz(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                   const std::string& place, const ReadLimits& limits);
// The graph is the imported one. For looking into (no network needed) the tensors are the model's
// initialisers and `contents` describe it; what cannot be imported is told there.
Checkpoint read_onnx(const std::string& path, const ReadLimits& limits, bool network_needed,
                     const std::vector<Shape>& input_shapes);
// The file's own names and settings (models/gguf.h says what network they are). For looking into,
// `contents` also says which number types the tensors have.
Checkpoint read_gguf(const std::shared_ptr<const MappedFile>& file, const ReadLimits& limits,
                     bool network_needed);
Checkpoint read_hf_folder(const std::string& folder, const ReadLimits& limits);

// JSON becomes about a hundred bytes a value: what a text could claim is charged before it is read.
void charge_json(std::string_view text, MemoryBudget& budget, const std::string& place);

bool is_mz(std::span<const std::byte> bytes);  // of a zip

}  // namespace mase
