// SPDX-License-Identifier: Apache-2.0
#include "mase/io/hdf5/hdf5_file.h"

#include <algorithm>
#include <cstring>

#include "mase/base/text.h"

namespace mase::hdf5 {
namespace {

constexpr int deepest_group = 8;
constexpr size_t most_objects = 10000;
constexpr int highest_tree = 16;
constexpr uint64_t largest_header = uint64_t{1} << 20;
constexpr size_t longest_link = 1024;

enum MessageType : uint16_t {
  space_message = 0x01,
  link_info_message = 0x02,
  type_message = 0x03,
  link_message = 0x06,
  external_message = 0x07,
  layout_message = 0x08,
  filter_message = 0x0B,
  continuation_message = 0x10,
  symbols_message = 0x11,
};

bool begins_with(std::span<const std::byte> bytes, const char* signature) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), signature, 4) == 0;
}

}  // namespace

File::File(const std::string& path) : input_(path) {
  // What is read twice or shared is counted each time; a whole file of structures still fits.
  allowance_ = 4 * input_.size() + (uint64_t{1} << 20);
  read_superblock();
  visit(root_, "", 0);
}

void File::damaged(const std::string& what) const {
  throw Error(path(), what, "the file is cut short or damaged");
}

std::vector<std::byte> File::structure(uint64_t address, uint64_t size) {
  if (address > input_.size() || size > input_.size() - address)
    damaged(fmt::format("byte {} and the {} after it are not in the file", address, size));
  if (size > allowance_) damaged("its structures refer to each other without end");
  allowance_ -= size;
  std::vector<std::byte> bytes(size);
  input_.read(bytes.data(), bytes.size(), address, path());
  return bytes;
}

uint64_t File::address(ByteReader& reader) const {
  const uint64_t value = reader.number(offset_size_);
  const uint64_t none =
      offset_size_ == 8 ? undefined_address : (uint64_t{1} << (8 * offset_size_)) - 1;
  return value == none ? undefined_address : value;
}

void File::read_superblock() {
  const auto sized = [&](uint8_t size) {
    if (size != 2 && size != 4 && size != 8)
      damaged(fmt::format("addresses of {} bytes are impossible", size));
    return size_t{size};
  };
  std::vector<std::byte> bytes = structure(0, std::min<uint64_t>(input_.size(), 128));
  ByteReader reader(bytes, path());
  reader.take(8);  // the signature, by which the reader was chosen
  const uint8_t version = reader.u8();
  if (version > 3) damaged(fmt::format("HDF5 of version {} is unknown", version));
  uint64_t base = 0, end = 0;
  if (version < 2) {
    reader.take(4);
    offset_size_ = sized(reader.u8());
    length_size_ = sized(reader.u8());
    reader.take(1 + 2 + 2 + 4);
    if (version == 1) reader.take(4);
    base = address(reader);
    address(reader);
    end = address(reader);
    address(reader);
    reader.number(offset_size_);  // the root's own name
    root_ = address(reader);
  } else {
    offset_size_ = sized(reader.u8());
    length_size_ = sized(reader.u8());
    reader.u8();
    base = address(reader);
    address(reader);
    end = address(reader);
    root_ = address(reader);
    check_structure(structure(0, reader.at() + 4), 0, path());
  }
  if (base != 0) damaged("the file does not begin where it says");
  if (end > input_.size())
    damaged(fmt::format("has {} bytes, but says that it has {}", input_.size(), end));
}

std::vector<File::Message> File::messages(uint64_t header) {
  std::vector<Message> found;
  const std::vector<std::byte> signature = structure(header, 4);
  begins_with(signature, "OHDR") ? messages_v2(header, found) : messages_v1(header, found);
  return found;
}

void File::messages_v1(uint64_t header, std::vector<Message>& found) {
  const std::vector<std::byte> head = structure(header, 16);
  ByteReader reader(head, path(), header);
  if (reader.u8() != 1) reader.fail("there is no object header here", "the file is damaged");
  reader.u8();
  uint64_t count = reader.u16();
  reader.take(4);
  struct Block {
    uint64_t address, size;
  };
  std::vector<Block> blocks = {{header + 16, reader.u32()}};
  for (size_t i = 0; i < blocks.size() && count > 0; ++i) {
    if (blocks[i].size > largest_header) damaged("an object header is too long");
    const std::vector<std::byte> block = structure(blocks[i].address, blocks[i].size);
    ByteReader body(block, path(), blocks[i].address);
    for (; count > 0 && body.left() >= 8; --count) {
      Message message;
      message.type = body.u16();
      const uint16_t size = body.u16();
      message.shared = body.u8() & 2;
      body.take(3);
      message.address = body.offset();
      const auto content = body.take(size);
      if (message.type == continuation_message) {
        ByteReader where(content, path(), message.address);
        const uint64_t next = address(where);
        blocks.push_back({next, length(where)});
        continue;
      }
      message.bytes.assign(content.begin(), content.end());
      found.push_back(std::move(message));
    }
  }
}

