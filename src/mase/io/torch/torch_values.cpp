// SPDX-License-Identifier: Apache-2.0
// What a pickle holds besides its network, as plain values. A pickle's values may be shared and
// even contain themselves; as a tree they are copied, so every copy is charged and depth is
// limited.
#include <unordered_map>

#include "mase/base/text.h"
#include "mase/io/torch/torch_file.h"

namespace mase {
namespace {

constexpr size_t value_cost = sizeof(Dict::Item) + 16;
constexpr size_t longest_key = 1024;
constexpr size_t longest_path = 2048;
constexpr size_t most_key_parts = 16;
using Kind = PickleNode::Kind;

}  // namespace

std::string TorchFile::key_text(PickleId id) {
  const PickleNode& key = node(id);
  if (key.text.size() > longest_key)
    throw Error(fmt::format("{}: byte {}", place_, key.at),
                fmt::format("a key has {} characters", key.text.size()),
                "the file is damaged or hostile");
  // Before it is copied: into the text, a table and a list of tensors.
  charge(3 * (key.text.size() + sizeof(std::string)) + 64);
  switch (key.kind) {
    case Kind::text:
    case Kind::symbol:
    case Kind::global:
    case Kind::opaque:
      return std::string(key.text);
    case Kind::integer:
      return std::to_string(key.integer);
    case Kind::boolean:
      return key.integer ? "True" : "False";
    case Kind::number:
      return python_float(key.number);
    case Kind::none:
      return "None";
    case Kind::tuple: {
      std::vector<std::string> parts;
      for (const PickleId item : key.items) {
        if (parts.size() == most_key_parts) break;
        const Kind kind = node(item).kind;
        const bool plain = kind == Kind::text || kind == Kind::integer || kind == Kind::boolean;
        parts.push_back(plain ? key_text(item) : "...");
      }
      return "(" + join(parts, ", ") + ")";
    }
    default:
      return "(key)";
  }
}

Value TorchFile::value(PickleId id, const std::string& path, TensorTable* tensors,
                       const Except& except) {
  return convert(id, path, tensors, except, 0);
}

Value TorchFile::convert(PickleId id, const std::string& path, TensorTable* tensors,
                         const Except& except, size_t depth) {
  if (depth > limits_.depth)
    throw Error(fmt::format("{}: byte {}", place_, node(id).at), "values are nested too deeply",
                "the file is damaged or hostile");
  const PickleNode& from = node(id);
  charge(value_cost);
  const auto inner = [&](const std::string& key) {
    if (path.size() + key.size() > longest_path)
      throw Error(fmt::format("{}: byte {}", place_, from.at), "a value's name is too long");
    return path.empty() ? key : path + "." + key;
  };
  switch (from.kind) {
    case Kind::none:
      return {};
    case Kind::boolean:
      return from.integer != 0;
    case Kind::integer:
      return from.integer;
    case Kind::number:
      return from.number;
    case Kind::text:
      charge(from.text.size());
      return std::string(from.text);
    case Kind::bytes:
      return Symbol{fmt::format("{} bytes", from.text.size())};
    case Kind::symbol:
    case Kind::global:
      charge(from.text.size());
      return Symbol{std::string(from.text)};
    case Kind::opaque:
      charge(from.text.size());
      return Symbol{fmt::format("<{}>", from.text)};
    case Kind::dtype:
      return Symbol{fmt::format("numpy.dtype({})", from.text.substr(0, 20))};
    case Kind::array:
    case Kind::storage:
      return Symbol{from.kind == Kind::array ? "<numpy.ndarray>" : "<torch.storage>"};
    case Kind::tensor: {
      const PickleTensor& tensor = pickle_.tensors[from.index];
      charge(64 + path.size() + 24 * tensor.shape.size());
      if (tensors) tensors->emplace_back(path, this->tensor(id));
      return Symbol{
          fmt::format("tensor {} {}", dtype_name(tensor.dtype), shape_text(tensor.shape))};
    }
    case Kind::list:
    case Kind::tuple:
    case Kind::set: {
      charge(from.items.size() * sizeof(Value));
      List list;
      list.reserve(from.items.size());
      for (const PickleId item : from.items)
        list.push_back(convert(item, inner(std::to_string(list.size())), tensors, {}, depth + 1));
      return list;
    }
    case Kind::dict: {
      // Of a key written twice the last value counts; keys of different types may read the same.
      std::unordered_map<std::string, size_t> last;
      std::vector<std::string> keys;
      for (size_t i = 0; i + 1 < from.items.size(); i += 2) {
        keys.push_back(key_text(from.items[i]));
        last[keys.back()] = i;
      }
      Dict dict;
      for (size_t i = 0; i + 1 < from.items.size(); i += 2) {
        const std::string& key = keys[i / 2];
        const PickleId item = from.items[i + 1];
        const bool skipped =
            item == except.id || (except.tensors && node(item).kind == Kind::tensor);
        if (last.at(key) != i || skipped) continue;
        dict.add(key, convert(item, inner(key), tensors, {}, depth + 1));
      }
      return dict;
    }
  }
  return {};
}

}  // namespace mase
