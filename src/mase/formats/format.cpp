// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/format.h"

#include <algorithm>

#include "mase/formats/blocks.h"
#include "mase/formats/elementwise.h"
#include "mase/formats/few_valued.h"
#include "mase/formats/fixed.h"
#include "mase/formats/floating.h"
#include "mase/formats/scaled.h"

namespace mase {
namespace {

Quantizer form_quantizer(const NumberType& type, bool clipped) {
  struct Make {
    const Granularity& granularity;
    bool clipped;
    Quantizer operator()(const Fixed& form) const {
      return fixed_quantizer(form, granularity, clipped);
    }
    Quantizer operator()(const Float& form) const { return float_quantizer(form); }
    Quantizer operator()(const Log& form) const { return float_quantizer(form); }
    Quantizer operator()(const Scaled& form) const { return scaled_quantizer(form, granularity); }
    Quantizer operator()(const Block& form) const { return block_quantizer(form); }
    Quantizer operator()(const Binary& form) const { return binary_quantizer(form); }
    Quantizer operator()(const Ternary& form) const { return ternary_quantizer(form); }
  };
  return std::visit(Make{type.granularity, clipped}, type.form);
}

}  // namespace

void set_bits_and_limits(Quantizer& quantizer, const NumberType& type) {
  quantizer.bits_per_value = [type](const Shape& shape) {
    return mase::bits_per_value(type, shape);
  };
  if (const auto limits = limits_of(type)) {
    quantizer.lowest = limits->lowest;
    quantizer.largest = limits->largest;
    quantizer.smallest_positive = limits->smallest_positive;
  }
}

Quantizer typed_quantizer(const NumberType& type, bool clipped) {
  Quantizer quantizer = form_quantizer(type, clipped);
  quantizer.type = type;
  quantizer.elementwise = is_elementwise(type);
  set_bits_and_limits(quantizer, type);
  if (clipped && !quantizer.gradient && quantizer.lowest && quantizer.largest)
    set_clipped_gradient(quantizer, *quantizer.lowest, *quantizer.largest);
  return quantizer;
}

QuantizerPtr make_quantizer(const std::string& format, const Value& config,
                            const std::string& path) {
  const FormatRecord& record =
      Registry<FormatRecord>::instance().get(format, Error(config.position(), path, "").place());
  const Value checked = validate(config, record.schema, path);
  const bool clipped = checked["ste"].is_string() && checked["ste"].as_string() == "clipped";
  TypeOrReason type = record.type ? record.type(checked) : "the format brings its own quantizer";
  Quantizer quantizer;
  if (const NumberType* known = std::get_if<NumberType>(&type)) {
    quantizer = typed_quantizer(*known, clipped);
  } else {
    MASE_CHECK(record.make, "format '{}' gives neither a type nor a quantizer", format);
    quantizer = record.make(checked);
    quantizer.untyped = std::get<std::string>(type);
    if (clipped && !quantizer.gradient && quantizer.lowest && quantizer.largest)
      set_clipped_gradient(quantizer, *quantizer.lowest, *quantizer.largest);
  }
  MASE_CHECK(quantizer.quantize && quantizer.bits_per_value, "format '{}' is incomplete", format);
  quantizer.format = record.name;
  quantizer.config = checked;
  if (record.precision) quantizer.precision = record.precision(checked);
  return std::make_shared<const Quantizer>(std::move(quantizer));
}

std::optional<std::string> misfit(const Quantizer& quantizer, const Shape& shape) {
  if (quantizer.misfit) return quantizer.misfit(shape);
  if (!quantizer.type) return {};
  const Granularity& granularity = quantizer.type->granularity;
  std::optional<int64_t> axis;
  if (granularity.kind == Granularity::Kind::axis) axis = granularity.axis;
  if (const Block* block = quantizer.type->as<Block>()) axis = block->axis;
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis && rank > 0 && (*axis < -rank || *axis >= rank))
    return fmt::format("axis {} is out of range for shape {}", *axis, shape_text(shape));
  int64_t numbers = 1;
  if (const Fixed* fixed = quantizer.type->as<Fixed>()) numbers = group_count(*fixed);
  if (const Scaled* scaled = quantizer.type->as<Scaled>())
    numbers =
        static_cast<int64_t>(std::max({scaled->steps.size(), scaled->zeros.size(), size_t{1}}));
  if (numbers == 1) return {};
  const int64_t groups = grouping(shape, granularity).groups;
  if (groups == numbers || element_count(shape) == 0) return {};
  return fmt::format("{} numbers in a list for {} groups of shape {}", numbers, groups,
                     shape_text(shape));
}

Tensor quantize(const Quantizer& quantizer, const Tensor& tensor) {
  if (const auto problem = misfit(quantizer, tensor.shape()))
    throw Error(quantizer.format, *problem,
                "give one number per group, or granularity = \"tensor\"");
  const Tensor in = tensor.to(DType::f32);
  Tensor out(in.shape());
  quantizer.quantize(in.data<float>(), out.mutable_data<float>(), in.shape());
  return out;
}

}  // namespace mase
