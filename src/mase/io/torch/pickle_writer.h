// SPDX-License-Identifier: Apache-2.0
// Writes the small subset of pickle protocol 2 that torch.load(weights_only=True) opens: plain
// values, ordered dicts and references to tensor storages.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "mase/base/tensor.h"

namespace mase {

class PickleWriter {
 public:
  PickleWriter();

  void none();
  void boolean(bool value);
  void integer(int64_t value);
  void number(double value);
  void text(const std::string& value);

  void begin_list();  // items follow
  void end_list();
  void begin_dict();  // keys and values follow, in turn
  void begin_ordered_dict();
  void end_dict();

  // A tensor that is the whole of the storage with this key.
  void tensor(const Tensor& tensor, const std::string& storage_key);

  std::string finish();

 private:
  void global(const std::string& module, const std::string& name);
  void empty_ordered_dict();
  void integers(const std::vector<int64_t>& values);  // a tuple

  std::string out_;
  std::map<std::string, uint32_t> memo_;  // globals already written
};

}  // namespace mase
