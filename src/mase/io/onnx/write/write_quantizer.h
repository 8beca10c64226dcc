// SPDX-License-Identifier: Apache-2.0
// Number formats as nodes: Quant of QONNX, or QuantizeLinear, Clip and DequantizeLinear of ONNX.
#pragma once

#include <optional>
#include <string>

#include "mase/formats/format.h"
#include "mase/io/onnx/read/operand_format.h"
#include "mase/io/onnx/write/writer.h"

namespace mase::onnx {

// The format in the words of ONNX, if it has any: fixed point and affine integers, two values,
// scaled floats.
std::optional<OperandFormat> format_for_export(const Quantizer& quantizer, size_t rank);
// Why the flavour cannot express it exactly; nothing if it can.
std::optional<std::string> why_not(const OperandFormat& format, Flavour flavour,
                                   int64_t operator_set);
// The name of the rounded value.
std::string write_quantizer(WriteContext& context, const std::string& name,
                            const OperandFormat& format, const Shape& shape);

}  // namespace mase::onnx
