// SPDX-License-Identifier: Apache-2.0
// CIFAR as it is published for Python.
#include <span>

#include "mase/base/text.h"
#include "mase/data/images.h"
#include "mase/io/torch/pickle.h"

namespace mase {
namespace {

constexpr uint64_t image_bytes = 3072;

// The value of a text key; null if there is none.
const PickleNode* member(const Pickle& pickle, const PickleNode& dict, std::string_view key) {
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleNode& name = pickle.node(dict.items[i]);
    if ((name.kind == PickleNode::Kind::text || name.kind == PickleNode::Kind::bytes) &&
        name.text == key)
      return &pickle.node(dict.items[i + 1]);
  }
  return nullptr;
}

void read_one(const FileBytes& file, const std::string& labels, ByteImages& result) {
  const std::string& path = file.place;
  MemoryBudget budget({}, file.bytes.size());
  const Pickle pickle = read_pickle(std::as_bytes(std::span(file.bytes)), path, 0, budget);
  const PickleNode& root = pickle.node(pickle.root);
  const auto refuse = [&](const std::string& what) {
    throw Error(path, "is no CIFAR file for Python: " + what, "fetch it again");
  };
  if (root.kind != PickleNode::Kind::dict) refuse("it holds no dict");
  const PickleNode *data = member(pickle, root, "data"), *classes = member(pickle, root, labels);
  if (!data || data->kind != PickleNode::Kind::tensor) refuse("it has no array 'data'");
  if (!classes || classes->kind != PickleNode::Kind::list)
    refuse(fmt::format("it has no list '{}'", labels));
  const PickleTensor& tensor = pickle.tensors[data->index];
  const PickleStorage& storage = pickle.storages[tensor.storage];
  const auto count = classes->items.size();
  const Shape wanted = {static_cast<int64_t>(count), static_cast<int64_t>(image_bytes)};
  if (tensor.dtype != DType::u8 || tensor.shape != wanted || tensor.offset != 0 ||
      tensor.strides != std::vector<int64_t>{static_cast<int64_t>(image_bytes), 1} ||
      !storage.content || storage.content->size() != count * image_bytes)
    refuse(fmt::format("'data' is {} for {} labels", shape_text(tensor.shape), count));
  const auto* bytes = reinterpret_cast<const uint8_t*>(storage.content->data());
  result.pixels.insert(result.pixels.end(), bytes, bytes + storage.content->size());
  for (const PickleId id : classes->items) {
    const PickleNode& label = pickle.node(id);
    if (label.kind != PickleNode::Kind::integer || label.integer < 0 || label.integer > 255)
      refuse("a label is no number");
    result.labels.push_back(static_cast<int32_t>(label.integer));
  }
}

}  // namespace

ByteImages read_cifar_pickles(const std::vector<FileBytes>& files, const std::string& labels) {
  ByteImages result;
  result.sample = {3, 32, 32};
  for (const FileBytes& file : files) read_one(file, labels, result);
  return result;
}

}  // namespace mase
