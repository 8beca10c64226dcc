// SPDX-License-Identifier: Apache-2.0
// The messages of an HDF5 object header that a table needs: type, extent, layout, filters.
#include <algorithm>

#include "mase/base/text.h"
#include "mase/io/hdf5/hdf5_file.h"

namespace mase::hdf5 {
namespace {

constexpr size_t most_members = 65536;
constexpr size_t longest_name = 1024;
constexpr int deepest_type = 16;
constexpr size_t largest_element = size_t{1} << 24;

enum Class : uint8_t {
  fixed_point,
  floating_point,
  time_class,
  string_class,
  bit_field,
  opaque_class,
  compound_class,
  reference_class,
  enum_class,
  variable_class,
  array_class
};

// A text that ends with a zero, padded to a multiple of eight where the version says so.
std::string padded_name(ByteReader& reader, bool padded) {
  std::string name;
  const size_t begin = reader.at();
  while (const uint8_t c = reader.u8()) {
    name += static_cast<char>(c);
    if (name.size() > longest_name) reader.fail("a name is too long", "the file is damaged");
  }
  if (padded) reader.take((8 - (reader.at() - begin) % 8) % 8);
  return name;
}

void parse_integer_type(ByteReader& reader, uint32_t bits, Type& type) {
  const uint16_t offset = reader.u16(), precision = reader.u16();
  type.kind = TypeClass::number;
  type.number.kind = bits & 8 ? 'i' : 'u';
  type.number.size = type.size;
  type.number.swapped = bits & 1;
  const bool whole = type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8;
  if (!whole || offset != 0 || precision != 8 * type.size)
    type.number.problem = "is an integer of an unusual width";
}

void parse_float_type(ByteReader& reader, uint32_t bits, Type& type) {
  struct Ieee {
    size_t size;
    uint8_t exponent_at, exponent_size, mantissa_size;
    uint32_t bias;
  };
  static constexpr Ieee known[] = {{2, 10, 5, 10, 15}, {4, 23, 8, 23, 127}, {8, 52, 11, 52, 1023}};
  const uint16_t offset = reader.u16(), precision = reader.u16();
  const uint8_t exponent_at = reader.u8(), exponent_size = reader.u8();
  const uint8_t mantissa_at = reader.u8(), mantissa_size = reader.u8();
  const uint32_t bias = reader.u32();
  type.kind = TypeClass::number;
  type.number.kind = 'f';
  type.number.size = type.size;
  type.number.swapped = bits & 1;
  const bool ordinary = std::any_of(std::begin(known), std::end(known), [&](const Ieee& one) {
    return one.size == type.size && offset == 0 && precision == 8 * type.size &&
           exponent_at == one.exponent_at && exponent_size == one.exponent_size &&
           mantissa_at == 0 && mantissa_size == one.mantissa_size && bias == one.bias &&
           (bits >> 8 & 0xff) == 8 * type.size - 1 && (bits & 0x40) == 0;
  });
  if (!ordinary) type.number.problem = "is a number of an unusual precision";
}

void parse_members(ByteReader& reader, uint8_t version, uint32_t bits, int depth, Type& type) {
  const size_t count = bits & 0xffff;
  if (count == 0 || count > most_members) reader.fail("a compound has no readable columns");
  type.kind = TypeClass::compound;
  type.number.problem = "is of a type that is not a number";
  size_t offset_bytes = 4;
  if (version >= 3)
    for (offset_bytes = 1; offset_bytes < 4 && type.size >> (8 * offset_bytes) != 0;)
      ++offset_bytes;
  for (size_t i = 0; i < count; ++i) {
    std::string name = padded_name(reader, version < 3);
    const uint64_t offset = reader.number(offset_bytes);
    bool array = false;
    if (version == 1) {
      array = reader.u8() != 0;
      reader.take(3 + 4 + 4 + 4 * 4);
    }
    const Type member = parse_type(reader, depth + 1);
    if (member.size > type.size || offset > type.size - member.size)
      reader.fail("a column lies outside its row", "the file is damaged");
    NpyField field = member.number;
    field.name = std::move(name);
    field.offset = offset;
    if (array) field.problem = "is of a type that is not a number";
    type.members.push_back(std::move(field));
  }
}

void skip_enum(ByteReader& reader, uint8_t version, uint32_t bits, int depth, Type& type) {
  const Type base = parse_type(reader, depth + 1);
  const size_t count = bits & 0xffff;
  for (size_t i = 0; i < count; ++i) padded_name(reader, version < 3);
  reader.take(uint64_t{count} * base.size);
  if (base.size != type.size) reader.fail("an enumeration has two sizes", "the file is damaged");
  type.kind = base.kind;
  type.number = base.number;
}

void skip_array(ByteReader& reader, uint8_t version, int depth) {
  const uint8_t rank = reader.u8();
  if (version < 3) reader.take(3);
  reader.take(uint64_t{4} * rank * (version < 3 ? 2 : 1));
  parse_type(reader, depth + 1);
}

}  // namespace

Type parse_type(ByteReader& reader, int depth) {
  if (depth > deepest_type) reader.fail("types are nested too deeply", "the file is damaged");
  const uint8_t first = reader.u8();
  const uint8_t version = first >> 4, type_class = first & 15;
  const auto bits = static_cast<uint32_t>(reader.number(3));
  Type type;
  type.size = reader.u32();
  type.number.problem = "is of a type that is not a number";
  if (version < 1 || version > 4) reader.fail("a type is of an unknown version");
  if (type.size == 0 || type.size > largest_element)
    reader.fail("a type has an impossible size", "the file is damaged");
  if (type_class == fixed_point || type_class == floating_point || type_class == bit_field)
    type.number.problem.clear();
  switch (type_class) {
    case fixed_point:
      parse_integer_type(reader, bits, type);
      break;
    case bit_field:  // PyTables keeps booleans in them
      parse_integer_type(reader, bits & 1, type);
      break;
    case floating_point:
      parse_float_type(reader, bits, type);
      break;
    case time_class:
      reader.take(2);
      break;
    case string_class:
      type.kind = TypeClass::text;
      type.number.problem = "holds text, not numbers";
      break;
    case opaque_class:
      reader.take(bits & 0xff);
      break;
    case compound_class:
      parse_members(reader, version, bits, depth, type);
      break;
    case reference_class:
      break;
    case enum_class:
      skip_enum(reader, version, bits, depth, type);
      break;
    case variable_class:
      if ((bits & 15) == 1) {
        type.kind = TypeClass::variable_text;
        type.number.problem = "holds text, not numbers";
      }
      parse_type(reader, depth + 1);
      break;
    case array_class:
      skip_array(reader, version, depth);
      break;
    default:
      reader.fail("a type is of an unknown class");
  }
  return type;
}

bool parse_space(ByteReader& reader, const File& file, Dataset& set) {
  const uint8_t version = reader.u8(), rank = reader.u8(), flags = reader.u8();
  if (version < 1 || version > 2) reader.fail("an extent is of an unknown version");
  const uint8_t kind = reader.u8();  // reserved in version 1
  if (version == 1) reader.take(4);
  if (rank > 32) reader.fail("a data set has too many dimensions", "the file is damaged");
  const auto extents = [&] {
    std::vector<uint64_t> all;
    for (uint8_t i = 0; i < rank; ++i) all.push_back(file.length(reader));
    return all;
  };
  set.shape = extents();
  set.most = flags & 1 ? extents() : set.shape;
  return rank > 0 && (version == 1 || kind == 1);
}

std::vector<Filter> parse_filters(ByteReader& reader) {
  const uint8_t version = reader.u8(), count = reader.u8();
  if (version < 1 || version > 2) reader.fail("filters are of an unknown version");
  if (count > 32) reader.fail("a data set has too many filters", "the file is damaged");
  if (version == 1) reader.take(6);
  std::vector<Filter> filters;
  for (uint8_t i = 0; i < count; ++i) {
    Filter filter;
    filter.id = reader.u16();
    const uint16_t name_size = version == 1 || filter.id >= 256 ? reader.u16() : 0;
    reader.u16();  // whether it may be left out; each chunk says whether it was
    const uint16_t values = reader.u16();
    const std::string_view name = reader.text(name_size);
    filter.name = std::string(name.substr(0, std::min(name.find('\0'), size_t{100})));
    if (version == 1) reader.take((8 - name_size % 8) % 8);
    for (uint16_t k = 0; k < values; ++k) filter.values.push_back(reader.u32());
    if (version == 1 && values % 2) reader.take(4);
    filters.push_back(std::move(filter));
  }
  return filters;
}

namespace {

void parse_chunk_shape(ByteReader& reader, size_t rank, size_t bytes, Layout& layout) {
  if (rank < 2 || rank > 33) reader.fail("chunks have an impossible rank", "the file is damaged");
  for (size_t i = 0; i < rank; ++i) layout.chunk.push_back(reader.number(bytes));
  layout.chunk.pop_back();  // the size of an element, which the type says too
}

void parse_chunks_v4(ByteReader& reader, const File& file, Dataset& set) {
  Layout& layout = set.layout;
  const uint8_t flags = reader.u8(), rank = reader.u8(), bytes = reader.u8();
  if (bytes < 1 || bytes > 8) reader.fail("chunks have an impossible shape", "the file is damaged");
  parse_chunk_shape(reader, rank, bytes, layout);
  const uint8_t index = reader.u8();
  switch (index) {
    case 1:
      layout.index = ChunkIndex::single;
      if (flags & 2) {
        layout.filtered_single = true;
        layout.size = file.length(reader);
        layout.filter_mask = reader.u32();
      }
      break;
    case 2:
      layout.index = ChunkIndex::implicit;
      break;
    case 3:
      layout.index = ChunkIndex::fixed_array;
      reader.u8();  // the array's header has it too
      break;
    case 4:
      layout.index = ChunkIndex::extensible_array;
      reader.take(5);  // the array's header has them too
      break;
    default:
      set.problem = "is stored in chunks that may grow in several directions";
      return;
  }
  layout.address = file.address(reader);
}

}  // namespace

void parse_layout(ByteReader& reader, const File& file, Dataset& set) {
  Layout& layout = set.layout;
  const uint8_t version = reader.u8();
  if (version < 1 || version > 5) reader.fail("a layout is of an unknown version");
  size_t old_rank = 0;
  if (version < 3) old_rank = reader.u8();
  const uint8_t kind = reader.u8();
  if (version < 3) reader.take(5);
  layout.storage = kind == 0   ? Storage::compact
                   : kind == 1 ? Storage::contiguous
                   : kind == 2 ? Storage::chunked
                               : Storage::none;
  if (layout.storage == Storage::none) {
    set.problem = "keeps its rows in other files, which is refused";
    return;
  }
  if (version < 3) {
    if (layout.storage != Storage::compact) layout.address = file.address(reader);
    if (layout.storage == Storage::chunked) {
      parse_chunk_shape(reader, old_rank, 4, layout);
      return;
    }
    reader.take(4 * uint64_t{old_rank});  // the extent, which its own message says too
    if (layout.storage == Storage::contiguous) {
      layout.size = undefined_address;  // not said: what the extent needs
      return;
    }
  } else if (layout.storage == Storage::contiguous) {
    layout.address = file.address(reader);
    layout.size = file.length(reader);
    return;
  } else if (layout.storage == Storage::chunked) {
    if (version >= 4) return parse_chunks_v4(reader, file, set);
    const uint8_t rank = reader.u8();
    layout.address = file.address(reader);
    parse_chunk_shape(reader, rank, 4, layout);
    return;
  }
  const auto bytes = reader.take(version < 3 ? reader.u32() : reader.u16());
  layout.bytes.assign(bytes.begin(), bytes.end());
}

}  // namespace mase::hdf5
