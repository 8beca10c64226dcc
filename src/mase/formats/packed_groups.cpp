// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/packed_groups.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mase/base/text.h"
#include "mase/formats/ggml_blocks.h"

namespace mase {
namespace {

constexpr int64_t chunk = 32;  // codes that are packed together

template <class T>
T read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

int code_at(const std::byte* codes, int bits, int64_t i) {
  const std::byte* own = codes + i / chunk * 4 * bits;
  const auto at = static_cast<int>(i % chunk);
  const auto byte = [&](int index) { return std::to_integer<int>(own[index]); };
  switch (bits) {
    case 8:
      return static_cast<int8_t>(byte(at));
    case 4:
      return at < 16 ? byte(at) & 15 : byte(at - 16) >> 4;
    default: {
      const int two = byte(at / 4) >> (2 * (at % 4)) & 3;
      return bits == 2 ? two : two | (byte(8 + at / 8) >> (at % 8) & 1) << 2;
    }
  }
}

void put_code(std::byte* codes, int bits, int64_t i, int code) {
  std::byte* own = codes + i / chunk * 4 * bits;
  const auto at = static_cast<int>(i % chunk);
  const auto add = [&](int index, int value) { own[index] |= static_cast<std::byte>(value & 255); };
  switch (bits) {
    case 8:
      return add(at, code);
    case 4:
      return at < 16 ? add(at, code & 15) : add(at - 16, (code & 15) << 4);
    default:
      add(at / 4, (code & 3) << (2 * (at % 4)));
      if (bits == 3) add(8 + at / 8, (code >> 2 & 1) << (at % 8));
  }
}

void widen_groups(const PackedType& type, const std::byte* blocks, int64_t count, float* out) {
  const PackedGroups groups = groups_of(type);
  for (int64_t b = 0; b < count; ++b, blocks += type.bytes, out += type.values) {
    const std::byte* codes = blocks + groups.step_bytes + (groups.offsets ? 4 : 0);
    const double step = groups.step_bytes == 1
                            ? std::ldexp(1.0, std::to_integer<int>(blocks[0]) - 127)
                        : groups.step_bytes == 4 ? double{read_as<float>(blocks)}
                                                 : read_as<double>(blocks);
    const float zero = groups.offsets ? read_as<float>(blocks + groups.step_bytes) : 0;
    for (int64_t i = 0; i < type.values; ++i) {
      const int code = code_at(codes, groups.bits, i);
      const float level = groups.levels.empty() ? static_cast<float>(code) - zero
                                                : groups.levels[static_cast<size_t>(code)];
      // A level and a step of single precision give an exact product here, which is rounded once.
      out[i] = static_cast<float>(double{level} * step);
    }
  }
}

// Codes of whole numbers have one zero: its sign, which no sum sees, need not come back.
bool same_numbers(const Tensor& a, const Tensor& b) {
  const auto x = a.values<float>(), y = b.values<float>();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](float one, float other) {
    return (one == 0 && other == 0) || std::memcmp(&one, &other, sizeof one) == 0;
  });
}

// The format with what its config says, so that no other config's codes are taken for these.
std::string packed_name(const Quantizer& quantizer) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : to_json(quantizer.config))
    hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return fmt::format("{}:{:08x}", quantizer.format, static_cast<uint32_t>(hash ^ hash >> 32));
}

// What the codes of a format mean times a step of 1, found in a tensor of this shape: a format
// whose steps are given has as many as the shape has groups. `each`: numbers that belong to one.
std::optional<std::vector<float>> levels_of(const Quantizer& quantizer, const Shape& shape,
                                            Quantizer::Codes codes, size_t each) {
  const size_t count = size_t{1} << quantizer.code_bits;
  if (codes.codes.size() < count) return {};
  for (size_t i = 0; i < codes.codes.size(); ++i) codes.codes[i] = static_cast<uint32_t>(i % count);
  for (size_t i = 0; i < codes.scales.size(); ++i)
    codes.scales[i] = each == 2 && i % 2 == 1 ? 0 : 1;
  std::fill(codes.exponents.begin(), codes.exponents.end(), 0);
  std::vector<float> values(codes.codes.size());
  quantizer.decode(codes, values.data(), shape);
  values.resize(count);
  return values;
}

}  // namespace

PackedTypePtr packed_groups_type(const std::string& name, const PackedGroups& groups) {
  const bool known = (groups.bits >= 2 && groups.bits <= 4) || groups.bits == 8;
  const size_t levels = groups.bits == 8 || groups.offsets ? 0 : size_t{1} << groups.bits;
  MASE_CHECK(known && groups.values >= chunk && groups.values % chunk == 0 &&
                 groups.levels.size() == levels &&
                 (groups.step_bytes == 1 || groups.step_bytes == 4 || groups.step_bytes == 8),
             "groups of {} values of {} bits", groups.values, groups.bits);
  PackedType type{.name = name, .form = PackedForm::groups, .values = groups.values};
  type.bytes = groups.step_bytes + (groups.offsets ? 4 : 0) + groups.code_bytes();
  type.bits = groups.bits;
  type.offsets = groups.offsets;
  type.levels = groups.levels;
  type.widen = widen_groups;
  return std::make_shared<const PackedType>(std::move(type));
}