void File::messages_v2(uint64_t header, std::vector<Message>& found) {
  const std::vector<std::byte> head =
      structure(header, std::min<uint64_t>(34, input_.size() - header));
  ByteReader reader(head, path(), header);
  reader.take(4);
  if (reader.u8() != 2) reader.fail("an object header is of an unknown version");
  const uint8_t flags = reader.u8();
  if (flags & 0x20) reader.take(16);  // times
  if (flags & 0x10) reader.take(4);   // when links move to a heap
  const uint64_t first_size = reader.number(size_t{1} << (flags & 3));
  struct Block {
    uint64_t address, size, skip;
  };
  if (first_size > largest_header) damaged("an object header is too long");
  std::vector<Block> blocks = {{header, reader.at() + first_size + 4, reader.at()}};
  const size_t message_head = flags & 4 ? 6 : 4;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].size > largest_header + 64 || blocks[i].size < blocks[i].skip + 4)
      damaged("an object header has an impossible length");
    const std::vector<std::byte> block = structure(blocks[i].address, blocks[i].size);
    if (i > 0 && !begins_with(block, "OCHK")) damaged("an object header goes on nowhere");
    check_structure(block, blocks[i].address, path());
    const std::span<const std::byte> inner(block);
    ByteReader body(inner.first(block.size() - 4), path(), blocks[i].address);
    body.take(blocks[i].skip);
    while (body.left() >= message_head) {
      Message message;
      message.type = body.u8();
      const uint16_t size = body.u16();
      message.shared = body.u8() & 2;
      if (flags & 4) body.take(2);
      message.address = body.offset();
      const auto content = body.take(size);
      if (message.type == continuation_message) {
        ByteReader where(content, path(), message.address);
        const uint64_t next = address(where);
        blocks.push_back({next, length(where), 4});
        continue;
      }
      message.bytes.assign(content.begin(), content.end());
      found.push_back(std::move(message));
    }
  }
}

void File::visit(uint64_t header, const std::string& path, int depth) {
  const std::vector<Message> all = messages(header);
  const std::string prefix = path.empty() ? "" : path + "/";
  const auto has = [&](MessageType type) {
    return std::any_of(all.begin(), all.end(), [&](auto& message) { return message.type == type; });
  };
  if (has(layout_message)) return add_dataset(all, path);
  if (depth > deepest_group || !groups_.insert(header).second) return;
  for (const Message& message : all) {
    ByteReader reader(message.bytes, this->path(), message.address);
    if (message.type == symbols_message) {
      const uint64_t tree = address(reader), heap = address(reader);
      visit_symbols(tree, heap, prefix, depth);
    } else if (message.type == link_message) {
      visit_link(message, prefix, depth);
    } else if (message.type == link_info_message) {
      reader.u8();
      if (reader.u8() & 1) reader.take(8);
      if (address(reader) == undefined_address) continue;
      Dataset unread;
      unread.path = prefix.empty() ? "/" : prefix;
      unread.problem = "is a group of many members in the form of HDF5 1.8 and later";
      datasets_.push_back(std::move(unread));
    }
  }
}

void File::visit_child(uint64_t header, const std::string& name, const std::string& prefix,
                       int depth) {
  if (name.empty() || name.size() > longest_link || ++objects_ > most_objects) return;
  const std::string path = prefix + name;
  try {
    visit(header, path, depth + 1);
  } catch (const Error& error) {  // matters only if this is the table that is wanted
    Dataset unread;
    unread.path = path;
    unread.problem = fmt::format("cannot be read: {}", error.cause());
    datasets_.push_back(std::move(unread));
  }
}

void File::visit_symbols(uint64_t tree, uint64_t heap, const std::string& prefix, int depth) {
  const std::vector<std::byte> head = structure(heap, 8 + 2 * length_size_ + offset_size_);
  if (!begins_with(head, "HEAP")) damaged("a group has no names");
  ByteReader reader(head, path(), heap);
  reader.take(8);
  const uint64_t size = length(reader);
  length(reader);
  visit_symbol_node(tree, highest_tree, structure(address(reader), size), prefix, depth);
}

