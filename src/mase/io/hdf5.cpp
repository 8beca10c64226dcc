// SPDX-License-Identifier: Apache-2.0
// HDF5 tables: a compound table (the original jet file's `t_allpar_new`), or a matrix with a list
// of column names beside it (the later jet files' `jets` and `jetFeatureNames`). Rows are read in
// blocks as they lie in the file and only the chosen columns are decoded.
#include <algorithm>
#include <cstring>

#include "mase/io/hdf5_handle.h"
#include "mase/io/npy.h"
#include "mase/io/table_source.h"

namespace mase::hdf5_reader {
namespace {

using hdf5::Handle;

constexpr int most_members = 65536;
constexpr hsize_t most_rows = hsize_t{1} << 38;
constexpr size_t largest_row = size_t{1} << 24;
constexpr size_t largest_chunk = size_t{1} << 28;
constexpr size_t block_bytes = size_t{4} << 20;
constexpr int most_objects = 10000;
constexpr int deepest_group = 8;

// How a stored number is decoded by ourselves; types not listed go through HDF5's conversion.
bool decode_as(hid_t type, NpyField& field) {
  struct Known {
    hid_t type;
    char kind;
    size_t size;
    bool swapped;
  };
  const Known known[] = {
      {H5T_IEEE_F32LE, 'f', 4, false}, {H5T_IEEE_F64LE, 'f', 8, false},
      {H5T_IEEE_F32BE, 'f', 4, true},  {H5T_IEEE_F64BE, 'f', 8, true},
      {H5T_STD_I8LE, 'i', 1, false},   {H5T_STD_I16LE, 'i', 2, false},
      {H5T_STD_I32LE, 'i', 4, false},  {H5T_STD_I64LE, 'i', 8, false},
      {H5T_STD_U8LE, 'u', 1, false},   {H5T_STD_U16LE, 'u', 2, false},
      {H5T_STD_U32LE, 'u', 4, false},  {H5T_STD_U64LE, 'u', 8, false},
  };
  for (const Known& one : known) {
    if (H5Tequal(type, one.type) <= 0) continue;
    field.kind = one.kind;
    field.size = one.size;
    field.swapped = one.swapped;
    return true;
  }
  return false;
}

struct Candidate {
  std::string path;
  H5T_class_t type_class;
  std::vector<hsize_t> shape;
};

// All data sets of a file, over hard links only: links to other files are not followed.
struct Listing {
  std::vector<Candidate> found;
  int objects = 0;
  int depth = 0;
  std::string prefix;
};

herr_t list_link(hid_t group, const char* name, const H5L_info_t* info, void* data) {
  auto& listing = *static_cast<Listing*>(data);
  if (++listing.objects > most_objects) return 1;  // stops
  if (info->type != H5L_TYPE_HARD) return 0;
  const std::string path = listing.prefix + name;
  H5O_info_t object;
  if (H5Oget_info_by_name(group, name, &object, H5P_DEFAULT) < 0) return 0;
  if (object.type == H5O_TYPE_GROUP && listing.depth < deepest_group) {
    const Handle inner = hdf5::group(H5Gopen2(group, name, H5P_DEFAULT));
    if (!inner) return 0;
    const std::string outer = listing.prefix;
    listing.prefix = path + "/";
    ++listing.depth;
    H5Literate(inner.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, list_link, data);
    --listing.depth;
    listing.prefix = outer;
  } else if (object.type == H5O_TYPE_DATASET) {
    const Handle set = hdf5::dataset(H5Dopen2(group, name, H5P_DEFAULT));
    if (!set) return 0;
    const Handle space = hdf5::space(H5Dget_space(set.get()));
    const Handle type = hdf5::type(H5Dget_type(set.get()));
    const int rank = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
    if (!type || rank < 1 || rank > 8) return 0;
    Candidate candidate{path, H5Tget_class(type.get()), std::vector<hsize_t>(size_t(rank))};
    H5Sget_simple_extent_dims(space.get(), candidate.shape.data(), nullptr);
    listing.found.push_back(std::move(candidate));
  }
  return 0;
}

class Hdf5Source : public TableSource {
 public:
  Hdf5Source(const std::string& path, const TableOptions& options) : TableSource(path) {
    const hdf5::Silence silence;
    file_ = hdf5::file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    if (!file_)
      throw Error(path, fmt::format("cannot be opened as HDF5: {}", hdf5::last_failure()),
                  "the file is cut short or damaged");
    Listing listing;
    H5Literate(file_.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, list_link, &listing);
    const Candidate chosen = choose(listing.found, options.table);
    place_ = fmt::format("{}: {}", path_, printable(chosen.path));
    open(chosen);
    if (compound_)
      describe_members();
    else
      name_columns(chosen, listing.found);
  }

