// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "mase/base/text.h"
#include "mase/io/networks/tensor_view.h"

namespace mase::onnx {
namespace {

// Sign, exponent, fraction in the low bits of a byte. Without a sign and a fraction all codes are
// powers of two.
struct SmallFloat {
  int exponent, mantissa, bias;
  enum Topmost { none, ieee, one_nan, unsigned_zero, power } topmost;
};

std::optional<SmallFloat> small_float(Element element) {
  switch (element) {
    case Element::f8e4m3fn:
      return SmallFloat{4, 3, 7, SmallFloat::one_nan};
    case Element::f8e4m3fnuz:
      return SmallFloat{4, 3, 8, SmallFloat::unsigned_zero};
    case Element::f8e5m2:
      return SmallFloat{5, 2, 15, SmallFloat::ieee};
    case Element::f8e5m2fnuz:
      return SmallFloat{5, 2, 16, SmallFloat::unsigned_zero};
    case Element::f4e2m1:
      return SmallFloat{2, 1, 1, SmallFloat::none};
    case Element::f8e8m0:
      return SmallFloat{8, 0, 127, SmallFloat::power};
    default:
      return {};
  }
}

float decode(const SmallFloat& type, uint32_t code) {
  const uint32_t top = (1u << type.exponent) - 1;
  const uint32_t fraction = code & ((1u << type.mantissa) - 1);
  const uint32_t field = code >> type.mantissa & top;
  const bool negative = code >> (type.mantissa + type.exponent) & 1;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (type.topmost == SmallFloat::power)
    return code == 255 ? nan : std::ldexp(1.0f, static_cast<int>(code) - type.bias);
  if (type.topmost == SmallFloat::unsigned_zero && negative && field == 0 && fraction == 0)
    return nan;
  if (type.topmost == SmallFloat::one_nan && field == top && fraction == (1u << type.mantissa) - 1)
    return nan;
  float value = std::ldexp(static_cast<float>(fraction + (field > 0 ? 1u << type.mantissa : 0)),
                           static_cast<int>(std::max(field, 1u)) - type.bias - type.mantissa);
  if (type.topmost == SmallFloat::ieee && field == top)
    value = fraction ? nan : std::numeric_limits<float>::infinity();
  return negative ? -value : value;
}

// Elements that share a byte have 4 or 2.
size_t packed_bits(Element element) {
  if (element == Element::i4 || element == Element::u4 || element == Element::f4e2m1) return 4;
  return element == Element::i2 || element == Element::u2 ? 2 : 8;
}

// Bytes that `count` elements take in raw_data.
size_t raw_size(Element element, size_t count) {
  if (const size_t bits = packed_bits(element); bits < 8) return (count * bits + 7) / 8;
  if (small_float(element)) return count;
  return count * dtype_size(*dtype_of(element));
}

struct Source {
  const TensorData& data;
  ExternalFiles& files;
  MemoryBudget& budget;
  std::string place;
  size_t count;

