// SPDX-License-Identifier: Apache-2.0
// Data sets that are a table file, on its own or described in TOML.
#pragma once

#include <string>

#include "mase/data/dataset.h"
#include "mase/data/table.h"

namespace mase {

// Everything that can be said about a table.
struct TableDescription {
  std::string name = {};
  std::string file;
  TableOptions reading = {};
  TableRequest request = {};
  bool drop_duplicates = false;
  std::string notice = {};
  Shape shape = {};                       // of a sample; empty: a vector of features
  std::vector<float> class_weights = {};  // in class order
};

Dataset load_described_table(const TableDescription& description, const DatasetOptions& options);
Dataset load_table_file(const std::string& path, const DatasetOptions& options);

// A TOML file with `file` and `target`; see docs/data.md for its keys.
Dataset load_toml_dataset(const std::string& path, DatasetOptions options);

}  // namespace mase
