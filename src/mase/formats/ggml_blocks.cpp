// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/ggml_blocks.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "mase/base/text.h"

namespace mase {
namespace gguf_blocks {
namespace {

float half_at(const uint8_t* at) {
  return half_to_float(static_cast<uint16_t>(at[0] | at[1] << 8));
}

uint32_t word_at(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 |
         static_cast<uint32_t>(at[2]) << 16 | static_cast<uint32_t>(at[3]) << 24;
}

// The low halves of the bytes first, then the high ones.
void halves(const uint8_t* bytes, int count, int8_t* codes) {
  for (int i = 0; i < count; ++i) {
    codes[i] = static_cast<int8_t>(bytes[i] & 15);
    codes[count + i] = static_cast<int8_t>(bytes[i] >> 4);
  }
}

void q8_0(const uint8_t* block, GgufBlock& out) {
  out.steps[0] = half_at(block);
  std::memcpy(out.codes.data(), block + 2, 32);
}

void q4_0(const uint8_t* block, GgufBlock& out) {
  out.steps[0] = half_at(block);
  halves(block + 2, 16, out.codes.data());
  for (int i = 0; i < 32; ++i) out.codes[i] = static_cast<int8_t>(out.codes[i] - 8);
}

void q4_1(const uint8_t* block, GgufBlock& out) {
  out.steps[0] = half_at(block);
  out.offsets[0] = half_at(block + 2);
  halves(block + 4, 16, out.codes.data());
}

// Four bits in the bytes, the fifth ones in a word.
void five_bits(const uint8_t* word, GgufBlock& out, int less) {
  const uint32_t high = word_at(word);
  halves(word + 4, 16, out.codes.data());
  for (int i = 0; i < 32; ++i)
    out.codes[i] = static_cast<int8_t>((out.codes[i] | (high >> i & 1) << 4) - less);
}

void q5_0(const uint8_t* block, GgufBlock& out) {
  out.steps[0] = half_at(block);
  five_bits(block + 2, out, 16);
}

void q5_1(const uint8_t* block, GgufBlock& out) {
  out.steps[0] = half_at(block);
  out.offsets[0] = half_at(block + 2);
  five_bits(block + 4, out, 0);
}

// Eight groups whose steps and offsets are multiples, of six bits, of two numbers.
void steps_of_k(const uint8_t* block, GgufBlock& out) {
  const float step = half_at(block), offset = half_at(block + 2);
  const uint8_t* packed = block + 4;
  for (int j = 0; j < 8; ++j) {
    const int scale = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    const int least = j < 4 ? packed[j + 4] & 63 : packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
    out.steps[j] = step * static_cast<float>(scale);
    out.offsets[j] = -(offset * static_cast<float>(least));
  }
}

void q4_k(const uint8_t* block, GgufBlock& out) {
  steps_of_k(block, out);
  for (int c = 0; c < 4; ++c) halves(block + 16 + 32 * c, 32, out.codes.data() + 64 * c);
}

void q5_k(const uint8_t* block, GgufBlock& out) {
  steps_of_k(block, out);
  const uint8_t* high = block + 16;
  for (int c = 0; c < 4; ++c) {
    int8_t* codes = out.codes.data() + 64 * c;
    halves(block + 48 + 32 * c, 32, codes);
    for (int i = 0; i < 64; ++i)
      codes[i] = static_cast<int8_t>(codes[i] | (high[i % 32] >> (2 * c + i / 32) & 1) << 4);
  }
}

void q6_k(const uint8_t* block, GgufBlock& out) {
  const float step = half_at(block + 208);
  for (int g = 0; g < 16; ++g)
    out.steps[g] = step * static_cast<float>(static_cast<int8_t>(block[192 + g]));
  for (int half = 0; half < 2; ++half) {
    const uint8_t* low = block + 64 * half;
    const uint8_t* high = block + 128 + 32 * half;
    int8_t* codes = out.codes.data() + 128 * half;
    for (int i = 0; i < 128; ++i) {
      const int four = low[i % 64] >> (i < 64 ? 0 : 4) & 15;
      const int two = high[i % 32] >> (2 * (i / 32)) & 3;
      codes[i] = static_cast<int8_t>((four | two << 4) - 32);
    }
  }
}

const GgufType types[] = {
    {.number = 0, .name = "F32", .values = 1, .bytes = 4, .plain = DType::f32},
    {.number = 1, .name = "F16", .values = 1, .bytes = 2, .plain = DType::f16},
    {.number = 30, .name = "BF16", .values = 1, .bytes = 2, .plain = DType::bf16},
    {.number = 28, .name = "F64", .values = 1, .bytes = 8, .plain = DType::f64},
    {.number = 24, .name = "I8", .values = 1, .bytes = 1, .plain = DType::i8},
    {.number = 25, .name = "I16", .values = 1, .bytes = 2, .plain = DType::i16},
    {.number = 26, .name = "I32", .values = 1, .bytes = 4, .plain = DType::i32},
    {.number = 27, .name = "I64", .values = 1, .bytes = 8, .plain = DType::i64},
    {.number = 2,
     .name = "Q4_0",
     .values = 32,
     .bytes = 18,
     .group = 32,
     .bits = 4,
     .is_signed = true,
     .unpack = q4_0,
     .form = PackedForm::q4_0,
     .halves = {0}},
    {.number = 3,
     .name = "Q4_1",
     .values = 32,
     .bytes = 20,
     .group = 32,
     .bits = 4,
     .offsets = true,
     .unpack = q4_1,
     .form = PackedForm::q4_1,
     .halves = {0, 2}},
    {.number = 6,
     .name = "Q5_0",
     .values = 32,
     .bytes = 22,
     .group = 32,
     .bits = 5,
     .is_signed = true,
     .unpack = q5_0,
     .form = PackedForm::q5_0,
     .halves = {0}},
    {.number = 7,
     .name = "Q5_1",
     .values = 32,
     .bytes = 24,
     .group = 32,
     .bits = 5,
     .offsets = true,
     .unpack = q5_1,
     .form = PackedForm::q5_1,
     .halves = {0, 2}},
    {.number = 8,
     .name = "Q8_0",
     .values = 32,
     .bytes = 34,
     .group = 32,
     .bits = 8,
     .is_signed = true,
     .unpack = q8_0,
     .form = PackedForm::q8_0,
     .halves = {0}},
    {.number = 12,
     .name = "Q4_K",
     .values = 256,
     .bytes = 144,
     .group = 32,
     .bits = 4,
     .offsets = true,
     .unpack = q4_k,
     .form = PackedForm::q4_k,
     .halves = {0, 2}},
    {.number = 13,
     .name = "Q5_K",
     .values = 256,
     .bytes = 176,
     .group = 32,
     .bits = 5,
     .offsets = true,
     .unpack = q5_k,
     .form = PackedForm::q5_k,
     .halves = {0, 2}},
    {.number = 14,
     .name = "Q6_K",
     .values = 256,
     .bytes = 210,
     .group = 16,
     .bits = 6,
     .is_signed = true,
     .unpack = q6_k,
     .form = PackedForm::q6_k,
     .halves = {208}},
};

constexpr std::pair<uint32_t, const char*> foreign[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {29, "IQ1_M"},   {34, "TQ1_0"}, {35, "TQ2_0"},  {39, "MXFP4"}};

// visit(block, its first value) for each block.
template <class Visit>
void for_each_block(const GgufType& type, std::span<const std::byte> blocks, const Visit& visit) {
  MASE_CHECK(type.unpack && blocks.size() % static_cast<size_t>(type.bytes) == 0, "{} bytes of {}",
             blocks.size(), type.name);
  const auto* bytes = reinterpret_cast<const uint8_t*>(blocks.data());
  const int64_t count = static_cast<int64_t>(blocks.size()) / type.bytes;
  GgufBlock block;
  block.offsets.fill(0);
  for (int64_t i = 0; i < count; ++i) {
    type.unpack(bytes + i * type.bytes, block);
    visit(block, i * type.values);
  }
}

}  // namespace
}  // namespace gguf_blocks

const GgufType* find_gguf_type(uint32_t number) {
  for (const GgufType& type : gguf_blocks::types)
    if (type.number == number) return &type;
  return nullptr;
}

std::string known_gguf_types() {
  std::vector<std::string> names;
  for (const GgufType& type : gguf_blocks::types) names.emplace_back(type.name);
  std::sort(names.begin(), names.end());
  return join(names, ", ");
}

std::string foreign_gguf_type(uint32_t number) {
  for (const auto& [known, name] : gguf_blocks::foreign)
    if (known == number) return name;
  return "";
}

namespace gguf_blocks {
namespace {

const GgufType& of_form(PackedForm form) {
  for (const GgufType& type : types)
    if (type.unpack && type.form == form) return type;
  MASE_CHECK(false, "no type of this form");
}

void widen_blocks(const PackedType& type, const std::byte* blocks, int64_t count, float* out) {
  widen_gguf(of_form(type.form), {blocks, static_cast<size_t>(count * type.bytes)}, out);
}

void widen_floats(const PackedType& type, const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, blocks + 2 * i, sizeof bits);
    out[i] = type.form == PackedForm::f16 ? half_to_float(bits) : bfloat16_to_float(bits);
  }
}

std::map<uint32_t, PackedTypePtr> make_packed_types() {
  std::map<uint32_t, PackedTypePtr> made;
  for (const GgufType& type : types) {
    PackedType packed{.name = type.name, .values = type.values, .bytes = type.bytes};
    if (type.unpack) {
      packed.form = type.form;
      packed.bits = type.bits;
      packed.offsets = type.offsets;
      packed.halves = type.halves;
      packed.widen = widen_blocks;
    } else if (type.plain == DType::f16 || type.plain == DType::bf16) {
      packed.form = type.plain == DType::f16 ? PackedForm::f16 : PackedForm::bf16;
      packed.halves = {0};
      packed.widen = widen_floats;
    } else {
      continue;
    }
    made[type.number] = std::make_shared<const PackedType>(std::move(packed));
  }
  return made;
}

}  // namespace
}  // namespace gguf_blocks

