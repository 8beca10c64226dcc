// SPDX-License-Identifier: Apache-2.0
// Both containers of PyTorch, checked before anything is handed out: every storage has the size its
// pickle claims, every tensor lies inside its storage.
#include "mase/io/torch/torch_file.h"

#include <algorithm>
#include <cstring>

#include "mase/base/text.h"
#include "mase/io/byte_reader.h"
#include "mase/io/networks/tensor_view.h"
#include "mase/io/zip/zip_reader.h"

namespace mase {
namespace {

// The first pickle of the legacy container: PyTorch's magic number and nothing else.
constexpr unsigned char legacy_magic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                          0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
constexpr int64_t legacy_protocol = 1001;
constexpr size_t storage_cost = 128;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool looks_like_legacy_torch(std::span<const std::byte> bytes) {
  return bytes.size() > sizeof legacy_magic &&
         std::memcmp(bytes.data(), legacy_magic, sizeof legacy_magic) == 0;
}

TorchFile::TorchFile(std::shared_ptr<const MappedFile> file, const ReadLimits& limits)
    : TorchFile(file->bytes(), file, file->path(), limits) {}

TorchFile::TorchFile(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                     const std::string& place, const ReadLimits& limits)
    : place_(place), owner_(std::move(owner)), limits_(limits), budget_(limits, bytes.size()) {
  if (looks_like_zip(bytes))
    read_zip(bytes);
  else if (looks_like_legacy_torch(bytes))
    read_legacy(bytes);
  else
    throw Error(fmt::format("{}: byte 0", place_), "is not a PyTorch file");
  check_tensors();
}

void TorchFile::read_zip(std::span<const std::byte> bytes) {
  ZipReader zip(bytes, place_, budget_, limits_);
  // What is known of a tensor, its name, shape and place, takes several times the bytes it has in
  // the file. A stored tensor is an entry of the archive; nothing else in the file gets more for
  // itself.
  constexpr size_t per_entry = 4096, most_for_entries = size_t{256} << 20;
  if (limits_.memory == 0)
    budget_.give_back(std::min(zip.entries().size() * per_entry, most_for_entries));
  zip.allow_missing_checksums();
  const ZipReader::Entry* pickle = nullptr;
  for (const ZipReader::Entry& entry : zip.entries()) {
    const size_t slash = entry.name.find('/');
    const std::string_view rest =
        slash == std::string_view::npos ? entry.name : entry.name.substr(slash + 1);
    if (rest == "constants.pkl" || starts_with(rest, "code/"))
      throw Error(fmt::format("{}: byte {}", place_, entry.header_offset),
                  "is a TorchScript archive: a program, not a checkpoint",
                  "in PyTorch, save its tensors: torch.save(torch.jit.load(FILE).state_dict(), "
                  "'weights.pt')");
    if (rest == "data.pkl" && slash != std::string_view::npos) {
      if (pickle)
        throw Error(fmt::format("{}: byte {}", place_, entry.header_offset),
                    "the zip holds two PyTorch files");
      pickle = &entry;
    }
  }
  if (!pickle) throw Error(place_, "the zip holds no 'data.pkl', so it is not a PyTorch file");
  const std::string root(pickle->name.substr(0, pickle->name.size() - 8));
  if (const ZipReader::Entry* order = zip.find(root + "byteorder"))
    if (text_of(zip.content(*order, owner_, budget_).bytes) != "little")
      throw Error(fmt::format("{}: byte {}", place_, order->data_offset),
                  "the file was written on a machine of another byte order",
                  "load and save it again in PyTorch on an ordinary machine");
  const ZipReader::Content content = zip.content(*pickle, owner_, budget_);
  pickle_owner_ = content.owner;
  const std::string place = pickle->deflated ? place_ + ": data.pkl" : place_;
  pickle_ = read_pickle(content.bytes, place,
                        pickle->deflated ? 0 : static_cast<size_t>(pickle->data_offset), budget_,
                        limits_);
  if (pickle_.size != content.bytes.size())
    throw Error(fmt::format("{}: byte {}", place_, pickle->data_offset + pickle_.size),
                "bytes follow the end of the pickle");
  for (const PickleStorage& storage : pickle_.storages) {
    if (storage.content || storages_.count(storage.key)) continue;
    const ZipReader::Entry* entry = zip.find(root + "data/" + std::string(storage.key));
    if (!entry)
      throw Error(fmt::format("{}: byte {}", place_, storage.at),
                  fmt::format("the storage '{}' is missing", printable(storage.key.substr(0, 100))),
                  "the file is damaged");
    charge(storage_cost);
    const ZipReader::Content found = zip.content(*entry, owner_, budget_);
    storages_[storage.key] = {found.bytes, found.owner};
  }
}

void TorchFile::read_legacy(std::span<const std::byte> bytes) {
  size_t at = sizeof legacy_magic;
  const auto next = [&] {
    Pickle pickle = read_pickle(bytes.subspan(at), place_, at, budget_, limits_);
    at += pickle.size;
    return pickle;
  };
  const auto fail = [&](const std::string& cause) {
    throw Error(fmt::format("{}: byte {}", place_, at), cause);
  };
  const Pickle protocol = next();
  if (protocol.node(protocol.root).kind != PickleNode::Kind::integer ||
      protocol.node(protocol.root).integer != legacy_protocol)
    fail("the legacy container has an unknown version");
  pickle_ = next();
  const auto little = find(pickle_.root, "little_endian");
  if (!little || node(*little).kind != PickleNode::Kind::boolean || !node(*little).integer)
    fail("the file was written on a machine of another byte order");
  pickle_ = next();
  const Pickle keys = next();
  const PickleNode& list = keys.node(keys.root);
  if (list.kind != PickleNode::Kind::list) fail("the list of storages is missing");
  std::unordered_map<std::string_view, const PickleStorage*> wanted;
  for (const PickleStorage& storage : pickle_.storages) {
    charge(storage_cost);
    if (!storage.content) wanted.emplace(storage.key, &storage);
  }
  ByteReader reader(bytes, place_);
  reader.seek(at);
  for (const PickleId id : list.items) {
    if (keys.node(id).kind != PickleNode::Kind::text) reader.fail("a storage's key is not text");
    const auto storage = wanted.find(keys.node(id).text);
    if (storage == wanted.end()) reader.fail("a storage belongs to no tensor");
    const PickleStorage& known = *storage->second;
    const size_t begin = reader.offset();
    const uint64_t elements = reader.u64();
    if (elements != known.elements)
      reader.fail_at(begin, fmt::format("a storage has {} elements, but the pickle says {}",
                                        elements, known.elements));
    const uint64_t size = known.dtype ? dtype_size(*known.dtype) : 1;
    uint64_t total = 0;
    if (__builtin_mul_overflow(elements, size, &total)) reader.fail("a storage is too large");
    if (!storages_.emplace(known.key, Content{reader.take(total), owner_}).second)
      reader.fail_at(begin, "a storage is written twice");
  }
  if (reader.left() != 0) reader.fail("bytes follow the last storage");
  for (const auto& [key, storage] : wanted)
    if (!storages_.count(key))
      reader.fail(fmt::format("the storage '{}' is missing", printable(key.substr(0, 100))));
}

void TorchFile::check_tensors() {
  for (const PickleStorage& storage : pickle_.storages) {
    const uint64_t size = storage.dtype ? dtype_size(*storage.dtype) : 1;
    const uint64_t kept =
        storage.content ? storage.content->size() : storages_.at(storage.key).bytes.size();
    uint64_t claimed = 0;
    if (__builtin_mul_overflow(storage.elements, size, &claimed) || claimed != kept)
      throw Error(fmt::format("{}: byte {}", place_, storage.at),
                  fmt::format("the storage '{}' has {} bytes, but the pickle says {} "
                              "elements of {} bytes",
                              printable(storage.key.substr(0, 100)), kept, storage.elements, size));
  }
  for (const PickleTensor& tensor : pickle_.tensors) {
    const auto fail = [&](const std::string& cause) {
      throw Error(fmt::format("{}: byte {}", place_, tensor.at),
                  fmt::format("a tensor of shape {}: {}", shape_text(tensor.shape), cause));
    };
    const PickleStorage& storage = pickle_.storages[tensor.storage];
    const uint64_t bytes = storage.view_elements * (storage.dtype ? dtype_size(*storage.dtype) : 1);
    const uint64_t elements = bytes / dtype_size(tensor.dtype);
    uint64_t count = 1, last = tensor.offset;
    bool overflow = false, empty = false;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      const int64_t dim = tensor.shape[i], stride = tensor.strides[i];
      if (dim < 0) fail("a negative dimension");
      if (stride < 0) fail("a negative stride");
      if (dim == 0) {
        empty = true;
        continue;
      }
      uint64_t span = 0;
      overflow |= __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count);
      overflow |= __builtin_mul_overflow(static_cast<uint64_t>(dim - 1),
                                         static_cast<uint64_t>(stride), &span);
      overflow |= __builtin_add_overflow(last, span, &last);
    }
    if (overflow || count > (uint64_t{1} << 56)) fail("its size or strides overflow");
    if (!empty && last >= elements)
      fail(fmt::format("its last element is number {} of a storage of {}", last, elements));
  }
}

