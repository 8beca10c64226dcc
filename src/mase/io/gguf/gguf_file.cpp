// SPDX-License-Identifier: Apache-2.0
#include "mase/io/gguf/gguf_file.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <set>

#include "mase/base/text.h"
#include "mase/io/byte_reader.h"
#include "mase/io/networks/tensor_view.h"

namespace mase {
namespace {

// What a setting is, as the file numbers it.
struct GgufKind {
  enum : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };
};

size_t gguf_size_of(uint32_t kind) {
  switch (kind) {
    case GgufKind::u8:
    case GgufKind::i8:
    case GgufKind::boolean:
      return 1;
    case GgufKind::u16:
    case GgufKind::i16:
      return 2;
    case GgufKind::u32:
    case GgufKind::i32:
    case GgufKind::f32:
      return 4;
    case GgufKind::u64:
    case GgufKind::i64:
    case GgufKind::f64:
      return 8;
    default:
      return 0;  // texts and lists say it themselves
  }
}

constexpr uint64_t longest_gguf_name = 1 << 16;
constexpr size_t gguf_entry_cost = 200;  // of a setting or a tensor in our tables

std::string gguf_name(ByteReader& reader) {
  const size_t at = reader.offset();
  const uint64_t length = reader.u64();
  if (length == 0 || length > longest_gguf_name)
    reader.fail_at(at, fmt::format("a name of {} bytes", length), "it was cut short or damaged");
  return std::string(reader.text(length));
}

// Past one value of this kind.
void skip_gguf(ByteReader& reader, uint32_t kind) {
  if (kind == GgufKind::text)
    reader.take(reader.u64());
  else
    reader.take(gguf_size_of(kind));
}

Value gguf_value(ByteReader& reader, uint32_t kind) {
  switch (kind) {
    case GgufKind::u8:
      return static_cast<int64_t>(reader.u8());
    case GgufKind::i8:
      return static_cast<int64_t>(static_cast<int8_t>(reader.u8()));
    case GgufKind::u16:
      return static_cast<int64_t>(reader.u16());
    case GgufKind::i16:
      return static_cast<int64_t>(static_cast<int16_t>(reader.u16()));
    case GgufKind::u32:
      return static_cast<int64_t>(reader.u32());
    case GgufKind::i32:
      return static_cast<int64_t>(static_cast<int32_t>(reader.u32()));
    case GgufKind::f32:
      return static_cast<double>(std::bit_cast<float>(reader.u32()));
    case GgufKind::boolean:
      return reader.u8() != 0;
    case GgufKind::text:
      return std::string(reader.text(reader.u64()));
    case GgufKind::u64: {
      const uint64_t number = reader.u64();
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return static_cast<double>(number);
      return static_cast<int64_t>(number);
    }
    case GgufKind::i64:
      return static_cast<int64_t>(reader.u64());
    case GgufKind::f64:
      return std::bit_cast<double>(reader.u64());
    default:
      MASE_CHECK(false, "a GGUF value of kind {}", kind);
  }
}

}  // namespace