namespace gguf_blocks {
namespace {
const std::map<uint32_t, PackedTypePtr>& by_number() {
  static const std::map<uint32_t, PackedTypePtr> all = make_packed_types();
  return all;
}
}  // namespace
}  // namespace gguf_blocks

PackedTypePtr packed_type(const GgufType& type) {
  const auto found = gguf_blocks::by_number().find(type.number);
  return found == gguf_blocks::by_number().end() ? nullptr : found->second;
}

std::vector<PackedTypePtr> packed_types() {
  std::vector<PackedTypePtr> all;
  for (const auto& [number, type] : gguf_blocks::by_number()) all.push_back(type);
  return all;
}

Tensor with_packed_floats(const Tensor& tensor) {
  constexpr uint32_t half = 1, brain = 30;
  const bool short_floats = tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16;
  if (tensor.shape().size() != 2 || !short_floats) return tensor;
  const auto kept = std::make_shared<const Tensor>(tensor);
  const uint32_t number = tensor.dtype() == DType::f16 ? half : brain;
  return {tensor.shape(), packed_type(*find_gguf_type(number)), kept->raw(), kept};
}

void widen_gguf(const GgufType& type, std::span<const std::byte> blocks, float* out) {
  gguf_blocks::for_each_block(type, blocks, [&](const GgufBlock& block, int64_t first) {
    for (int64_t i = 0; i < type.values; ++i) {
      const auto group = static_cast<size_t>(i / type.group);
      const float value =
          block.steps[group] * static_cast<float>(block.codes[static_cast<size_t>(i)]);
      // Without offsets nothing is added: -0 stays.
      out[first + i] = type.offsets ? value + block.offsets[group] : value;
    }
  });
}

GgufCodes gguf_codes(const GgufType& type, std::span<const std::byte> blocks) {
  GgufCodes result;
  result.group = type.group;
  const auto groups = static_cast<size_t>(type.values / type.group);
  gguf_blocks::for_each_block(type, blocks, [&](const GgufBlock& block, int64_t) {
    result.codes.insert(result.codes.end(), block.codes.begin(), block.codes.begin() + type.values);
    result.steps.insert(result.steps.end(), block.steps.begin(), block.steps.begin() + groups);
    if (type.offsets)
      result.offsets.insert(result.offsets.end(), block.offsets.begin(),
                            block.offsets.begin() + groups);
  });
  return result;
}

}  // namespace mase
