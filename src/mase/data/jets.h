// SPDX-License-Identifier: Apache-2.0
// Files of real jets: which names they go by, how their columns are called, which variant they are.
#pragma once

#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/io/table_source.h"

namespace mase {

// Where one variant of the jet data comes from and what its file is called.
struct JetSource {
  std::string variant;  // "cernbox", "openml"
  std::string file;
  std::string address;
  std::string description;
  int64_t rows;  // before duplicates are dropped
};
const std::vector<JetSource>& jet_sources();

// --data-dir, else MASE_DATA, else ~/.cache/mase.
std::string data_folder(const DatasetOptions& options);
std::string data_folder(const std::string& given = "");

// The jet file in that folder, or an empty text.
std::string find_jet_file(const std::string& folder);

// Whether a table has the 16 jet features and the classes, under either naming.
bool is_jet_table(const TableSource& source);

Dataset load_jet_file(const std::string& path, const DatasetOptions& options);

}  // namespace mase
