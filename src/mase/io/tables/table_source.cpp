// SPDX-License-Identifier: Apache-2.0
#include "mase/io/tables/table_source.h"

#include <algorithm>
#include <numeric>

#include "mase/base/file.h"

namespace mase {
namespace {

std::vector<std::byte> first_bytes(const std::string& path) {
  constexpr uint64_t enough = 512;
  const InputFile file(path);
  if (file.size() == 0) throw Error(path, "the file is empty");
  std::vector<std::byte> head(std::min(file.size(), enough));
  file.read(head.data(), head.size(), 0, path);
  return head;
}

const TableReaderRecord* by_extension(const std::string& path) {
  const std::string name = lower_case(path);
  for (const TableReaderRecord* reader : Registry<TableReaderRecord>::instance().all())
    for (const std::string& extension : reader->extensions)
      if (ends_with(name, extension)) return reader;
  return nullptr;
}

}  // namespace

std::optional<size_t> TableSource::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return {};
  return found->second;
}

size_t TableSource::column(const std::string& name) const {
  if (const auto number = find(name)) return *number;
  std::vector<std::string> names;
  for (const TableColumn& column : columns_) names.push_back(printable(column.name));
  throw Error(path_, fmt::format("there is no column '{}'", printable(name)),
              suggestion(name, names));
}

void TableSource::select(std::vector<size_t> columns) {
  for (const size_t i : columns) {
    MASE_CHECK(i < columns_.size(), "column {} of {}", i, columns_.size());
    if (!columns_[i].problem.empty())
      throw Error(path_,
                  fmt::format("column '{}' {}", printable(columns_[i].name), columns_[i].problem));
  }
  selected_ = std::move(columns);
}

void TableSource::set_columns(std::vector<TableColumn> columns) {
  columns_ = std::move(columns);
  selected_.clear();
  numbers_.clear();
  for (size_t i = 0; i < columns_.size(); ++i) {
    numbers_.emplace(columns_[i].name, i);  // of two of the same name, the first
    if (columns_[i].problem.empty()) selected_.push_back(i);
  }
}

std::unique_ptr<TableSource> open_table(const std::string& path, const TableOptions& options) {
  const std::vector<std::byte> head = first_bytes(path);
  for (const TableReaderRecord* reader : Registry<TableReaderRecord>::instance().all())
    if (reader->recognises && reader->recognises(head)) return reader->open(path, options);
  if (const TableReaderRecord* reader = by_extension(path)) {
    if (reader->recognises)
      throw Error(path, fmt::format("is not {}, as its name says, or is damaged", reader->summary));
    return reader->open(path, options);
  }
  std::vector<std::string> known;
  for (const TableReaderRecord* reader : Registry<TableReaderRecord>::instance().all())
    for (const std::string& extension : reader->extensions) known.push_back(extension);
  throw Error(path, "is of no known table format", "known: " + join(known, ", "));
}

bool has_table_extension(const std::string& path) { return by_extension(path) != nullptr; }

void refuse_bomb(const std::string& place, uint64_t stored_bytes, uint64_t expanded_bytes) {
  constexpr uint64_t harmless = uint64_t{256} << 20;
  constexpr uint64_t largest_ratio = 200;  // tables of measurements shrink two to tenfold
  if (expanded_bytes <= harmless || expanded_bytes / largest_ratio <= stored_bytes) return;
  throw Error(place,
              fmt::format("{} would expand to {}: refused", human_bytes(double(stored_bytes)),
                          human_bytes(double(expanded_bytes))),
              "a file that grows this much is damaged or hostile; store the table uncompressed if "
              "it is neither");
}

}  // namespace mase
