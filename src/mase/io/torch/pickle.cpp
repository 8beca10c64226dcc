// SPDX-License-Identifier: Apache-2.0
// The stack machine: one opcode after the other, each of which moves forward in the file, so its
// time is bounded by the file's size and its memory by the budget.
#include "mase/io/torch/pickle.h"

#include <bit>

#include "mase/base/text.h"
#include "mase/io/torch/pickle_machine.h"

namespace mase {
namespace pickle {
namespace {

constexpr int small_integers = 256;
constexpr size_t longest_integer = 512;  // bytes; a random generator's state fits
constexpr size_t node_cost = sizeof(PickleNode) + 8;
constexpr size_t memo_cost = 48;

const char* describe(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
    case Kind::integer:
    case Kind::number:
      return "a number";
    case Kind::text:
    case Kind::symbol:
      return "text";
    case Kind::bytes:
      return "bytes";
    case Kind::list:
      return "a list";
    case Kind::tuple:
      return "a tuple";
    case Kind::dict:
      return "a dict";
    case Kind::set:
      return "a set";
    case Kind::global:
      return "a class";
    case Kind::opaque:
      return "an object";
    case Kind::storage:
      return "a storage";
    case Kind::tensor:
      return "a tensor";
    case Kind::dtype:
    case Kind::array:
      return "a NumPy object";
  }
  return "";
}

bool may_be_key(Kind kind) {
  return kind != Kind::list && kind != Kind::dict && kind != Kind::set && kind != Kind::storage &&
         kind != Kind::array;
}

}  // namespace

Machine::Machine(std::span<const std::byte> bytes, const std::string& place, size_t origin,
                 MemoryBudget& budget, const ReadLimits& limits)
    : reader_(bytes, place, origin), budget_(budget), limits_(limits), step_(origin) {
  // Values that cannot change are made once and shared.
  none_ = make(Kind::none);
  false_ = make(Kind::boolean);
  true_ = make(Kind::boolean);
  node(true_).integer = 1;
  first_small_ = make_integer(0);
  for (int i = 1; i < small_integers; ++i) make_integer(i);
}

void Machine::fail(const std::string& cause, const std::string& remedy) const {
  reader_.fail_at(step_, cause, remedy);
}

void Machine::charge(size_t bytes) {
  if (!budget_.take(bytes))
    fail("the pickle would need more memory than the limit allows",
         "the file is damaged or hostile");
}

PickleId Machine::make(PickleNode made) {
  charge(node_cost);
  if (pickle_.nodes.size() >= limits_.objects) fail("the pickle makes too many values");
  made.at = step_;
  pickle_.nodes.push_back(std::move(made));
  return static_cast<PickleId>(pickle_.nodes.size() - 1);
}

PickleId Machine::make(Kind kind, std::string_view text) {
  PickleNode made;
  made.kind = kind;
  made.text = text;
  return make(std::move(made));
}

PickleId Machine::make_integer(int64_t value) {
  PickleNode made;
  made.kind = Kind::integer;
  made.integer = value;
  return make(std::move(made));
}

PickleId Machine::make_number(double value) {
  PickleNode made;
  made.kind = Kind::number;
  made.number = value;
  return make(std::move(made));
}

std::string_view Machine::keep(std::string text) {
  charge(text.size() + sizeof(std::string));
  pickle_.texts.push_back(std::move(text));
  return pickle_.texts.back();
}

const std::vector<PickleId>& Machine::arguments(PickleId tuple) {
  if (node(tuple).kind != Kind::tuple) fail("the arguments of a call are not a tuple");
  return node(tuple).items;
}

void Machine::add_items(PickleId container, std::span<const PickleId> items) {
  charge(2 * items.size() * sizeof(PickleId));  // vectors grow by doubling
  std::vector<PickleId>& all = node(container).items;
  all.insert(all.end(), items.begin(), items.end());
}

void Machine::push(PickleId id) {
  charge(2 * sizeof(PickleId));
  stack_.push_back(id);
}

PickleId Machine::pop() {
  const PickleId id = top();
  stack_.pop_back();
  budget_.give_back(2 * sizeof(PickleId));
  return id;
}

PickleId Machine::top() {
  if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
    fail("the pickle takes a value from an empty stack");
  return stack_.back();
}

std::span<const PickleId> Machine::since_mark() {
  if (marks_.empty()) fail("the pickle ends a group it did not begin");
  return std::span<const PickleId>(stack_).subspan(marks_.back());
}

void Machine::drop_mark() {
  budget_.give_back(2 * sizeof(PickleId) * (stack_.size() - marks_.back()));
  stack_.resize(marks_.back());
  marks_.pop_back();
}

void Machine::push_tuple(size_t count) {
  PickleNode tuple;
  tuple.kind = Kind::tuple;
  tuple.items.resize(count);
  for (size_t i = count; i-- > 0;) tuple.items[i] = pop();
  charge(count * sizeof(PickleId));
  push(make(std::move(tuple)));
}

void Machine::push_long(std::string_view bytes) {
  if (bytes.size() > longest_integer) fail("an integer is too long");
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80);
  if (bytes.size() <= 8) {
    uint64_t value = negative ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return push(make_integer(static_cast<int64_t>(value)));
  }
  std::string digits = "0x";  // two's complement, most significant first
  for (size_t i = bytes.size(); i-- > 0;)
    digits += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
  push(make(Kind::symbol, keep(std::move(digits))));
}

