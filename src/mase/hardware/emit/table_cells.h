// SPDX-License-Identifier: Apache-2.0
// A table of many bits as the cells of a family: tables of six inputs and the multiplexers behind
// them, chosen here and not by synthesis, which takes seconds for a table and finds more of them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mase {

class TableCells {
 public:
  // `bits`: the index, the lowest bit first; names of wires begin with `parts`.
  TableCells(std::vector<std::string> bits, std::string parts)
      : bits_(std::move(bits)), parts_(std::move(parts)) {}

  // One bit of the result, as an expression; a value for each index.
  std::string value_of(const std::vector<bool>& function);
  // What was written since.
  std::string take_text();

 private:
  std::string wire_of(const std::vector<size_t>& support, const std::vector<bool>& table);
  std::string leaf(const std::vector<size_t>& support, const std::vector<bool>& table);
  // A wire that is declared, then written with @ for its name; one that is there already.
  std::string written(const std::string& key, const std::string& before, const std::string& behind);

  std::vector<std::string> bits_;
  std::string parts_, text_;
  std::map<std::string, std::string> known_;  // what drives a wire => its name
};

// Modules of these cells by name, with the same meaning for anything else, and what the cells do.
std::map<std::string, std::string> table_modules();
std::map<std::string, std::string> plain_table_modules();
std::string table_cell_models();

}  // namespace mase
