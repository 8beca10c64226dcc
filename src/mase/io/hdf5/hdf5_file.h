// SPDX-License-Identifier: Apache-2.0
// The part of HDF5 that tables come in, read by ourselves: the library that everybody uses crashes
// and hangs on files with one changed byte (docs/rationale/untrusted_files.md). Superblocks 0 to 3,
// groups of the old and of the new form, data sets of numbers, texts and compounds. Every structure
// is read with the file's own bounds, each group once, and all of them together from a fixed
// allowance of bytes, so that time and memory follow the size of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "mase/base/file.h"
#include "mase/io/byte_reader.h"
#include "mase/io/numpy/npy.h"

namespace mase::hdf5 {

enum class TypeClass : uint8_t { number, text, variable_text, compound, other };

struct Type {
  TypeClass kind = TypeClass::other;
  size_t size = 0;
  NpyField number = {};                // how one is decoded; `problem` says why not
  std::vector<NpyField> members = {};  // of a compound
};

struct Filter {
  uint16_t id = 0;
  std::string name = {};
  std::vector<uint32_t> values = {};
};

enum class Storage : uint8_t { none, compact, contiguous, chunked };
enum class ChunkIndex : uint8_t { tree, single, implicit, fixed_array, extensible_array };

struct Layout {
  Storage storage = Storage::none;
  uint64_t address = 0;          // of the rows, or of the chunks' index
  uint64_t size = 0;             // contiguous
  std::vector<std::byte> bytes;  // compact
  std::vector<uint64_t> chunk;   // its shape
  ChunkIndex index = ChunkIndex::tree;
  uint32_t filter_mask = 0;  // single
  bool filtered_single = false;
};

struct Dataset {
  std::string path;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> most = {};  // the extent it may grow to; all ones: without end
  Type type;
  Layout layout;
  std::vector<Filter> filters;
  std::string problem = {};  // why its rows cannot be read, if so
};

constexpr size_t most_dimensions = 8;
constexpr uint64_t most_chunks_across = 65536;
constexpr uint64_t undefined_address = ~uint64_t{0};

class File {
 public:
  explicit File(const std::string& path);

  const std::vector<Dataset>& datasets() const { return datasets_; }
  const InputFile& input() const { return input_; }
  const std::string& path() const { return input_.path(); }
  size_t offset_size() const { return offset_size_; }
  size_t length_size() const { return length_size_; }

  // Bytes of the file's own structures, from the allowance. ByteReaders of them give offsets.
  std::vector<std::byte> structure(uint64_t address, uint64_t size);
  uint64_t address(ByteReader& reader) const;  // undefined_address where there is none
  uint64_t length(ByteReader& reader) const { return reader.number(length_size_); }
  // The text of a variable-length element: length, collection, index.
  std::string heap_text(ByteReader& element);
  [[noreturn]] void damaged(const std::string& what) const;

 private:
  struct Message {
    uint16_t type;
    bool shared;
    uint64_t address;
    std::vector<std::byte> bytes;
  };
  void read_superblock();
  std::vector<Message> messages(uint64_t header);
  void messages_v1(uint64_t header, std::vector<Message>& found);
  void messages_v2(uint64_t header, std::vector<Message>& found);
  void visit(uint64_t header, const std::string& path, int depth);
  void visit_symbols(uint64_t tree, uint64_t heap, const std::string& prefix, int depth);
  void visit_symbol_node(uint64_t tree, int level, const std::vector<std::byte>& names,
                         const std::string& prefix, int depth);
  void visit_link(const Message& message, const std::string& prefix, int depth);
  void visit_child(uint64_t header, const std::string& name, const std::string& prefix, int depth);
  void add_dataset(const std::vector<Message>& all, const std::string& path);
  Type type_of(const Message& message, int hops);

  InputFile input_;
  size_t offset_size_ = 8, length_size_ = 8;
  uint64_t root_ = 0;
  uint64_t allowance_ = 0;
  size_t objects_ = 0;
  std::unordered_set<uint64_t> groups_;
  std::vector<Dataset> datasets_;
  uint64_t heap_at_ = undefined_address;  // the heap of texts read last
  std::vector<std::byte> heap_;
};

// hdf5_messages.cpp: what the messages of an object header say.
Type parse_type(ByteReader& reader, int depth = 0);
bool parse_space(ByteReader& reader, const File& file, Dataset& set);  // whether it is an array
void parse_layout(ByteReader& reader, const File& file, Dataset& set);
std::vector<Filter> parse_filters(ByteReader& reader);

// hdf5_checksum.cpp
uint32_t lookup3(std::span<const std::byte> bytes);
uint32_t fletcher32(std::span<const std::byte> bytes);
// Structures that end with their checksum: an Error when it is wrong.
void check_structure(std::span<const std::byte> bytes, uint64_t address, const std::string& place);

// The rows of a data set of one or two dimensions, as they are stored, in order.
class Rows {
 public:
  Rows(File& file, const Dataset& set, std::string place);

  size_t row_bytes() const { return row_bytes_; }
  // Rows from `first` on that lie together, at most `count` (which is set): valid until the next
  // call.
  std::span<const std::byte> read(uint64_t first, uint64_t& count);

 private:
  struct Chunk {
    uint64_t address = undefined_address;
    uint64_t size = 0;
    uint32_t mask = 0;  // filters that were left out
  };
  void check_filters() const;
  void size_chunks();
  void index_tree(uint64_t address, int level, uint64_t& entries);
  // Chunks side by side at the largest extent, by which some indices number them.
  uint64_t most_across() const;
  void index_fixed_array();
  void index_extensible_array();
  void put_chunk(uint64_t number, const Chunk& chunk);
  void check_chunks() const;
  void load_band(uint64_t band);
  void decode(const Chunk& chunk);

  File& file_;
  const Dataset& set_;
  std::string place_;
  uint64_t rows_ = 0, width_ = 1;  // width in elements
  size_t row_bytes_ = 0;
  uint64_t chunk_rows_ = 0, chunk_width_ = 1, across_ = 1;  // across: chunks side by side
  uint64_t chunk_bytes_ = 0;
  std::vector<Chunk> chunks_;
  uint64_t loaded_ = undefined_address;  // the band in memory
  std::vector<std::byte> band_, packed_, unpacked_;
};

}  // namespace mase::hdf5