void Machine::put(uint64_t index) {
  const PickleId id = top();
  if (!memo_.count(index)) charge(memo_cost);
  memo_[index] = id;
}

void Machine::get(uint64_t index) {
  const auto known = memo_.find(index);
  if (known == memo_.end()) fail(fmt::format("the pickle recalls value {}, never stored", index));
  push(known->second);
}

void Machine::global(std::string_view module, std::string_view name) {
  constexpr size_t longest = 400;
  if (module.size() + name.size() > longest) fail("the name of a class is too long");
  push(make(Kind::global, keep(fmt::format("{}.{}", module, name))));
}

void Machine::set_items(PickleId dict, std::span<const PickleId> items) {
  if (items.size() % 2 != 0) fail("a dict has a key without a value");
  for (size_t i = 0; i < items.size(); i += 2)
    if (!may_be_key(node(items[i]).kind))
      fail(fmt::format("{} cannot be a key", describe(node(items[i]).kind)));
  if (node(dict).kind == Kind::opaque) return;
  if (node(dict).kind != Kind::dict)
    fail(fmt::format("{} is used as a dict", describe(node(dict).kind)));
  add_items(dict, items);
}

void Machine::append_items(PickleId list, std::span<const PickleId> items) {
  if (node(list).kind == Kind::opaque) return;
  if (node(list).kind != Kind::list)
    fail(fmt::format("{} is used as a list", describe(node(list).kind)));
  add_items(list, items);
}

bool Machine::step_values(uint8_t opcode) {
  switch (opcode) {
    case 'N':
      push(none_);
      return true;
    case 0x88:
      push(true_);
      return true;
    case 0x89:
      push(false_);
      return true;
    case 'J':
      push(make_integer(static_cast<int32_t>(reader_.u32())));
      return true;
    case 'K':
      push(first_small_ + reader_.u8());
      return true;
    case 'M':
      push(make_integer(reader_.u16()));
      return true;
    case 0x8a:
      push_long(reader_.text(reader_.u8()));
      return true;
    case 0x8b:
      push_long(reader_.text(reader_.u32()));
      return true;
    case 'G': {
      uint64_t bits = 0;
      for (const std::byte byte : reader_.take(8))
        bits = bits << 8 | std::to_integer<uint64_t>(byte);
      push(make_number(std::bit_cast<double>(bits)));
      return true;
    }
    case 'X':
      push(make(Kind::text, reader_.text(reader_.u32())));
      return true;
    case 0x8c:
      push(make(Kind::text, reader_.text(reader_.u8())));
      return true;
    case 0x8d:
      push(make(Kind::text, reader_.text(reader_.u64())));
      return true;
    case 'T':  // Python 2's texts, which PyTorch's old files have
      push(make(Kind::text, reader_.text(reader_.u32())));
      return true;
    case 'U':
      push(make(Kind::text, reader_.text(reader_.u8())));
      return true;
    case 'B':
      push(make(Kind::bytes, reader_.text(reader_.u32())));
      return true;
    case 'C':
      push(make(Kind::bytes, reader_.text(reader_.u8())));
      return true;
    case 0x8e:
    case 0x96:
      push(make(Kind::bytes, reader_.text(reader_.u64())));
      return true;
    default:
      return false;
  }
}

