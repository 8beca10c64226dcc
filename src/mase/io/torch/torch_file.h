// SPDX-License-Identifier: Apache-2.0
// A PyTorch file (.pt, .pth, .ckpt) in its zip or its legacy container: the pickle, and the
// storages its tensors view. The file stays mapped; tensors view it in place.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "mase/base/file.h"
#include "mase/io/torch/pickle.h"
#include "mase/ir/graph.h"

namespace mase {

// What a conversion of a dict leaves out.
struct Except {
  std::optional<PickleId> id = {};  // this item
  bool tensors = false;             // all items that are tensors
};

class TorchFile {
 public:
  // Reads the pickle and checks every storage and every tensor against the file.
  explicit TorchFile(std::shared_ptr<const MappedFile> file, const ReadLimits& limits = {});
  // The same over bytes that something else keeps alive.
  TorchFile(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
            const std::string& place, const ReadLimits& limits = {});
  TorchFile(const TorchFile&) = delete;  // texts point into the tables
  TorchFile& operator=(const TorchFile&) = delete;

  PickleId root() const { return pickle_.root; }
  const PickleNode& node(PickleId id) const { return pickle_.node(id); }
  // The value of a text key of a dict; none if absent.
  std::optional<PickleId> find(PickleId dict, std::string_view key) const;
  size_t tensor_count() const { return pickle_.tensors.size(); }
  MemoryBudget& budget() { return budget_; }

  Tensor tensor(PickleId id);
  // As plain values. Tensors become symbols there ("tensor float32 [8, 16]") and go to `tensors`
  // by their dotted path, if given.
  Value value(PickleId id, const std::string& path, TensorTable* tensors,
              const Except& except = {});
  std::string key_text(PickleId id);  // a dict's key as text, charged

 private:
  void read_zip(std::span<const std::byte> bytes);
  void read_legacy(std::span<const std::byte> bytes);
  void check_tensors();
  Value convert(PickleId id, const std::string& path, TensorTable* tensors, const Except& except,
                size_t depth);
  void charge(size_t bytes) { budget_.charge(bytes, place_); }

  struct Content {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  std::string place_;
  std::shared_ptr<const void> owner_;
  ReadLimits limits_;
  MemoryBudget budget_;
  std::shared_ptr<const void> pickle_owner_;  // when the pickle was inflated
  Pickle pickle_;
  std::unordered_map<std::string_view, Content> storages_;  // by key
  std::unordered_map<uint32_t, Tensor> made_;               // so that shared tensors share memory
};

bool looks_like_legacy_torch(std::span<const std::byte> bytes);

}  // namespace mase
