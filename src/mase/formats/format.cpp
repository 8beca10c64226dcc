// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/format.h"

namespace mase {

QuantizerPtr make_quantizer(const std::string& format, const Value& config,
                            const std::string& path) {
  const FormatRecord& record =
      Registry<FormatRecord>::instance().get(format, Error(config.position(), path, "").place());
  Quantizer quantizer = record.make(validate(config, record.schema, path));
  MASE_CHECK(quantizer.quantize && quantizer.bits_per_value, "format '{}' is incomplete", format);
  quantizer.format = record.name;
  return std::make_shared<const Quantizer>(std::move(quantizer));
}

Tensor quantize(const Quantizer& quantizer, const Tensor& tensor) {
  const Tensor in = tensor.to(DType::f32);
  Tensor out(in.shape());
  quantizer.quantize(in.data<float>(), out.mutable_data<float>(), in.shape());
  return out;
}

}  // namespace mase
