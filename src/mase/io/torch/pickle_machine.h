// SPDX-License-Identifier: Apache-2.0
// The inside of the pickle interpreter: the stack machine (pickle.cpp) and what its calls may make
// (pickle_constructors.cpp). Not for other files.
#pragma once

#include <unordered_map>

#include "mase/io/byte_reader.h"
#include "mase/io/torch/pickle.h"

namespace mase::pickle {

using Kind = PickleNode::Kind;

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& place, size_t origin,
          MemoryBudget& budget, const ReadLimits& limits);

  Pickle run();

  // For the constructors.
  PickleId make(PickleNode node);
  PickleId make(Kind kind, std::string_view text = {});
  PickleId make_integer(int64_t value);
  PickleId make_number(double value);
  std::string_view keep(std::string text);
  PickleNode& node(PickleId id) { return pickle_.nodes[id]; }
  Pickle& pickle() { return pickle_; }
  const std::vector<PickleId>& arguments(PickleId tuple);
  void charge(size_t bytes);
  void add_items(PickleId container, std::span<const PickleId> items);
  [[noreturn]] void fail(const std::string& cause, const std::string& remedy = "") const;
  size_t offset() const { return step_; }

 private:
  void step(uint8_t opcode);
  bool step_values(uint8_t opcode);
  bool step_containers(uint8_t opcode);
  bool step_memo(uint8_t opcode);
  bool step_calls(uint8_t opcode);

  void push(PickleId id);
  PickleId pop();
  PickleId top();
  std::span<const PickleId> since_mark();
  void drop_mark();
  void push_tuple(size_t count);
  void push_long(std::string_view bytes);
  void put(uint64_t index);
  void get(uint64_t index);
  void global(std::string_view module, std::string_view name);
  void set_items(PickleId dict, std::span<const PickleId> items);
  void append_items(PickleId list, std::span<const PickleId> items);

  ByteReader reader_;
  MemoryBudget& budget_;
  ReadLimits limits_;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleId> memo_;
  size_t step_ = 0;  // the offset of the opcode being run
  bool stopped_ = false;
  PickleId none_ = 0, false_ = 0, true_ = 0, first_small_ = 0;
};

// What a call of this class or function makes; `args` is a tuple. Names on the list build plain
// values; names known for running code or opening files are refused by name; all others become
// opaque leaves. Nothing is called in any of the cases.
PickleId call(Machine& machine, PickleId callable, PickleId args);
void build(Machine& machine, PickleId object, PickleId state);
PickleId persistent(Machine& machine, PickleId id);

}  // namespace mase::pickle