void File::visit_symbol_node(uint64_t tree, int level, const std::vector<std::byte>& names,
                             const std::string& prefix, int depth) {
  const std::vector<std::byte> head = structure(tree, 8);
  ByteReader reader(head, path(), tree);
  if (begins_with(head, "SNOD")) {
    reader.take(6);
    const uint64_t count = reader.u16();
    const size_t entry = 2 * offset_size_ + 24;
    const std::vector<std::byte> entries = structure(tree + 8, count * entry);
    for (uint64_t i = 0; i < count; ++i) {
      const std::span<const std::byte> all(entries);
      ByteReader item(all.subspan(i * entry, entry), path(), tree + 8 + i * entry);
      const uint64_t name_at = item.number(offset_size_);
      const uint64_t header = address(item);
      if (item.u32() == 2) continue;  // a symbolic link: what it names is elsewhere in the file
      if (name_at >= names.size()) item.fail("a name lies outside its heap", "the file is damaged");
      const char* text = reinterpret_cast<const char*>(names.data()) + name_at;
      visit_child(header, std::string(text, ::strnlen(text, names.size() - name_at)), prefix,
                  depth);
    }
    return;
  }
  if (!begins_with(head, "TREE")) damaged("a group's tree leads nowhere");
  reader.take(5);
  const int own_level = reader.u8();
  if (own_level >= level) damaged("a group's tree leads upwards");
  const uint64_t count = reader.u16();
  const uint64_t begin = tree + 8 + 2 * offset_size_;
  const std::vector<std::byte> body =
      structure(begin, count * (length_size_ + offset_size_) + length_size_);
  ByteReader children(body, path(), begin);
  for (uint64_t i = 0; i < count; ++i) {
    children.take(length_size_);
    visit_symbol_node(address(children), own_level, names, prefix, depth);
  }
}

void File::visit_link(const Message& message, const std::string& prefix, int depth) {
  ByteReader reader(message.bytes, path(), message.address);
  if (reader.u8() != 1) reader.fail("a link is of an unknown version");
  const uint8_t flags = reader.u8();
  const uint8_t kind = flags & 8 ? reader.u8() : 0;
  if (flags & 4) reader.take(8);
  if (flags & 16) reader.take(1);
  const std::string name(reader.text(reader.number(size_t{1} << (flags & 3))));
  if (kind != 0) return;  // symbolic, or to another file: not followed
  visit_child(address(reader), name, prefix, depth);
}

Type File::type_of(const Message& message, int hops) {
  ByteReader reader(message.bytes, path(), message.address);
  if (!message.shared) return parse_type(reader);
  // A type with a name of its own, in another object header.
  const uint8_t version = reader.u8(), kind = reader.u8();
  if (version == 1) reader.take(6);
  if (version < 1 || version > 3 || (version == 3 && kind != 2) || hops > 4)
    reader.fail("a shared type is not where it should be");
  for (const Message& other : messages(address(reader)))
    if (other.type == type_message) return type_of(other, hops + 1);
  reader.fail("a shared type is not where it should be");
}

void File::add_dataset(const std::vector<Message>& all, const std::string& path) {
  Dataset set;
  set.path = path;
  bool simple = false, typed = false;
  for (const Message& message : all) {
    ByteReader reader(message.bytes, this->path(), message.address);
    if (message.shared && message.type != type_message &&
        (message.type == space_message || message.type == filter_message))
      reader.fail("is described in a place shared with others");
    if (message.type == space_message) simple = parse_space(reader, *this, set);
    if (message.type == type_message) {
      set.type = type_of(message, 0);
      typed = true;
    }
    if (message.type == filter_message) set.filters = parse_filters(reader);
    if (message.type == external_message)
      set.problem = "keeps its rows in other files, which is refused";
    if (message.type == layout_message) parse_layout(reader, *this, set);
  }
  if (!typed || !simple || set.shape.size() > most_dimensions) return;
  datasets_.push_back(std::move(set));
}

std::string File::heap_text(ByteReader& element) {
  constexpr size_t longest_text = 1024;
  const uint32_t size = element.u32();
  const uint64_t collection = address(element);
  const uint32_t wanted = element.u32();
  if (size == 0 || collection == 0 || collection == undefined_address) return "";
  const std::vector<std::byte> head = structure(collection, 8 + length_size_);
  ByteReader reader(head, path(), collection);
  if (!begins_with(head, "GCOL")) reader.fail("a text is not in the file", "the file is damaged");
  reader.take(8);
  const uint64_t total = length(reader), first = 8 + length_size_;
  if (total < first) reader.fail("a text is not in the file", "the file is damaged");
  if (heap_at_ != collection) {  // texts of a list stand together
    heap_ = structure(collection + first, total - first);
    heap_at_ = collection;
  }
  ByteReader objects(heap_, path(), collection + first);
  while (objects.left() >= 8 + length_size_) {
    const uint16_t index = objects.u16();
    objects.take(6);
    const uint64_t bytes = length(objects);
    if (index == 0) break;  // what is left is free
    const std::string_view text = objects.text(bytes);
    if (index == wanted) return std::string(text.substr(0, std::min<size_t>(size, longest_text)));
    objects.take(std::min<uint64_t>((8 - bytes % 8) % 8, objects.left()));
  }
  reader.fail("a text is not in the file", "the file is damaged");
}

}  // namespace mase::hdf5
