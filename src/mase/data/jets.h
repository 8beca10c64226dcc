// SPDX-License-Identifier: Apache-2.0
// Files of real jets: which names they go by, how their columns are called, which variant they are.
#pragma once

#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/io/tables/table_source.h"

namespace mase {

// The two published files.
const std::vector<DatasetFile>& jet_files();

// --data-dir, else MASE_DATA, else ~/.cache/mase.
std::string data_folder(const DatasetOptions& options);
std::string data_folder(const std::string& given = "");

// The jet file in that folder, or an empty text.
std::string find_jet_file(const std::string& folder);

// Whether a table has the 16 jet features and the classes, under either naming.
bool is_jet_table(const TableSource& source);
// And nothing else.
bool has_jet_columns_only(const TableSource& source);

Dataset load_jet_file(const std::string& path, const DatasetOptions& options);

}  // namespace mase