PackedGroups groups_of(const PackedType& type) {
  PackedGroups groups{type.bits, type.values, 4, type.offsets, type.levels};
  groups.step_bytes = static_cast<int>(type.bytes - groups.code_bytes() - (type.offsets ? 4 : 0));
  return groups;
}

Value packed_type_text(const PackedType& type) {
  Dict text{{"type", type.name}};
  if (type.form != PackedForm::groups) return text;
  const PackedGroups groups = groups_of(type);
  List levels;
  for (const float level : groups.levels) levels.emplace_back(double{level});
  text.set("bits", groups.bits);
  text.set("group", groups.values);
  text.set("step_bytes", groups.step_bytes);
  text.set("offsets", groups.offsets);
  text.set("levels", std::move(levels));
  return text;
}

PackedTypePtr packed_type_from(const Value& text, const std::string& place) {
  const auto broken = [&] { return Error(place, "is no type of packed numbers"); };
  if (!text.is_dict() || !text["type"].is_string()) throw broken();
  const std::string name = text["type"].as_string();
  if (text["group"].is_null()) {
    for (const PackedTypePtr& type : packed_types())
      if (type->name == name) return type;
    throw broken();
  }
  constexpr int64_t longest = int64_t{1} << 24;
  const auto whole = [&](const char* key) {
    const Value& value = text[key];
    if (!value.is_int() || value.as_int() < 1 || value.as_int() > longest) throw broken();
    return value.as_int();
  };
  PackedGroups groups{.bits = static_cast<int>(whole("bits")),
                      .values = whole("group"),
                      .step_bytes = static_cast<int>(whole("step_bytes"))};
  if (!text["offsets"].is_bool() || !text["levels"].is_list()) throw broken();
  groups.offsets = text["offsets"].as_bool();
  for (const Value& level : text["levels"].as_list()) {
    if (!level.is_number() || !std::isfinite(level.as_double())) throw broken();
    groups.levels.push_back(static_cast<float>(level.as_double()));
  }
  const int bits = groups.bits, bytes = groups.step_bytes;
  const bool known = (bits >= 2 && bits <= 4) || bits == 8;
  if (!known || groups.values % chunk != 0 || (bytes != 1 && bytes != 4 && bytes != 8) ||
      groups.levels.size() != (bits == 8 || groups.offsets ? 0 : size_t{1} << bits))
    throw broken();
  return packed_groups_type(name, groups);
}

std::vector<PackedTypePtr> every_packed_type() {
  std::vector<PackedTypePtr> all = packed_types();
  for (const int bits : {2, 3, 4, 8})
    for (const int step_bytes : {1, 4, 8}) {
      PackedGroups groups{.bits = bits, .values = 32 * bits, .step_bytes = step_bytes};
      for (int code = 0; bits < 8 && code < 1 << bits; ++code)
        groups.levels.push_back(0.3f * static_cast<float>(code * code) - 1.7f);
      all.push_back(packed_groups_type(fmt::format("groups of {} bits", bits), groups));
      if (step_bytes == 1) continue;
      groups.offsets = true;
      groups.levels.clear();
      all.push_back(packed_groups_type(fmt::format("affine groups of {} bits", bits), groups));
    }
  return all;
}

void draw_blocks(const PackedType& type, Random& random, double size, std::span<uint8_t> blocks) {
  for (uint8_t& byte : blocks) byte = static_cast<uint8_t>(random.below(256));
  const auto number = [&] {
    const uint64_t kind = random.below(16);
    return random.uniform(-1, 1) * (kind == 0 ? 0 : kind == 1 ? 1e-6 : size);
  };
  const auto put = [](uint8_t* to, auto value) { std::memcpy(to, &value, sizeof value); };
  const auto bytes = static_cast<size_t>(type.bytes);
  for (size_t at = 0; at + bytes <= blocks.size(); at += bytes) {
    uint8_t* block = blocks.data() + at;
    for (const int place : type.halves) {
      const auto step = static_cast<float>(number());
      put(block + place,
          type.form == PackedForm::bf16 ? float_to_bfloat16(step) : float_to_half(step));
    }
    if (type.form != PackedForm::groups) continue;
    const PackedGroups groups = groups_of(type);
    if (groups.step_bytes == 1)
      block[0] = static_cast<uint8_t>(127 + std::floor(std::log2(size)) - random.below(16));
    else if (groups.step_bytes == 4)
      put(block, static_cast<float>(number()));
    else
      put(block, number());
    if (groups.offsets) put(block + groups.step_bytes, static_cast<float>(number()));
  }
}

