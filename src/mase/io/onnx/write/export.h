// SPDX-License-Identifier: Apache-2.0
// Graphs of ours as ONNX models: float networks as plain ONNX, quantised ones in one of the three
// forms in which the field writes them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/io/onnx/file/model.h"
#include "mase/io/onnx/write/tensor_view.h"
#include "mase/io/read_limits.h"
#include "mase/ir/graph.h"

namespace mase::onnx {

enum class Flavour {
  plain,  // no quantised operand
  qonnx,  // Quant, BipolarQuant, FloatQuant nodes of qonnx.custom_op.general
  qcdq,   // QuantizeLinear, Clip, DequantizeLinear: widths up to 8 bits
  qdq,    // QuantizeLinear, DequantizeLinear: 8 and 16 bits
};
const char* flavour_name(Flavour flavour);
std::vector<std::string> flavour_names();
Flavour flavour_from_name(const std::string& name);

// A graph that a file describes, written to see whether the file is that.
struct WritingTrial {
  MemoryBudget* budget;  // of tables that nodes need (masks, angles): the graph may claim any size
  // Where this view of a tensor of the graph came from; nullptr where it must be made.
  std::function<const TensorData*(const std::string& name, const TensorView& view)> source;
};

struct ExportOptions {
  Flavour flavour = Flavour::plain;
  int64_t operator_set = 20;
  const WritingTrial* trial = nullptr;
};
inline constexpr int64_t oldest_written = 13, newest_written = 21;

// A layer or number format that the form cannot express exactly is an Error that names it.
Model export_graph(const Graph& graph, const ExportOptions& options = {});

}  // namespace mase::onnx