GgufFile::GgufFile(std::span<const std::byte> bytes, std::string place, MemoryBudget& budget)
    : place_(std::move(place)) {
  ByteReader reader(bytes, place_);
  reader.take(4);  // GGUF
  const uint32_t version = reader.u32();
  if (version == 2u << 24 || version == 3u << 24)
    throw Error(place_, "is a big-endian GGUF file", "convert it on a little-endian machine");
  if (version != 2 && version != 3)
    throw Error(place_, fmt::format("is GGUF of version {}", version), "2 and 3 are read");
  const uint64_t tensors = reader.u64(), settings = reader.u64();
  constexpr uint64_t least_setting = 8 + 1 + 4 + 1, least_tensor = 8 + 1 + 4 + 8 + 4 + 8;
  if (settings > reader.left() / least_setting || tensors > reader.left() / least_tensor)
    reader.fail(fmt::format("{} settings and {} tensors cannot be in it", settings, tensors),
                "it was cut short or damaged");
  for (uint64_t i = 0; i < settings; ++i) {
    const size_t at = reader.offset();
    const std::string name = gguf_name(reader);
    budget.charge(gguf_entry_cost + name.size(), place_);
    Setting setting;
    setting.type = reader.u32();
    const bool is_list = setting.type == GgufKind::list;
    if (is_list) {
      setting.element = reader.u32();
      setting.count = reader.u64();
    }
    const uint32_t kind = is_list ? setting.element : setting.type;
    if (kind != GgufKind::text && gguf_size_of(kind) == 0)
      reader.fail_at(at, fmt::format("the setting '{}' is of kind {}", printable(name), kind),
                     kind == GgufKind::list ? "lists of lists are not read" : "it was damaged");
    const size_t begin = reader.at();
    const uint64_t least = kind == GgufKind::text ? 8 : gguf_size_of(kind);
    if (setting.count > reader.left() / least)
      reader.fail_at(at, fmt::format("a list of {} entries cannot be in it", setting.count),
                     "it was cut short or damaged");
    if (kind == GgufKind::text)
      for (uint64_t k = 0; k < setting.count; ++k) skip_gguf(reader, kind);
    else
      reader.take(setting.count * least);
    setting.bytes = bytes.subspan(begin, reader.at() - begin);
    if (!settings_.emplace(name, setting).second)
      reader.fail_at(at, fmt::format("the setting '{}' is there twice", printable(name)));
  }
  struct Claim {
    uint64_t offset, size;
  };
  std::vector<Claim> claims;
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    const size_t at = reader.offset();
    GgufTensor tensor;
    tensor.name = gguf_name(reader);
    budget.charge(gguf_entry_cost + 2 * tensor.name.size(), place_);
    const std::string shown = printable(tensor.name);
    if (!names.insert(tensor.name).second)
      reader.fail_at(at, fmt::format("the tensor '{}' is there twice", shown));
    const uint32_t rank = reader.u32();
    if (rank < 1 || rank > 4)
      reader.fail_at(at, fmt::format("'{}' has {} dimensions", shown, rank), "1 to 4 are read");
    uint64_t values = 1;
    for (uint32_t k = 0; k < rank; ++k) {
      const uint64_t size = reader.u64();
      constexpr uint64_t most = uint64_t{1} << 40;
      if (size == 0 || size > most || values > most / size)
        reader.fail_at(at, fmt::format("'{}' has a dimension of {}", shown, size));
      values *= size;
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    const uint32_t number = reader.u32();
    tensor.type = find_gguf_type(number);
    if (!tensor.type) {
      const std::string foreign = foreign_gguf_type(number);
      reader.fail_at(at,
                     foreign.empty()
                         ? fmt::format("'{}' holds numbers of type {}", shown, number)
                         : fmt::format("'{}' holds {} numbers, which are not read", shown, foreign),
                     "known: " + known_gguf_types());
    }
    const auto block = static_cast<uint64_t>(tensor.type->values);
    if (static_cast<uint64_t>(tensor.shape.back()) % block != 0)
      reader.fail_at(at, fmt::format("rows of {} in '{}' are no blocks of {}", tensor.shape.back(),
                                     shown, block));
    claims.push_back({reader.u64(), values / block * static_cast<uint64_t>(tensor.type->bytes)});
    tensors_.push_back(std::move(tensor));
  }
  const int64_t alignment = whole("general.alignment").value_or(32);
  if (alignment < 8 || alignment > 1 << 16 || alignment % 8 != 0)
    throw Error(place_, fmt::format("'general.alignment' is {}", alignment));
  const auto step = static_cast<uint64_t>(alignment);
  const uint64_t begin = (reader.at() + step - 1) / step * step;
  if (tensors_.empty()) return;
  if (begin > bytes.size()) reader.fail("the file ends too early", "it was cut short or damaged");
  const std::span<const std::byte> data = bytes.subspan(static_cast<size_t>(begin));
  uint64_t claimed = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto& [offset, size] = claims[i];
    if (offset % step != 0 || offset > data.size() || size > data.size() - offset)
      throw Error(place_,
                  fmt::format("'{}' would lie at byte {} with {} bytes, in {}",
                              printable(tensors_[i].name), offset, size, data.size()),
                  "the file was cut short or damaged");
    claimed += size;
    tensors_[i].bytes = data.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
  }
  // Each byte belongs to one tensor, so that what they are widened to is bounded by the file.
  if (claimed > data.size())
    throw Error(place_, "its tensors overlap", "the file is damaged or hostile");
}