std::optional<Tensor> packed_as(const Tensor& matrix, const Quantizer& quantizer) {
  const Shape& shape = matrix.shape();
  if (shape.size() != 2 || matrix.numel() == 0 || !quantizer.code_bits || quantizer.learned ||
      quantizer.code_bits < 2 || quantizer.code_bits > 8)
    return {};
  const Tensor values = matrix.to(DType::f32);
  if (misfit(quantizer, shape) || !quantize(quantizer, values).same_bits(values)) return {};
  const std::string name = packed_name(quantizer);
  const Quantizer::Codes codes = quantizer.encode(values.data<float>(), shape);
  const size_t shared = std::max(codes.scales.size(), codes.exponents.size());
  if (!codes.scales.empty() && !codes.exponents.empty()) return {};
  // Each group is a run of a row: a whole row where there are fewer groups than rows.
  const auto numel = static_cast<size_t>(matrix.numel());
  PackedGroups groups;
  std::vector<std::pair<size_t, std::vector<float>>> readings;  // numbers of a group, and levels
  for (const size_t each : {size_t{1}, size_t{2}}) {
    if (each == 2 && codes.scales.empty()) continue;
    const size_t count = std::max<size_t>(1, shared / each);
    if (shared % each != 0 || numel % count != 0) continue;
    if (auto levels = levels_of(quantizer, shape, codes, each))
      readings.emplace_back(each, std::move(*levels));
  }
  for (const auto& [each, levels] : readings) {
    const size_t count = std::max<size_t>(1, shared / each);
    const size_t run = std::min(numel / count, static_cast<size_t>(shape[1]));
    if (run % chunk != 0 || static_cast<size_t>(shape[1]) % run != 0) continue;
    const bool whole = std::all_of(levels.begin(), levels.end(), [](float level) {
      return level == std::floor(level) && level >= -128 && level <= 127;
    });
    groups.values = static_cast<int64_t>(run);
    groups.offsets = each == 2;
    groups.bits = quantizer.code_bits <= 4 ? quantizer.code_bits : 8;
    if (groups.bits == 8 && !whole) continue;
    groups.levels.clear();
    if (groups.bits < 8 && !groups.offsets) groups.levels = levels;
    for (const int step_bytes : {1, 4, 8}) {
      if (groups.offsets && step_bytes == 1) continue;
      groups.step_bytes = step_bytes;
      const PackedTypePtr type = packed_groups_type(name, groups);
      const auto blocks = aligned_bytes(numel / run * static_cast<size_t>(type->bytes));
      bool fits = true;
      for (size_t g = 0; g < numel / run && fits; ++g) {
        std::byte* block = blocks.get() + g * static_cast<size_t>(type->bytes);
        const size_t own = count == 1 ? 0 : g / (numel / run / count) * each;
        const double step = !codes.scales.empty()      ? codes.scales[own]
                            : !codes.exponents.empty() ? std::ldexp(1.0, codes.exponents[own])
                                                       : 1.0;
        if (step_bytes == 1) {
          int exponent = 0;
          const bool power = std::frexp(step, &exponent) == 0.5;
          fits = power && exponent - 1 >= -127 && exponent - 1 <= 127;
          block[0] = static_cast<std::byte>(exponent - 1 + 127);
        } else if (step_bytes == 4) {
          const auto single = static_cast<float>(step);
          fits = static_cast<double>(single) == step;
          std::memcpy(block, &single, sizeof single);
        } else {
          std::memcpy(block, &step, sizeof step);
        }
        if (groups.offsets) {
          const auto zero = static_cast<float>(codes.scales[own + 1]);
          std::memcpy(block + step_bytes, &zero, sizeof zero);
        }
        std::byte* to = block + step_bytes + (groups.offsets ? 4 : 0);
        for (size_t i = 0; i < run; ++i) {
          const uint32_t code = codes.codes[g * run + i];
          const bool as_number = groups.bits == 8 || groups.offsets;
          const int stored = as_number ? static_cast<int>(levels[code]) : static_cast<int>(code);
          fits = fits &&
                 (!as_number || groups.bits == 8 || (stored >= 0 && stored < 1 << groups.bits));
          put_code(to, groups.bits, static_cast<int64_t>(i), stored);
        }
      }
      if (!fits) continue;
      Tensor result(shape, type, blocks.get(), blocks);
      if (same_numbers(result.to(DType::f32), values)) return result;
    }
  }
  return {};
}

bool is_packed_as(const Tensor& tensor, const Quantizer& quantizer) {
  return tensor.packed() && tensor.packed()->form == PackedForm::groups &&
         tensor.packed()->name == packed_name(quantizer);
}

}  // namespace mase
