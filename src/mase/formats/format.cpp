// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/format.h"

namespace mase {

Quantizer typed_quantizer(const NumberType& type, bool clipped) {
  Quantizer quantizer;
  static_cast<Rounder&>(quantizer) = type.rounder();
  quantizer.type = type;
  quantizer.clipped = clipped;
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
    static_cast<Rounder&>(quantizer) = record.make(checked);
    quantizer.elementwise = quantizer.is_elementwise();
    quantizer.untyped = std::get<std::string>(type);
    quantizer.clipped = clipped;
  }
  MASE_CHECK(quantizer.one || quantizer.sweep, "format '{}' is incomplete", format);
  quantizer.format = record.name;
  quantizer.config = checked;
  if (record.precision) quantizer.precision = record.precision(checked);
  return std::make_shared<const Quantizer>(std::move(quantizer));
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
