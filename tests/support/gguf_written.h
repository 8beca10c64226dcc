// SPDX-License-Identifier: Apache-2.0
// A small writer of GGUF files for tests: settings and tensors one after another.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/tensor.h"

namespace mase::test {

class GgufWriter {
 public:
  void text(const std::string& key, const std::string& value) {
    begin(key, 8);
    put(settings_, value);
  }
  void whole(const std::string& key, uint32_t value) {
    begin(key, 4);
    put(settings_, value);
  }
  void number(const std::string& key, float value) {
    begin(key, 6);
    put(settings_, value);
  }
  void flag(const std::string& key, bool value) {
    begin(key, 7);
    settings_.push_back(value ? '\1' : '\0');
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    begin(key, 9);
    put(settings_, uint32_t{8});
    put(settings_, uint64_t{values.size()});
    for (const std::string& value : values) put(settings_, value);
  }
  template <class T>
  void list(const std::string& key, uint32_t kind, const std::vector<T>& values) {
    begin(key, 9);
    put(settings_, kind);
    put(settings_, uint64_t{values.size()});
    for (const T value : values) put(settings_, value);
  }
  // As float32.
  void tensor(const std::string& name, const Tensor& values) {
    ++tensors_;
    put(table_, name);
    put(table_, static_cast<uint32_t>(values.shape().size()));
    for (size_t i = values.shape().size(); i-- > 0;)
      put(table_, static_cast<uint64_t>(values.shape()[i]));
    put(table_, uint32_t{0});
    put(table_, uint64_t{data_.size()});
    const Tensor wide = values.to(DType::f32);
    data_.append(reinterpret_cast<const char*>(wide.raw()), wide.bytes());
    data_.resize((data_.size() + 31) / 32 * 32);
  }
  std::string bytes() const {
    std::string file = "GGUF";
    put(file, uint32_t{3});
    put(file, uint64_t{tensors_});
    put(file, uint64_t{count_});
    file += settings_ + table_;
    file.resize((file.size() + 31) / 32 * 32);
    return file + data_;
  }
  void write(const std::string& path) const { std::ofstream(path, std::ios::binary) << bytes(); }

 private:
  template <class T>
  static void put(std::string& to, T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    to.append(bytes, sizeof(T));
  }
  static void put(std::string& to, const std::string& value) {
    put(to, uint64_t{value.size()});
    to += value;
  }
  void begin(const std::string& key, uint32_t kind) {
    ++count_;
    put(settings_, key);
    put(settings_, kind);
  }

  std::string settings_, table_, data_;
  uint64_t count_ = 0, tensors_ = 0;
};

}  // namespace mase::test
