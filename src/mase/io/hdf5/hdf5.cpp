// SPDX-License-Identifier: Apache-2.0
// HDF5 tables: a compound table (the original jet file's `t_allpar_new`), or a matrix with a list
// of column names beside it (the later jet files' `jets` and `jetFeatureNames`). Rows are read in
// blocks as they lie in the file and only the chosen columns are decoded.
#include <algorithm>
#include <cstring>
#include <optional>

#include "mase/io/hdf5/hdf5_file.h"
#include "mase/io/tables/table_source.h"

namespace mase::hdf5_reader {
namespace {

using hdf5::Dataset;
using hdf5::TypeClass;

constexpr size_t longest_label = 65536;

bool is_table(const Dataset& set) {
  return set.type.kind == TypeClass::compound && set.shape.size() == 1;
}
bool is_matrix(const Dataset& set) {
  return set.type.kind == TypeClass::number && set.shape.size() == 2;
}
bool is_text(const Dataset& set) {
  return set.type.kind == TypeClass::text || set.type.kind == TypeClass::variable_text;
}

std::string shown(std::vector<std::string> names) {
  constexpr size_t most = 12;
  if (names.size() > most) {
    names.resize(most);
    names.emplace_back("...");
  }
  return join(names, ", ");
}

// A one-dimensional list of texts, one for each column.
const Dataset* names_for(const Dataset& matrix, const std::vector<Dataset>& found) {
  const Dataset* best = nullptr;
  for (const Dataset& set : found) {
    if (!is_text(set) || set.shape.size() != 1 || set.shape[0] != matrix.shape[1]) continue;
    // jetFeatureNames before particleFeatureNames when both fit.
    if (!best ||
        (set.path.find("jet") != std::string::npos && best->path.find("jet") == std::string::npos))
      best = &set;
  }
  return best;
}

class Hdf5Source : public TableSource {
 public:
  Hdf5Source(const std::string& path, const TableOptions& options)
      : TableSource(path), file_(path), set_(choose(options.table)) {
    place_ = fmt::format("{}: {}", path_, printable(set_.path));
    rows_here_.emplace(file_, set_, place_);
    rows_ = static_cast<int64_t>(set_.shape[0]);
    if (is_table(set_)) {
      fields_ = set_.type.members;
    } else {
      const auto width = static_cast<size_t>(set_.shape[1]);
      fields_.assign(width, set_.type.number);
      for (size_t i = 0; i < width; ++i) {
        fields_[i].offset = i * set_.type.size;
        fields_[i].name = fmt::format("column_{}", i + 1);
      }
      if (const Dataset* list = names_for(set_, file_.datasets())) take_names(*list);
    }
    std::vector<TableColumn> columns;
    for (const NpyField& field : fields_)
      columns.push_back({.name = field.name, .problem = field.problem});
    set_columns(std::move(columns));
  }

  int64_t read(double* cells, int64_t at_most) override {
    first_ = next_;
    const int64_t wanted = std::min(at_most, rows_ - next_);
    while (next_ < first_ + wanted) {
      auto count = static_cast<uint64_t>(first_ + wanted - next_);
      const std::span<const std::byte> block =
          rows_here_->read(static_cast<uint64_t>(next_), count);
      for (uint64_t row = 0; row < count; ++row) {
        const std::byte* item = block.data() + row * rows_here_->row_bytes();
        for (const size_t column : selected_) *cells++ = npy_value(item, fields_[column]);
      }
      next_ += static_cast<int64_t>(count);
    }
    return next_ - first_;
  }

  std::string place(int64_t row) const override {
    return fmt::format("{}: row {}", place_, first_ + row);
  }

 private:
  const Dataset& choose(const std::string& wanted) const {
    const std::vector<Dataset>& found = file_.datasets();
    std::vector<std::string> names;
    std::vector<const Dataset*> tables, named, matrices;
    const Dataset* unreadable = nullptr;
    for (const Dataset& set : found) {
      if (set.path == (wanted.empty() ? "t_allpar_new" : wanted) || "/" + set.path == wanted) {
        if (is_table(set) || is_matrix(set)) return set;
        throw Error(path_,
                    fmt::format("'{}' {}", printable(set.path),
                                set.problem.empty() ? "is not a table" : set.problem),
                    set.problem.empty() ? "" : "the file is cut short or damaged");
      }
      names.push_back(printable(set.path));
      if (is_table(set)) tables.push_back(&set);
      if (is_matrix(set)) (names_for(set, found) ? named : matrices).push_back(&set);
      if (set.type.size == 0) unreadable = &set;
    }
    if (!wanted.empty())
      throw Error(path_, fmt::format("there is no data set '{}'", printable(wanted)),
                  suggestion(wanted, names));
    for (const auto* group : {&tables, &named, &matrices}) {
      if (group->size() == 1) return *group->front();
      if (group->empty()) continue;
      // Jet files hold `jets` beside images of other widths: the one whose names say so wins.
      for (const Dataset* set : *group)
        if (set->path == "jets") return *set;
      throw Error(path_, "there are several tables", "choose one: " + shown(names));
    }
    if (unreadable)
      throw Error(path_, fmt::format("'{}' {}", printable(unreadable->path), unreadable->problem),
                  "the file is cut short or damaged, or in a form not read here: write it again "
                  "with h5py.File(..., libver='earliest')");
    throw Error(path_, names.empty() ? std::string("there is no data set in the file")
                                     : "there is no table among " + shown(names));
  }

  void take_names(const Dataset& list) {
    const std::string place = fmt::format("{}: {}", path_, printable(list.path));
    if (list.type.size > longest_label)
      throw Error(place, "its column names are too long", "the file is damaged");
    hdf5::Rows rows(file_, list, place);
    for (uint64_t i = 0; i < fields_.size();) {
      uint64_t count = fields_.size() - i;
      const std::span<const std::byte> block = rows.read(i, count);
      for (uint64_t k = 0; k < count; ++k, ++i) {
        const auto item = block.subspan(k * rows.row_bytes(), rows.row_bytes());
        const char* text = reinterpret_cast<const char*>(item.data());
        ByteReader element(item, place);
        const std::string name = list.type.kind == TypeClass::variable_text
                                     ? file_.heap_text(element)
                                     : strip(std::string(text, ::strnlen(text, item.size())));
        if (!name.empty()) fields_[i].name = name;
      }
    }
  }

  hdf5::File file_;
  const Dataset& set_;
  std::string place_;
  std::optional<hdf5::Rows> rows_here_;
  std::vector<NpyField> fields_;
  int64_t next_ = 0, first_ = 0;
};

const Register<TableReaderRecord> registered{
    {.name = "hdf5",
     .summary = "an HDF5 file",
     .extensions = {".h5", ".hdf5", ".z"},
     .recognises =
         [](std::span<const std::byte> head) {
           return head.size() >= 8 && std::memcmp(head.data(), "\x89HDF\r\n\x1a\n", 8) == 0;
         },
     .open =
         [](const std::string& path, const TableOptions& options) {
           return std::unique_ptr<TableSource>(new Hdf5Source(path, options));
         }}};

}  // namespace
}  // namespace mase::hdf5_reader