  [[noreturn]] void fail(const std::string& cause, const std::string& remedy = "") const {
    throw Error(place, fmt::format("tensor '{}': {}", printable(data.name), cause), remedy);
  }
  void want(size_t have, size_t wanted, const char* what) const {
    if (have != wanted)
      fail(fmt::format("{} {} {} where its shape {} wants {}", have, what,
                       have == 1 ? "stands" : "stand", shape_text(data.dims), wanted));
  }
};

// raw_data or the same bytes in a file beside the model.
Tensor raw_tensor(const Source& source, DType dtype, const Shape& shape, size_t size) {
  const TensorData& data = source.data;
  if (data.field != TensorData::Field::external) {
    source.want(data.bytes.size(), size, "bytes");
    return view_or_copy(shape, dtype, data.bytes, data.owner, source.budget, source.place);
  }
  const ExternalFiles::File& file = source.files.open(data.location, source.budget, source.place);
  if (data.length) source.want(static_cast<size_t>(*data.length), size, "bytes");
  if (data.offset > file.size || size > file.size - data.offset)
    source.fail(fmt::format("its data file '{}' has {} bytes, wanted are {} from byte {} on",
                            printable(data.location), file.size, size, data.offset),
                "the file is cut short or belongs to another model");
  source.budget.charge(size + 64, source.place);
  source.files.check_memory(size,
                            fmt::format("{}: tensor '{}'", source.place, printable(data.name)));
  Tensor tensor(shape, dtype);
  if (size > 0)
    read_at(file.descriptor.get(), tensor.mutable_raw(), size, data.offset, source.place);
  if (dtype == DType::boolean) {  // other bytes than 0 and 1 are no truth values
    std::byte* at = tensor.mutable_raw();
    for (size_t i = 0; i < size; ++i) at[i] = at[i] == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return tensor;
}

// Elements narrower than a byte, and floats that we have no tensors for, one code to a byte.
Tensor unpack(const Source& source, const std::vector<uint8_t>& codes) {
  const Element element = source.data.element;
  Tensor tensor(source.data.dims, *dtype_of(element));
  const auto type = small_float(element);
  const size_t unused = 8 - packed_bits(element);
  for (size_t i = 0; i < source.count; ++i) {
    if (type)
      tensor.mutable_data<float>()[i] = decode(*type, codes[i]);
    else if (element == Element::i4 || element == Element::i2)
      tensor.mutable_data<int8_t>()[i] =
          static_cast<int8_t>(static_cast<int8_t>(codes[i] << unused) >> unused);
    else
      tensor.mutable_data<uint8_t>()[i] = codes[i];
  }
  return tensor;
}

std::vector<uint8_t> codes_of(const Source& source) {
  const Element element = source.data.element;
  const size_t size = raw_size(element, source.count);
  source.budget.charge(source.count * 6 + 64, source.place);
  std::vector<uint8_t> bytes(size);
  if (source.data.field == TensorData::Field::int32s) {
    source.want(source.data.numbers.size(), size, "numbers");
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(source.data.numbers[i]);
  } else {
    const Tensor raw = raw_tensor(source, DType::u8, Shape{static_cast<int64_t>(size)}, size);
    if (size > 0) std::memcpy(bytes.data(), raw.raw(), size);
  }
  const size_t bits = packed_bits(element), each = 8 / bits;
  if (bits == 8) return bytes;
  std::vector<uint8_t> codes(source.count);
  for (size_t i = 0; i < source.count; ++i)
    codes[i] = static_cast<uint8_t>(bytes[i / each] >> (i % each * bits) & ((1u << bits) - 1));
  return codes;
}

// int32_data and its like: one number to an element, cut to its width.
Tensor from_numbers(const Source& source, DType dtype) {
  source.want(source.data.numbers.size(), source.count, "numbers");
  source.budget.charge(source.count * dtype_size(dtype) + 64, source.place);
  Tensor tensor(source.data.dims, dtype);
  std::byte* to = tensor.mutable_raw();
  const size_t size = dtype_size(dtype);
  for (size_t i = 0; i < source.count; ++i) {
    const auto bits = static_cast<uint64_t>(dtype == DType::boolean ? source.data.numbers[i] != 0
                                                                    : source.data.numbers[i]);
    std::memcpy(to + i * size, &bits, size);  // little-endian, as all machines we know
  }
  return tensor;
}

bool fits_numbers(TensorData::Field field, DType dtype) {
  using Field = TensorData::Field;
  if (field == Field::int64s) return dtype == DType::i64;
  if (field == Field::uint64s) return dtype == DType::u64 || dtype == DType::u32;
  return dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i64 && dtype != DType::u64 &&
         dtype != DType::u32;
}

}  // namespace

std::optional<DType> dtype_of(Element element) {
  switch (element) {
    case Element::f32:
    case Element::f8e4m3fn:
    case Element::f8e4m3fnuz:
    case Element::f8e5m2:
    case Element::f8e5m2fnuz:
    case Element::f4e2m1:
    case Element::f8e8m0:
      return DType::f32;
    case Element::u8:
    case Element::u4:
    case Element::u2:
      return DType::u8;
    case Element::i8:
    case Element::i4:
    case Element::i2:
      return DType::i8;
    case Element::u16:
      return DType::u16;
    case Element::i16:
      return DType::i16;
    case Element::i32:
      return DType::i32;
    case Element::i64:
      return DType::i64;
    case Element::boolean:
      return DType::boolean;
    case Element::f16:
      return DType::f16;
    case Element::f64:
      return DType::f64;
    case Element::u32:
      return DType::u32;
    case Element::u64:
      return DType::u64;
    case Element::bf16:
      return DType::bf16;
    default:
      return {};
  }
}

bool is_real(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

bool is_real(Element element) {
  const auto dtype = dtype_of(element);
  return dtype && is_real(*dtype);
}

Constant read_constant(const TensorData& data, ExternalFiles& files, MemoryBudget& budget,
                       const std::string& place) {
  using Field = TensorData::Field;
  Source source{data, files, budget, place, 0};
  const auto dtype = dtype_of(data.element);
  if (!dtype) source.fail(fmt::format("{} cannot be read", element_name(data.element)));
  if (data.dims.size() > most_dimensions)
    source.fail(
        fmt::format("it has {} dimensions; the most is {}", data.dims.size(), most_dimensions));
  for (const int64_t size : data.dims)
    if (size < 0) source.fail(fmt::format("its shape is {}", shape_text(data.dims)));
  try {
    source.count = static_cast<size_t>(element_count(data.dims));
  } catch (const Error&) {
    source.fail(fmt::format("its shape {} is too large", shape_text(data.dims)));
  }
  // Claims are checked against what stands there before anything is allocated.
  constexpr size_t most = size_t{1} << 40;
  if (source.count > most) source.fail("it is too large");
  if (small_float(data.element) || packed_bits(data.element) < 8) {
    if (data.field != Field::raw && data.field != Field::int32s && data.field != Field::external)
      source.want(0, source.count, "values");
    if (data.field != Field::external)
      source.want(data.field == Field::raw ? data.bytes.size() : data.numbers.size(),
                  raw_size(data.element, source.count), "bytes");
    return {unpack(source, codes_of(source)), data.element};
  }
  const size_t size = raw_size(data.element, source.count);
  switch (data.field) {
    case Field::raw:
    case Field::external:
      return {raw_tensor(source, *dtype, data.dims, size), data.element};
    case Field::floats:
    case Field::doubles:
      if (*dtype != (data.field == Field::floats ? DType::f32 : DType::f64))
        source.fail("its values stand in the field of another type");
      return {raw_tensor(source, *dtype, data.dims, size), data.element};
    case Field::int32s:
    case Field::int64s:
    case Field::uint64s:
      if (!fits_numbers(data.field, *dtype))
        source.fail("its values stand in the field of another type");
      return {from_numbers(source, *dtype), data.element};
    case Field::none:
    case Field::texts:
      break;
  }
  source.want(0, source.count, "values");
  return {Tensor(data.dims, *dtype), data.element};
}

Element element_for(DType dtype) {
  for (int32_t number = 1; number <= static_cast<int32_t>(Element::bf16); ++number)
    if (const auto element = static_cast<Element>(number); dtype_of(element) == dtype)
      return element;
  return Element::undefined;
}

TensorData tensor_data(const std::string& name, const Tensor& tensor) {
  return tensor_data(name, tensor, element_for(tensor.dtype()));
}

TensorData tensor_data(const std::string& name, const Tensor& tensor, Element element) {
  TensorData data{.name = name, .dims = tensor.shape(), .element = element};
  data.field = TensorData::Field::raw;
  auto kept = std::make_shared<Tensor>(tensor);
  if (element == Element::i4 || element == Element::u4) {
    const auto count = static_cast<size_t>(tensor.numel());
    Tensor packed(Shape{static_cast<int64_t>((count + 1) / 2)}, DType::u8);
    auto* to = packed.mutable_data<uint8_t>();
    for (size_t i = 0; i < count; ++i)
      to[i / 2] = static_cast<uint8_t>(
          to[i / 2] | (std::to_integer<unsigned>(tensor.raw()[i]) & 15u) << (i % 2 * 4));
    *kept = packed;
  }
  data.bytes = {kept->raw(), kept->bytes()};
  data.owner = std::move(kept);
  return data;
}

}  // namespace mase::onnx
