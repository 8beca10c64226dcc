// SPDX-License-Identifier: Apache-2.0
// An interpreter of pickles that cannot run code. It has a fixed list of opcodes and a fixed list
// of constructors, and builds only numbers, texts, lists, tuples, dicts, sets and descriptions of
// tensors. Any other class becomes an opaque leaf with its name; nothing is ever looked up or
// called. Everything it makes lies in flat tables, so cycles and depth cost nothing, and is charged
// to the caller's budget.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/io/read_limits.h"

namespace mase {

using PickleId = uint32_t;

struct PickleNode {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,
    number,
    text,
    bytes,
    symbol,  // a text that is not one in Python: a dtype, a device, a very long integer
    list,
    tuple,
    dict,  // items: key, value, key, value, ...
    set,
    global,   // a class or function: its name only
    opaque,   // something made by one we do not know: its name only
    storage,  // index: in Pickle::storages
    tensor,   // index: in Pickle::tensors
    dtype,    // NumPy's: text is its code, integer 1 when its byte order is ours
    array,    // NumPy's, before its state is known
  };
  Kind kind = Kind::none;
  uint32_t index = 0;
  int64_t integer = 0;  // booleans too
  double number = 0;
  std::string_view text = {};  // in the pickle's bytes or in Pickle::texts
  std::vector<PickleId> items = {};
  size_t at = 0;  // byte offset in the file, for messages
};

// Elements kept outside the pickle (or inside, for NumPy's arrays).
struct PickleStorage {
  std::string_view key;
  std::optional<DType> dtype;  // none: bytes
  uint64_t elements = 0;       // or bytes, of the whole
  uint64_t view_offset = 0;    // old files: this storage is a part of the whole
  uint64_t view_elements = 0;
  std::optional<std::string_view> content = {};  // none: outside, by its key
  size_t at = 0;
};

struct PickleTensor {
  uint32_t storage = 0;
  DType dtype = DType::f32;
  uint64_t offset = 0;  // in elements
  Shape shape;
  std::vector<int64_t> strides;
  size_t at = 0;  // byte offset in the file, for messages
};

struct Pickle {
  std::deque<PickleNode> nodes;
  std::deque<std::string> texts;
  std::vector<PickleStorage> storages;
  std::vector<PickleTensor> tensors;
  PickleId root = 0;
  size_t size = 0;  // bytes read

  const PickleNode& node(PickleId id) const { return nodes[id]; }
};

// Reads one pickle from the beginning of `bytes`. `origin` is their offset in the file.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& place, size_t origin,
                   MemoryBudget& budget, const ReadLimits& limits = {});

}  // namespace mase