const GgufFile::Setting* GgufFile::find(const std::string& key, bool is_list) const {
  const auto found = settings_.find(key);
  if (found == settings_.end()) return nullptr;
  if ((found->second.type == GgufKind::list) != is_list)
    throw Error(place_, fmt::format("'{}' is {}", key, is_list ? "no list" : "a list"));
  return &found->second;
}

template <class Visit>
void GgufFile::for_each(const Setting& setting, const Visit& visit) const {
  ByteReader reader(setting.bytes, place_);
  const uint32_t kind = setting.type == GgufKind::list ? setting.element : setting.type;
  for (uint64_t i = 0; i < setting.count; ++i) visit(reader, kind);
}

std::optional<std::string_view> GgufFile::text(const std::string& key) const {
  const Setting* setting = find(key, false);
  if (!setting) return {};
  if (setting->type != GgufKind::text) throw Error(place_, fmt::format("'{}' is no text", key));
  ByteReader reader(setting->bytes, place_);
  return reader.text(reader.u64());
}

std::optional<int64_t> GgufFile::whole(const std::string& key) const {
  const Setting* setting = find(key, false);
  if (!setting) return {};
  ByteReader reader(setting->bytes, place_);
  const Value value = gguf_value(reader, setting->type);
  if (!value.is_int()) throw Error(place_, fmt::format("'{}' is no whole number", key));
  return value.as_int();
}

std::optional<bool> GgufFile::flag(const std::string& key) const {
  const Setting* setting = find(key, false);
  if (!setting) return {};
  if (setting->type != GgufKind::boolean)
    throw Error(place_, fmt::format("'{}' is neither true nor false", key));
  return setting->bytes[0] != std::byte{0};
}

std::vector<std::string_view> GgufFile::texts(const std::string& key) const {
  std::vector<std::string_view> result;
  const Setting* setting = find(key, true);
  if (!setting) return result;
  if (setting->element != GgufKind::text)
    throw Error(place_, fmt::format("'{}' is no list of texts", key));
  result.reserve(static_cast<size_t>(setting->count));
  for_each(*setting,
           [&](ByteReader& reader, uint32_t) { result.push_back(reader.text(reader.u64())); });
  return result;
}

std::vector<int64_t> GgufFile::wholes(const std::string& key) const {
  std::vector<int64_t> result;
  const Setting* setting = find(key, true);
  if (!setting) return result;
  for_each(*setting, [&](ByteReader& reader, uint32_t kind) {
    const Value value = gguf_value(reader, kind);
    if (!value.is_int()) throw Error(place_, fmt::format("'{}' is no list of whole numbers", key));
    result.push_back(value.as_int());
  });
  return result;
}

std::vector<float> GgufFile::numbers(const std::string& key) const {
  std::vector<float> result;
  const Setting* setting = find(key, true);
  if (!setting) return result;
  for_each(*setting, [&](ByteReader& reader, uint32_t kind) {
    const Value value = gguf_value(reader, kind);
    if (!value.is_number()) throw Error(place_, fmt::format("'{}' is no list of numbers", key));
    result.push_back(static_cast<float>(value.as_double()));
  });
  return result;
}

Value GgufFile::settings(size_t longest) const {
  Dict result;
  for (const auto& [key, setting] : settings_) {
    if (setting.type != GgufKind::list) {
      ByteReader reader(setting.bytes, place_);
      result.add(key, gguf_value(reader, setting.type));
    } else if (setting.count > longest) {
      result.add(key, fmt::format("{} entries", setting.count));
    } else {
      List entries;
      for_each(setting, [&](ByteReader& reader, uint32_t kind) {
        entries.push_back(gguf_value(reader, kind));
      });
      result.add(key, std::move(entries));
    }
  }
  return result;
}

bool looks_like_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= 8 &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()), 4) == "GGUF";
}

Tensor gguf_tensor(const GgufTensor& tensor, const std::shared_ptr<const void>& owner,
                   MemoryBudget& budget, const std::string& place) {
  if (tensor.type->plain)
    return view_or_copy(tensor.shape, *tensor.type->plain, tensor.bytes, owner, budget, place);
  return {tensor.shape, packed_type(*tensor.type), tensor.bytes.data(), owner};
}

}  // namespace mase
