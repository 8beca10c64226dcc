// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/packed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "mase/base/text.h"
#include "mase/formats/packing.h"
#include "mase/io/networks/checkpoint.h"

namespace mase {
namespace {

constexpr const char* scales_suffix = ".scales";
constexpr const char* exponents_suffix = ".exponents";

Shape vector_shape(size_t count) { return {static_cast<int64_t>(count)}; }

const Tensor* find(const std::map<std::string, const Tensor*>& by_name, const std::string& name) {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

Tensor unpack(const std::string& place, const Value& about,
              const std::map<std::string, const Tensor*>& by_name, const std::string& name) {
  const auto broken = [&](const std::string& cause) {
    return Error(place, cause, "write the file anew with ch quantize --packed");
  };
  const QuantizerPtr quantizer =
      make_quantizer(about["format"].as_string(place), about["config"], place);
  if (!quantizer->code_bits) throw broken("the format has no codes with these keys");
  const Shape shape = about["shape"].as_int_list(place);
  const Tensor* bytes = find(by_name, name);
  if (!bytes || bytes->dtype() != DType::u8) throw broken("there are no packed codes");
  // A code has at least one bit: the count is in proportion to the file.
  const auto held = static_cast<size_t>(bytes->numel());
  size_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || (size > 0 && count > 8 * held / static_cast<size_t>(size)))
      throw broken(fmt::format("{} bytes do not hold shape {}", held, shape_text(shape)));
    count *= static_cast<size_t>(size);
  }
  if (packed_size(count, quantizer->code_bits) != held)
    throw broken(
        fmt::format("{} bytes do not hold the codes of shape {}", held, shape_text(shape)));
  if (const auto problem = misfit(*quantizer, shape)) throw broken(*problem);
  // What is shared has the same extent as for any tensor of this shape.
  Tensor result(shape);
  Quantizer::Codes codes = quantizer->encode(result.data<float>(), shape);
  codes.codes = unpack_codes({bytes->raw(), held}, quantizer->code_bits, count);
  const Tensor* scales = find(by_name, name + scales_suffix);
  const Tensor* exponents = find(by_name, name + exponents_suffix);
  if (static_cast<size_t>(scales ? scales->numel() : 0) != codes.scales.size() ||
      static_cast<size_t>(exponents ? exponents->numel() : 0) != codes.exponents.size())
    throw broken("scales or exponents do not fit the shape");
  for (size_t i = 0; i < codes.scales.size(); ++i) {
    codes.scales[i] = scales->item(static_cast<int64_t>(i));
    if (!(std::fabs(codes.scales[i]) <= std::numeric_limits<float>::max()))
      throw broken("a scale is no number of single precision");
  }
  for (size_t i = 0; i < codes.exponents.size(); ++i)
    codes.exponents[i] =
        static_cast<int32_t>(std::clamp(exponents->item(static_cast<int64_t>(i)), -1000.0, 1000.0));
  quantizer->decode(codes, result.mutable_data<float>(), shape);
  return result;
}

}  // namespace

void save_packed(const std::string& path, const std::vector<PackedTensor>& tensors) {
  TensorTable table;
  Dict metadata;
  for (const PackedTensor& item : tensors) {
    const Quantizer& quantizer = *item.quantizer;
    if (!quantizer.code_bits)
      throw Error(item.name, fmt::format("{} has no codes with these keys", quantizer.format),
                  "take rounding = \"nearest_even\", or a word of at most 24 bits");
    const Tensor values = item.tensor.to(DType::f32);
    const Quantizer::Codes codes = quantizer.encode(values.data<float>(), values.shape());
    const auto bytes = pack_codes(codes.codes, quantizer.code_bits);
    Tensor packed(vector_shape(bytes.size()), DType::u8);
    std::copy(bytes.begin(), bytes.end(), packed.mutable_raw());
    table.emplace_back(item.name, packed);
    if (!codes.scales.empty())
      table.emplace_back(item.name + scales_suffix,
                         Tensor::of<double>(vector_shape(codes.scales.size()), codes.scales));
    if (!codes.exponents.empty())
      table.emplace_back(
          item.name + exponents_suffix,
          Tensor::of<int32_t>(vector_shape(codes.exponents.size()), codes.exponents));
    List shape;
    for (const int64_t size : values.shape()) shape.emplace_back(size);
    const Dict about{
        {"format", quantizer.format}, {"config", quantizer.config}, {"shape", Value(shape)}};
    metadata.set(item.name, to_json(Value(about)));
  }
  save_safetensors(path, table, metadata);
}

TensorTable load_packed(const std::string& path) {
  Dict metadata;
  const TensorTable table = load_safetensors(path, &metadata);
  std::map<std::string, const Tensor*> by_name;
  for (const auto& [name, tensor] : table) by_name[name] = &tensor;
  TensorTable result;
  for (const auto& [name, text] : metadata) {
    const std::string place = path + ": " + printable(name);
    if (!by_name.contains(name)) continue;  // somebody else's
    result.emplace_back(name,
                        unpack(place, parse_json(text.as_string(place), place), by_name, name));
  }
  if (result.empty())
    throw Error(path, "holds no packed tensors", "write them with ch quantize --packed FILE");
  return result;
}

}  // namespace mase
