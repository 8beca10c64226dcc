// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors with the format's own rules: an 8-byte length, a JSON header of at
// most 100 MB, then the data. No key twice, no holes, no overlaps, sizes match. The header goes
// through the JSON library's events, not its tree: a hostile header must not cost a tree first.
#include "mase/io/networks/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "mase/base/cut_files.h"
#include "mase/base/file.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/tensor_view.h"

namespace mase {
namespace {

struct DTypeCode {
  const char* code;
  DType dtype;
};
constexpr DTypeCode codes[] = {
    {"F64", DType::f64},      {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16},
    {"I64", DType::i64},      {"I32", DType::i32}, {"I16", DType::i16}, {"I8", DType::i8},
    {"U64", DType::u64},      {"U32", DType::u32}, {"U16", DType::u16}, {"U8", DType::u8},
    {"BOOL", DType::boolean},
};

constexpr size_t length_bytes = 8;
constexpr size_t tensor_cost = 400;  // what one entry costs us at most, shape aside
constexpr size_t most_dimensions = 64;

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0, end = 0;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Follows the header's fixed structure; anything else is an error at its byte.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(std::string place, Dict* metadata, MemoryBudget& budget)
      : place_(std::move(place)), metadata_(metadata), budget_(budget) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_float(number_float_t, const string_t&) override { unexpected("a fraction"); }
  bool binary(binary_t&) override { unexpected("binary data"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_unsigned(number_unsigned_t number) override {
    if (where_ == Where::shape) {
      if (number > static_cast<uint64_t>(INT64_MAX)) fail("a dimension is too large");
      if (entry().shape.size() >= most_dimensions) fail("too many dimensions");
      entry().shape.push_back(static_cast<int64_t>(number));
    } else if (where_ == Where::offsets) {
      if (offsets_ == 2) fail("'data_offsets' must hold two numbers");
      (offsets_ == 0 ? entry().begin : entry().end) = number;
      ++offsets_;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool string(string_t& text) override {
    if (where_ == Where::metadata) {
      budget_.charge(text.size() + key_.size() + 2 * sizeof(Dict::Item), place_);
      metadata_items_.emplace_back(key_, text);
      return true;
    }
    if (where_ != Where::tensor || key_ != "dtype") unexpected("text");
    for (const DTypeCode& known : codes)
      if (text == known.code) {
        entry().dtype = known.dtype;
        return true;
      }
    fail(fmt::format("unknown dtype '{}'", printable(text.substr(0, 40))));
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::start) {
      where_ = Where::top;
    } else if (where_ == Where::top && key_ == "__metadata__") {
      if (seen_metadata_) fail("the key '__metadata__' is written twice");
      seen_metadata_ = true;
      where_ = Where::metadata;
    } else if (where_ == Where::top) {
      budget_.charge(tensor_cost + key_.size(), place_);
      entries_.emplace_back();
      entry().name = key_;
      where_ = Where::tensor;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    key_ = text;
    if (where_ != Where::tensor) return true;
    bool* seen = text == "dtype"          ? &entry().has_dtype
                 : text == "shape"        ? &entry().has_shape
                 : text == "data_offsets" ? &entry().has_offsets
                                          : nullptr;
    if (!seen) fail(fmt::format("unknown key '{}'", printable(text.substr(0, 40))));
    if (*seen) fail(fmt::format("the key '{}' is written twice", text));
    *seen = true;
    return true;
  }

  bool end_object() override {
    if (where_ == Where::tensor) {
      if (!entry().has_dtype || !entry().has_shape || !entry().has_offsets)
        fail("needs dtype, shape and data_offsets");
      where_ = Where::top;
    } else if (where_ == Where::metadata) {
      where_ = Where::top;
    } else {
      where_ = Where::start;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (where_ != Where::tensor || key_ == "dtype") unexpected("a list");
    where_ = key_ == "shape" ? Where::shape : Where::offsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (where_ == Where::offsets && offsets_ != 2) fail("'data_offsets' must hold two numbers");
    budget_.charge(entry().shape.size() * 4 * sizeof(int64_t), place_);
    where_ = Where::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw Error(fmt::format("{}: byte {}", place_, length_bytes + position),
                "the safetensors header is not valid JSON");
  }

  std::vector<Entry> take() {
    check_duplicates();
    if (metadata_)
      for (auto& [key, text] : metadata_items_) metadata_->add(key, std::move(text));
    return std::move(entries_);
  }

 private:
  enum class Where { start, top, metadata, tensor, shape, offsets };

  Entry& entry() { return entries_.back(); }

  [[noreturn]] void fail(const std::string& cause) const {
    const bool inside = where_ != Where::start && where_ != Where::top && !entries_.empty() &&
                        where_ != Where::metadata;
    throw Error(place_, inside ? fmt::format("tensor '{}': {}",
                                             printable(entries_.back().name.substr(0, 200)), cause)
                               : cause);
  }
  [[noreturn]] void unexpected(const char* what) const {
    fail(fmt::format("the safetensors header has {} where it must not", what));
  }

  void check_duplicates() const {
    std::vector<std::string_view> names;
    names.reserve(std::max(entries_.size(), metadata_items_.size()));
    const auto check = [&] {
      std::sort(names.begin(), names.end());
      const auto twice = std::adjacent_find(names.begin(), names.end());
      if (twice != names.end())
        throw Error(place_, fmt::format("the key '{}' is written twice",
                                        printable(std::string(twice->substr(0, 200)))));
      names.clear();
    };
    for (const Entry& entry : entries_) names.push_back(entry.name);
    check();
    for (const auto& [key, text] : metadata_items_) names.push_back(key);
    check();
  }

  std::string place_;
  Dict* metadata_;
  MemoryBudget& budget_;
  Where where_ = Where::start;
  std::string key_;
  int offsets_ = 0;
  bool seen_metadata_ = false;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> metadata_items_;
};

uint64_t little_endian(const std::byte* at) {
  uint64_t value = 0;
  for (size_t i = length_bytes; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(at[i]);
  return value;
}

// Sizes agree, and the tensors tile the data without holes or overlaps.
void check_layout(const std::vector<Entry>& entries, size_t data_size, const std::string& place) {
  const auto fail = [&](const Entry& entry, const std::string& cause) {
    throw Error(place, fmt::format("tensor '{}': {}", printable(entry.name.substr(0, 200)), cause));
  };
  std::vector<const Entry*> by_offset;
  by_offset.reserve(entries.size());
  for (const Entry& entry : entries) {
    if (entry.begin > entry.end || entry.end > data_size)
      fail(entry, fmt::format("its bytes {} to {} are not inside the file's {} bytes of data",
                              entry.begin, entry.end, data_size));
    uint64_t bytes = dtype_size(entry.dtype);
    bool empty = false;
    for (const int64_t dimension : entry.shape) {
      empty |= dimension == 0;
      if (dimension != 0 &&
          (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes) ||
           bytes > uint64_t{1} << 56))
        fail(entry, "its shape is too large");
    }
    if (empty) bytes = 0;
    if (bytes != entry.end - entry.begin)
      fail(entry,
           fmt::format("{} {} takes {} bytes, but the file gives it {}", dtype_name(entry.dtype),
                       shape_text(entry.shape), bytes, entry.end - entry.begin));
    by_offset.push_back(&entry);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const Entry* a, const Entry* b) {
    return std::tie(a->begin, a->end) < std::tie(b->begin, b->end);
  });
  uint64_t covered = 0;
  for (const Entry* entry : by_offset) {
    if (entry->begin != covered)
      fail(*entry, entry->begin < covered ? "overlaps another tensor"
                                          : fmt::format("there is a hole before it, at byte {} of "
                                                        "the data",
                                                        covered));
    covered = entry->end;
  }
  if (covered != data_size)
    throw Error(place, fmt::format("the last {} bytes belong to no tensor", data_size - covered));
}

std::string header_text(const TensorTable& tensors, const Dict& metadata,
                        std::vector<size_t>& layout, const std::string& place) {
  layout.resize(tensors.size());
  std::iota(layout.begin(), layout.end(), size_t{0});
  std::stable_sort(layout.begin(), layout.end(), [&](size_t a, size_t b) {
    return dtype_size(tensors[a].second.dtype()) > dtype_size(tensors[b].second.dtype());
  });
  std::vector<uint64_t> begins(tensors.size());
  uint64_t at = 0;
  for (const size_t index : layout) {
    begins[index] = at;
    at += tensors[index].second.bytes();
  }
  const auto quoted = [](const std::string& text) { return to_json(Value(text)); };
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (text.back() != '{') text += ',';
      text += quoted(key) + ":" + quoted(value.is_string() ? value.as_string() : to_json(value));
    }
    text += '}';
  }
  std::vector<std::string_view> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    names.push_back(name);
    if (text.size() > 1) text += ',';
    const auto code = std::find_if(std::begin(codes), std::end(codes),
                                   [&, t = &tensor](auto& c) { return c.dtype == t->dtype(); });
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        quoted(name), code->code, fmt::join(tensor.shape(), ","), begins[i],
                        begins[i] + tensor.bytes());
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw Error(place, fmt::format("two tensors are named '{}'", printable(*twice)));
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');  // the data begin aligned
  if (text.size() > ReadLimits{}.header)
    throw Error(place, "more tensors than a safetensors header may list");
  return text;
}

}  // namespace

bool looks_like_safetensors(std::span<const std::byte> bytes) {
  return bytes.size() > length_bytes && bytes[length_bytes] == std::byte{'{'} &&
         little_endian(bytes.data()) <= ReadLimits{}.header;
}

TensorTable parse_safetensors(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              const std::string& place, Dict* metadata, MemoryBudget& budget,
                              const ReadLimits& limits) {
  if (bytes.size() < length_bytes)
    throw Error(place, fmt::format("{} bytes are too few for a safetensors file", bytes.size()));
  const uint64_t header = little_endian(bytes.data());
  if (header > limits.header)
    throw Error(fmt::format("{}: byte 0", place),
                fmt::format("the header claims {} bytes; the most is {}", header, limits.header));
  if (header > bytes.size() - length_bytes)
    throw Error(fmt::format("{}: byte 0", place),
                fmt::format("the header claims {} bytes of a file of {}", header, bytes.size()),
                "the file is cut short or not a safetensors file");
  const char* text = reinterpret_cast<const char*>(bytes.data()) + length_bytes;
  if (header == 0 || *text != '{')
    throw Error(fmt::format("{}: byte 8", place), "the header must begin with '{'");
  HeaderReader reader(place, metadata, budget);
  nlohmann::json::sax_parse(text, text + header, &reader);
  const std::vector<Entry> entries = reader.take();
  const std::span<const std::byte> data = bytes.subspan(length_bytes + header);
  check_layout(entries, data.size(), place);

  TensorTable tensors;
  tensors.reserve(entries.size());
  for (const Entry& entry : entries) {
    tensors.emplace_back(entry.name, view_or_copy(entry.shape, entry.dtype,
                                                  data.subspan(entry.begin), owner, budget, place));
  }
  return tensors;
}

size_t safetensors_size(const TensorTable& tensors, const Dict& metadata,
                        const std::string& place) {
  std::vector<size_t> layout;
  size_t size = length_bytes + header_text(tensors, metadata, layout, place).size();
  for (const auto& [name, tensor] : tensors) size += tensor.bytes();
  return size;
}

void write_safetensors(const TensorTable& tensors, const Dict& metadata, const std::string& place,
                       const std::function<void(const void* data, size_t size)>& put) {
  std::vector<size_t> layout;
  const std::string header = header_text(tensors, metadata, layout, place);
  unsigned char length[length_bytes];
  for (size_t i = 0; i < length_bytes; ++i)
    length[i] = static_cast<unsigned char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  put(length, sizeof length);
  put(header.data(), header.size());
  for (const size_t index : layout) put(tensors[index].second.raw(), tensors[index].second.bytes());
}

TensorTable load_safetensors(const std::string& path, Dict* metadata) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  MemoryBudget budget({}, file->bytes().size());
  TensorTable tensors = parse_safetensors(file->bytes(), file, path, metadata, budget);
  throw_if_cut();
  return tensors;
}

void save_safetensors(const std::string& path, const TensorTable& tensors, const Dict& metadata) {
  write_file_atomically(path, [&](int fd) {
    write_safetensors(tensors, metadata, path,
                      [&](const void* data, size_t size) { write_all(fd, data, size, path); });
  });
}

}  // namespace mase