  int64_t read(double* cells, int64_t at_most) override {
    const hdf5::Silence silence;
    first_ = next_;
    const auto fitting = static_cast<int64_t>(std::max<size_t>(1, block_bytes / stored_row_));
    const int64_t count = std::min({at_most, rows_ - next_, fitting});
    if (count <= 0) return 0;
    compound_ ? read_records(cells, count) : read_matrix(cells, count);
    next_ += count;
    return count;
  }

  std::string place(int64_t row) const override {
    return fmt::format("{}: row {}", place_, first_ + row);
  }

 private:
  static bool numeric(H5T_class_t type) {
    return type == H5T_FLOAT || type == H5T_INTEGER || type == H5T_ENUM;
  }

  Candidate choose(const std::vector<Candidate>& found, const std::string& wanted) const {
    std::vector<std::string> names;
    std::vector<const Candidate*> tables, named, matrices;
    for (const Candidate& candidate : found) {
      names.push_back(printable(candidate.path));
      const bool table = candidate.type_class == H5T_COMPOUND && candidate.shape.size() == 1;
      const bool matrix = numeric(candidate.type_class) && candidate.shape.size() == 2;
      if (candidate.path == (wanted.empty() ? "t_allpar_new" : wanted) ||
          "/" + candidate.path == wanted) {
        if (table || matrix) return candidate;
        throw Error(path_, fmt::format("'{}' is not a table", printable(candidate.path)));
      }
      if (table) tables.push_back(&candidate);
      if (matrix) (names_for(candidate, found) ? named : matrices).push_back(&candidate);
    }
    if (!wanted.empty())
      throw Error(path_, fmt::format("there is no data set '{}'", printable(wanted)),
                  suggestion(wanted, names));
    for (const auto* group : {&tables, &named, &matrices}) {
      if (group->size() == 1) return *group->front();
      if (group->empty()) continue;
      // Jet files hold `jets` beside images of other widths: the one whose names say so wins.
      for (const Candidate* candidate : *group)
        if (candidate->path == "jets") return *candidate;
      throw Error(path_, "there are several tables", "choose one: " + shown(names));
    }
    throw Error(path_, names.empty() ? std::string("there is no data set in the file")
                                     : "there is no table among " + shown(names));
  }

  static std::string shown(std::vector<std::string> names) {
    constexpr size_t most = 12;
    if (names.size() > most) {
      names.resize(most);
      names.emplace_back("...");
    }
    return join(names, ", ");
  }

  // A one-dimensional list of texts, one for each column.
  static const Candidate* names_for(const Candidate& matrix, const std::vector<Candidate>& found) {
    const Candidate* best = nullptr;
    for (const Candidate& candidate : found) {
      if (candidate.type_class != H5T_STRING || candidate.shape.size() != 1 ||
          candidate.shape[0] != matrix.shape[1])
        continue;
      // jetFeatureNames before particleFeatureNames when both fit.
      if (!best || (candidate.path.find("jet") != std::string::npos &&
                    best->path.find("jet") == std::string::npos))
        best = &candidate;
    }
    return best;
  }

  [[noreturn]] void damaged(const std::string& what) const {
    throw Error(place_, fmt::format("{}: {}", what, hdf5::last_failure()),
                "the file is cut short or damaged");
  }

  void open(const Candidate& chosen) {
    compound_ = chosen.type_class == H5T_COMPOUND;
    dataset_ = hdf5::dataset(H5Dopen2(file_.get(), chosen.path.c_str(), H5P_DEFAULT));
    if (!dataset_) damaged("cannot be opened");
    type_ = hdf5::type(H5Dget_type(dataset_.get()));
    if (!type_) damaged("has no readable type");
    const size_t size = H5Tget_size(type_.get());
    if (chosen.shape[0] == 0) throw Error(place_, "the table has no rows");
    const hsize_t width = compound_ ? 1 : chosen.shape[1];
    // Together the bounds keep every product below 2^63.
    if (chosen.shape[0] > most_rows || size == 0 || size > largest_row || width == 0 ||
        width > most_members || width > largest_row / size)
      throw Error(place_, "the table has an impossible shape", "the file is damaged");
    rows_ = static_cast<int64_t>(chosen.shape[0]);
    width_ = static_cast<size_t>(width);
    stored_row_ = size * width_;

    const Handle creation = hdf5::properties(H5Dget_create_plist(dataset_.get()));
    const H5D_layout_t layout = creation ? H5Pget_layout(creation.get()) : H5D_LAYOUT_ERROR;
    if (layout == H5D_LAYOUT_ERROR) damaged("has no readable layout");
    if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0)
      throw Error(place_, "keeps its rows in other files, which is refused");
    const uint64_t stored = H5Dget_storage_size(dataset_.get());
    const uint64_t expanded = static_cast<uint64_t>(rows_) * stored_row_;
    hsize_t file_bytes = 0;
    if (H5Fget_filesize(file_.get(), &file_bytes) < 0 || stored > file_bytes)
      throw Error(place_, "claims to store more than the whole file holds",
                  "the file is cut short or damaged");
    if (H5Pget_nfilters(creation.get()) == 0 && stored < expanded)
      throw Error(place_,
                  fmt::format("declares {} rows ({}) but stores {}", rows_,
                              human_bytes(double(expanded)), human_bytes(double(stored))),
                  "the file is cut short or damaged");
    refuse_bomb(place_, stored, expanded);
    if (layout == H5D_CHUNKED) size_chunk_cache(creation.get(), chosen);
  }

