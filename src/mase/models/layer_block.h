// SPDX-License-Identifier: Apache-2.0
// A class of PyTorch that stands for several layers (TransformerEncoderLayer): networks described
// in TOML name it as a type, and its layers get the names that PyTorch's parameters have.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"

namespace mase {

struct LayerBlockRecord {
  static constexpr const char* kind = "block";
  std::string name;  // the class
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string help = {};
  Schema attributes;
  // The tables that stand for it, as [[layers]] has them; "input" is what it takes.
  std::function<List(const Value& attributes)> layers;
};

}  // namespace mase