bool Machine::step_containers(uint8_t opcode) {
  switch (opcode) {
    case '(':
      charge(2 * sizeof(size_t));
      marks_.push_back(stack_.size());
      return true;
    case '0':  // a value, or a mark with nothing above it
      if (!marks_.empty() && stack_.size() == marks_.back())
        marks_.pop_back();
      else
        pop();
      return true;
    case '1':
      since_mark();
      drop_mark();
      return true;
    case ')':
      push(make(Kind::tuple));
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      push_tuple(opcode - 0x84u);
      return true;
    case ']':
      push(make(Kind::list));
      return true;
    case '}':
      push(make(Kind::dict));
      return true;
    case 0x8f:
      push(make(Kind::set));
      return true;
    case 't':
    case 'l':
    case 0x91: {
      const PickleId made = make(opcode == 't'   ? Kind::tuple
                                 : opcode == 'l' ? Kind::list
                                                 : Kind::set);
      add_items(made, since_mark());
      drop_mark();
      push(made);
      return true;
    }
    case 'd': {
      const PickleId made = make(Kind::dict);
      set_items(made, since_mark());
      drop_mark();
      push(made);
      return true;
    }
    case 'a': {
      const PickleId item = pop();
      append_items(top(), std::span(&item, 1));
      return true;
    }
    case 's': {
      const PickleId value = pop(), key = pop();
      const PickleId items[] = {key, value};
      set_items(top(), items);
      return true;
    }
    case 'e':
    case 'u':
    case 0x90: {
      const std::span<const PickleId> items = since_mark();
      if (marks_.back() == 0 || (marks_.size() > 1 && marks_.back() <= marks_[marks_.size() - 2]))
        fail("the pickle takes a value from an empty stack");
      const PickleId container = stack_[marks_.back() - 1];
      if (opcode == 'e') append_items(container, items);
      if (opcode == 'u') set_items(container, items);
      if (opcode == 0x90) {
        if (node(container).kind != Kind::set)
          fail(fmt::format("{} is used as a set", describe(node(container).kind)));
        add_items(container, items);
      }
      drop_mark();
      return true;
    }
    default:
      return false;
  }
}

bool Machine::step_memo(uint8_t opcode) {
  switch (opcode) {
    case 'q':
      put(reader_.u8());
      return true;
    case 'r':
      put(reader_.u32());
      return true;
    case 0x94:
      put(memo_.size());
      return true;
    case 'h':
      get(reader_.u8());
      return true;
    case 'j':
      get(reader_.u32());
      return true;
    default:
      return false;
  }
}

bool Machine::step_calls(uint8_t opcode) {
  switch (opcode) {
    case 'c': {
      const std::string_view module = reader_.line();
      global(module, reader_.line());
      return true;
    }
    case 0x93: {
      const PickleId name = pop(), module = pop();
      if (node(name).kind != Kind::text || node(module).kind != Kind::text)
        fail("the name of a class is not text");
      global(node(module).text, node(name).text);
      return true;
    }
    case 'R':
    case 0x81: {
      const PickleId args = pop(), callable = pop();
      push(call(*this, callable, args));
      return true;
    }
    case 0x92: {
      const PickleId keywords = pop(), args = pop(), callable = pop();
      if (node(keywords).kind != Kind::dict) fail("the arguments of a call are not a dict");
      if (!node(keywords).items.empty()) {  // none of the constructors on our list takes any
        call(*this, callable, args);
        push(make(Kind::opaque, node(callable).text));
      } else {
        push(call(*this, callable, args));
      }
      return true;
    }
    case 'b': {
      const PickleId state = pop();
      build(*this, top(), state);
      return true;
    }
    case 'Q':
      push(persistent(*this, pop()));
      return true;
    default:
      return false;
  }
}

void Machine::step(uint8_t opcode) {
  if (opcode == '.') {
    stopped_ = true;
    return;
  }
  if (opcode == 0x80) {
    const uint8_t protocol = reader_.u8();
    if (protocol > 5) fail(fmt::format("pickle protocol {} is unknown", protocol));
    return;
  }
  if (opcode == 0x95) {  // a frame only helps buffering
    if (reader_.u64() > reader_.left()) fail("a frame is longer than the file");
    return;
  }
  if (step_values(opcode) || step_containers(opcode) || step_memo(opcode) || step_calls(opcode))
    return;
  fail(fmt::format("pickle opcode {:#04x} is not one a checkpoint needs", opcode),
       "the file is damaged or hostile");
}

Pickle Machine::run() {
  while (!stopped_) {
    step_ = reader_.offset();
    step(reader_.u8());
  }
  if (!marks_.empty()) fail("the pickle ends inside a group");
  if (stack_.size() != 1) fail(fmt::format("the pickle leaves {} values", stack_.size()));
  pickle_.root = stack_.back();
  pickle_.size = reader_.at();
  return std::move(pickle_);
}

}  // namespace pickle

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& place, size_t origin,
                   MemoryBudget& budget, const ReadLimits& limits) {
  return pickle::Machine(bytes, place, origin, budget, limits).run();
}

}  // namespace mase