  // HDF5 decompresses a chunk again for every block that touches it unless its cache holds one.
  void size_chunk_cache(hid_t creation, const Candidate& chosen) {
    hsize_t chunk[8] = {};
    const int rank = H5Pget_chunk(creation, 8, chunk);
    if (rank != static_cast<int>(chosen.shape.size())) damaged("has no readable chunks");
    uint64_t bytes = H5Tget_size(type_.get());
    uint64_t across = 1;  // chunks side by side
    for (int i = 0; i < rank; ++i) {
      if (chunk[i] == 0 || bytes > largest_chunk || chunk[i] > largest_chunk)
        throw Error(place_, "has impossible chunks", "the file is damaged");
      bytes *= chunk[i];
      if (i > 0) across *= (chosen.shape[static_cast<size_t>(i)] + chunk[i] - 1) / chunk[i];
    }
    if (bytes > largest_chunk)
      throw Error(place_, fmt::format("has chunks of {}", human_bytes(double(bytes))),
                  "store it in chunks of at most 256 MB");
    const uint64_t wanted = std::min<uint64_t>(largest_chunk, bytes * across);
    if (wanted <= (uint64_t{1} << 20)) return;
    const Handle access = hdf5::properties(H5Pcreate(H5P_DATASET_ACCESS));
    H5Pset_chunk_cache(access.get(), 521, wanted, 1.0);
    dataset_ = hdf5::dataset(H5Dopen2(file_.get(), chosen.path.c_str(), access.get()));
    if (!dataset_) damaged("cannot be opened");
  }

  void describe_members() {
    const int count = H5Tget_nmembers(type_.get());
    if (count <= 0 || count > most_members) damaged("has no readable columns");
    std::vector<TableColumn> columns;
    fields_.resize(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      char* name = H5Tget_member_name(type_.get(), static_cast<unsigned>(i));
      if (!name) damaged("has an unreadable column");
      TableColumn column{.name = name};
      H5free_memory(name);
      const Handle member = hdf5::type(H5Tget_member_type(type_.get(), static_cast<unsigned>(i)));
      if (!member) damaged("has an unreadable column");
      NpyField& field = fields_[static_cast<size_t>(i)];
      field.offset = H5Tget_member_offset(type_.get(), static_cast<unsigned>(i));
      const H5T_class_t type_class = H5Tget_class(member.get());
      Handle base;
      if (type_class == H5T_ENUM) base = hdf5::type(H5Tget_super(member.get()));
      if (!decode_as(base ? base.get() : member.get(), field)) {
        if (type_class == H5T_FLOAT || type_class == H5T_INTEGER)
          field.kind = '?';  // by conversion
        else
          column.problem = type_class == H5T_STRING ? "holds text, not numbers"
                                                    : "is of a type that is not a number";
      } else if (field.size > stored_row_ || field.offset > stored_row_ - field.size) {
        throw Error(place_, "a column lies outside its row", "the file is damaged");
      }
      columns.push_back(std::move(column));
    }
    set_columns(std::move(columns));
  }

  void name_columns(const Candidate& chosen, const std::vector<Candidate>& found) {
    std::vector<TableColumn> columns(width_);
    for (size_t i = 0; i < width_; ++i) columns[i].name = fmt::format("column_{}", i + 1);
    if (const Candidate* list = names_for(chosen, found)) {
      const std::vector<std::string> names = read_texts(list->path);
      for (size_t i = 0; i < std::min(names.size(), width_); ++i)
        if (!names[i].empty()) columns[i].name = names[i];
    }
    set_columns(std::move(columns));
  }