std::optional<PickleId> TorchFile::find(PickleId dict, std::string_view key) const {
  const PickleNode& all = node(dict);
  if (all.kind != PickleNode::Kind::dict) return {};
  std::optional<PickleId> found;  // of a key written twice, the last counts, as in Python
  for (size_t i = 0; i + 1 < all.items.size(); i += 2) {
    const PickleNode& candidate = node(all.items[i]);
    if (candidate.kind == PickleNode::Kind::text && candidate.text == key) found = all.items[i + 1];
  }
  return found;
}

Tensor TorchFile::tensor(PickleId id) {
  const uint32_t index = node(id).index;
  MASE_CHECK(node(id).kind == PickleNode::Kind::tensor, "node {} is no tensor", id);
  if (auto known = made_.find(index); known != made_.end()) return known->second;
  charge(2 * sizeof(Tensor) + 64);
  const PickleTensor& wanted = pickle_.tensors[index];
  const PickleStorage& storage = pickle_.storages[wanted.storage];
  Content content;
  if (storage.content)
    content = {std::as_bytes(std::span(*storage.content)), pickle_owner_ ? pickle_owner_ : owner_};
  else
    content = storages_.at(storage.key);
  const size_t storage_size = storage.dtype ? dtype_size(*storage.dtype) : 1;
  std::span<const std::byte> bytes = content.bytes.subspan(storage.view_offset * storage_size);
  const bool empty = element_count(wanted.shape) == 0;
  if (!empty) bytes = bytes.subspan(wanted.offset * dtype_size(wanted.dtype));
  // Bytes kept in the pickle's own texts die with it: those tensors are copied.
  std::shared_ptr<const void> owner = content.owner;
  Tensor made = view_or_gather(wanted.shape, wanted.strides, wanted.dtype, bytes, owner, budget_,
                               fmt::format("{}: byte {}", place_, wanted.at));
  if (storage.content && !empty) {
    charge(made.bytes() + 64);
    made.mutable_raw();
  }
  made_.emplace(index, made);
  return made;
}

}  // namespace mase
