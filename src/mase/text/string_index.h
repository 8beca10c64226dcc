// SPDX-License-Identifier: Apache-2.0
// Texts by number and numbers by text: each text is kept once, in one block of memory, and the
// table that finds it is a list of numbers. And a table from pairs of numbers to what they become.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mase {

inline uint64_t text_hash(std::string_view text) {
  uint64_t hash = 0x9E3779B97F4A7C15u ^ text.size();
  const char* at = text.data();
  size_t left = text.size();
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  };
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, at, left);
    mix(word);
  }
  return hash;
}

class StringIndex {
 public:
  static constexpr uint32_t none = UINT32_MAX;

  uint32_t size() const { return static_cast<uint32_t>(ends_.size()); }
  size_t bytes() const { return texts_.size(); }
  std::string_view operator[](uint32_t number) const {
    const size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(texts_).substr(begin, ends_[number] - begin);
  }
  uint32_t find(std::string_view text) const { return find(text, text_hash(text)); }
  uint32_t find(std::string_view text, uint64_t hash) const {
    if (slots_.empty()) return none;
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.number == none) return none;
      if (slot.tag == static_cast<uint32_t>(hash >> 32) && (*this)[slot.number] == text)
        return slot.number;
    }
  }
  // A text that is not there yet; its number.
  uint32_t add(std::string_view text) { return add(text, text_hash(text)); }
  uint32_t add(std::string_view text, uint64_t hash) {
    if ((size() + 1) * 2 > slots_.size()) grow();
    texts_ += text;
    ends_.push_back(texts_.size());
    place({static_cast<uint32_t>(hash >> 32), size() - 1}, hash);
    return size() - 1;
  }
  void clear() {
    texts_.clear();
    ends_.clear();
    slots_.assign(slots_.size(), Slot{});
  }

 private:
  struct Slot {
    uint32_t tag = 0, number = none;
  };
  size_t mask() const { return slots_.size() - 1; }
  void place(Slot slot, uint64_t hash) {
    size_t at = hash & mask();
    while (slots_[at].number != none) at = (at + 1) & mask();
    slots_[at] = slot;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, Slot{});
    for (uint32_t i = 0; i < size(); ++i) {
      const uint64_t hash = text_hash((*this)[i]);
      place({static_cast<uint32_t>(hash >> 32), i}, hash);
    }
  }

  std::string texts_;
  std::vector<size_t> ends_;
  std::vector<Slot> slots_;
};

// From two numbers to a rank and a result.
class PairIndex {
 public:
  struct Entry {
    uint64_t key = UINT64_MAX;
    uint32_t rank = 0;
    int32_t result = 0;
  };
  static uint64_t key(int32_t first, int32_t second) {
    return static_cast<uint64_t>(static_cast<uint32_t>(first)) << 32 |
           static_cast<uint32_t>(second);
  }
  const Entry* find(uint64_t key) const {
    if (slots_.empty()) return nullptr;
    for (size_t at = start(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].key == key) return &slots_[at];
      if (slots_[at].key == UINT64_MAX) return nullptr;
    }
  }
  // The last one of the same key stays.
  void set(Entry entry) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    size_t at = start(entry.key);
    while (slots_[at].key != UINT64_MAX && slots_[at].key != entry.key)
      at = (at + 1) & (slots_.size() - 1);
    if (slots_[at].key == UINT64_MAX) ++count_;
    slots_[at] = entry;
  }
  size_t size() const { return count_; }

 private:
  size_t start(uint64_t key) const {
    const uint64_t hash = key * 0x9E3779B97F4A7C15u;
    return (hash ^ hash >> 32) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Entry> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    count_ = 0;
    for (const Entry& entry : old)
      if (entry.key != UINT64_MAX) set(entry);
  }

  std::vector<Entry> slots_;
  size_t count_ = 0;
};

}  // namespace mase