  std::vector<std::string> read_texts(const std::string& path) const {
    const Handle set = hdf5::dataset(H5Dopen2(file_.get(), path.c_str(), H5P_DEFAULT));
    const Handle type = set ? hdf5::type(H5Dget_type(set.get())) : Handle();
    if (!type) damaged("its column names cannot be read");
    std::vector<std::string> texts(width_);
    if (H5Tis_variable_str(type.get()) > 0) {
      const Handle memory = hdf5::type(H5Tcopy(H5T_C_S1));
      H5Tset_size(memory.get(), H5T_VARIABLE);
      H5Tset_cset(memory.get(), H5Tget_cset(type.get()));
      std::vector<char*> pointers(width_, nullptr);
      const herr_t status = H5Dread(set.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                    static_cast<void*>(pointers.data()));
      for (size_t i = 0; i < width_; ++i)
        if (pointers[i]) texts[i] = std::string(pointers[i], ::strnlen(pointers[i], 1024));
      const Handle space = hdf5::space(H5Dget_space(set.get()));
      H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, static_cast<void*>(pointers.data()));
      if (status < 0) damaged("its column names cannot be read");
      return texts;
    }
    const size_t size = H5Tget_size(type.get());
    if (size == 0 || size > 65536) damaged("its column names cannot be read");
    std::vector<char> bytes(size * width_);
    if (H5Dread(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
      damaged("its column names cannot be read");
    for (size_t i = 0; i < width_; ++i) {
      const char* text = bytes.data() + i * size;
      texts[i] = strip(std::string(text, ::strnlen(text, size)));
    }
    return texts;
  }

  void read_block(hid_t memory_type, void* to, int64_t count) {
    const hsize_t start[2] = {static_cast<hsize_t>(next_), 0};
    const hsize_t extent[2] = {static_cast<hsize_t>(count), width_};
    const Handle in_file = hdf5::space(H5Dget_space(dataset_.get()));
    const Handle in_memory = hdf5::space(H5Screate_simple(compound_ ? 1 : 2, extent, nullptr));
    if (!in_file || !in_memory ||
        H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start, nullptr, extent, nullptr) < 0 ||
        H5Dread(dataset_.get(), memory_type, in_memory.get(), in_file.get(), H5P_DEFAULT, to) < 0)
      damaged(fmt::format("rows {} to {} cannot be read", next_, next_ + count - 1));
  }

  void read_records(double* cells, int64_t count) {
    const bool direct = std::all_of(selected_.begin(), selected_.end(),
                                    [&](size_t column) { return fields_[column].kind != '?'; }) &&
                        H5Tdetect_class(type_.get(), H5T_VLEN) == 0 &&
                        H5Tdetect_class(type_.get(), H5T_REFERENCE) == 0 && !has_variable_text();
    if (!direct) return convert_records(cells, count);
    buffer_.resize(stored_row_ * static_cast<size_t>(count));
    read_block(type_.get(), buffer_.data(), count);
    for (int64_t row = 0; row < count; ++row) {
      const std::byte* item = buffer_.data() + static_cast<size_t>(row) * stored_row_;
      for (const size_t column : selected_) *cells++ = npy_value(item, fields_[column]);
    }
  }

  bool has_variable_text() const {
    for (unsigned i = 0; i < fields_.size(); ++i) {
      if (columns_[i].problem.empty()) continue;
      const Handle member = hdf5::type(H5Tget_member_type(type_.get(), i));
      if (H5Tis_variable_str(member.get()) > 0 || H5Tget_class(member.get()) == H5T_COMPOUND ||
          H5Tget_class(member.get()) == H5T_ARRAY)
        return true;
    }
    return false;
  }

  // HDF5 converts the selected members to doubles: slower, for unusual types.
  void convert_records(double* cells, int64_t count) {
    const Handle memory =
        hdf5::type(H5Tcreate(H5T_COMPOUND, std::max<size_t>(1, selected_.size()) * sizeof(double)));
    for (size_t i = 0; i < selected_.size(); ++i)
      if (H5Tinsert(memory.get(), columns_[selected_[i]].name.c_str(), i * sizeof(double),
                    H5T_NATIVE_DOUBLE) < 0)
        damaged("its columns cannot be read");
    read_block(memory.get(), cells, count);
  }

  void read_matrix(double* cells, int64_t count) {
    block_.resize(width_ * static_cast<size_t>(count));
    read_block(H5T_NATIVE_DOUBLE, block_.data(), count);
    for (int64_t row = 0; row < count; ++row)
      for (const size_t column : selected_)
        *cells++ = block_[static_cast<size_t>(row) * width_ + column];
  }

  std::string place_;
  Handle file_, dataset_, type_;
  bool compound_ = false;
  size_t width_ = 1, stored_row_ = 1;
  std::vector<NpyField> fields_;
  std::vector<std::byte> buffer_;
  std::vector<double> block_;
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
