// SPDX-License-Identifier: Apache-2.0
// Tables of any file format behind one interface: named columns, rows in blocks of doubles. Readers
// stream: none holds more than a block. Each format is one file that registers one record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mase/base/registry.h"

namespace mase {

struct TableColumn {
  std::string name;
  bool text = false;                         // cells are numbers of `categories`
  std::vector<std::string> categories = {};  // as declared, else sorted
  bool declared = false;                     // the file lists the categories itself
  bool complete = false;                     // known to have every cell
  std::string problem = {};                  // why this column cannot be read, if so
};

struct TableOptions {
  std::string table = {};                      // a data set inside the file (HDF5), or a member
  std::vector<std::string> text_columns = {};  // text whatever the cells look like
  std::vector<std::string> missing = {};       // further words for a cell that is not there
};

constexpr int64_t most_columns = 1 << 20;

// A cell that is not there: missing in text columns too.
constexpr double missing_cell = std::numeric_limits<double>::quiet_NaN();

class TableSource {
 public:
  explicit TableSource(std::string path) : path_(std::move(path)) {}
  virtual ~TableSource() = default;
  TableSource(const TableSource&) = delete;
  TableSource& operator=(const TableSource&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<TableColumn>& columns() const { return columns_; }
  int64_t rows() const { return rows_; }
  std::optional<size_t> find(std::string_view name) const;  // the number of a column
  size_t column(const std::string& name) const;  // the same, or an error naming the nearest

  // Which columns read() delivers, and in which order; all by default. A column with a problem
  // cannot be selected.
  void select(std::vector<size_t> columns);
  const std::vector<size_t>& selected() const { return selected_; }

  // The next rows, row-major [rows][selected columns], at most `at_most` of them; 0 at the end.
  virtual int64_t read(double* cells, int64_t at_most) = 0;
  // Where a row of the last block is in the file: "a.csv:17", "a.h5: row 16".
  virtual std::string place(int64_t row_of_block) const = 0;

 protected:
  void set_columns(std::vector<TableColumn> columns);

  std::string path_;
  std::vector<TableColumn> columns_;
  std::vector<size_t> selected_;
  int64_t rows_ = 0;

 private:
  std::unordered_map<std::string_view, size_t> numbers_;  // of columns, by name
};

struct TableReaderRecord {
  static constexpr const char* kind = "table reader";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::vector<std::string> extensions;  // ".csv"
  // Whether the first bytes of a file are this format's; absent: known by extension only.
  std::function<bool(std::span<const std::byte> head)> recognises = {};
  std::function<std::unique_ptr<TableSource>(const std::string& path, const TableOptions& options)>
      open;
};

// Chooses the reader by the file's first bytes, then by its extension.
std::unique_ptr<TableSource> open_table(const std::string& path, const TableOptions& options = {});
bool has_table_extension(const std::string& path);

// An error where a small file claims to hold a huge table.
void refuse_bomb(const std::string& place, uint64_t stored_bytes, uint64_t expanded_bytes);

}  // namespace mase
