// SPDX-License-Identifier: Apache-2.0
// The safetensors format over bytes in memory (a mapped file, or an entry of an .mz): tensors are
// views of those bytes wherever their alignment allows. The whole-file functions are in
// checkpoint.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "mase/io/read_limits.h"
#include "mase/ir/graph.h"

namespace mase {

// Tensors in the header's order. `owner` keeps `bytes` alive; `place` begins every error.
TensorTable parse_safetensors(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              const std::string& place, Dict* metadata, MemoryBudget& budget,
                              const ReadLimits& limits = {});

// Whether the bytes begin as a safetensors file does.
bool looks_like_safetensors(std::span<const std::byte> bytes);

// A file of these tensors, piece by piece: `put` gets the bytes in order. The header keeps the
// table's order; the data are laid out by falling element size, so that every tensor is aligned.
size_t safetensors_size(const TensorTable& tensors, const Dict& metadata, const std::string& place);
void write_safetensors(const TensorTable& tensors, const Dict& metadata, const std::string& place,
                       const std::function<void(const void* data, size_t size)>& put);

}  // namespace mase
