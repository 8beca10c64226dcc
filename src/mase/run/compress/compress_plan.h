// SPDX-License-Identifier: Apache-2.0
// What is tried, as it is written on a command line:
//   formats   group_integer:width=4,group_size=32   a format with keys, those of the weights;
//             integer:width=8,data_in_width=8       data_in_, bias_, data_out_: other operands
//             none                                  weights stay as they are
//   methods   rtn      gptq      smoothquant:alpha=0.8+gptq      train:max_epochs=2
//             fuse_batch_norm+cross_layer_equalisation+rtn+bias_correction
// A method is a chain of passes behind the formats. rtn (round to nearest) is none of them; in a
// chain it says where the formats come, and what stands before it works without them. train trains
// the network as it then is, with options of ch train.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/passes/pass.h"

namespace mase {

struct CompressFormat {
  std::string text;
  Value config;  // a layer's table: name, weight_width, ...; null: no format
};

struct CompressStep {
  PassCall call;
  bool trains = false;  // its arguments are then options of training
};

struct CompressMethod {
  std::string text;
  std::vector<CompressStep> before = {}, after = {};  // the formats
};

CompressFormat compress_format(const std::string& text);
// `calibration_rows` (0: the pass's own): for every pass that takes rows and does not say how many.
CompressMethod compress_method(const std::string& text, int64_t calibration_rows);

// The nodes whose layers get formats: all that multiply by weights, each layer once, but those
// whose names match an expression of `leave`. An Error where that leaves none.
std::vector<NodeId> compress_layers(const Graph& graph, const std::vector<std::string>& leave);

// The table for quantize that gives these layers the format; none for the format "none".
std::optional<PassCall> compress_quantize_call(const Graph& graph,
                                               const std::vector<NodeId>& layers,
                                               const CompressFormat& format);

}  // namespace mase
