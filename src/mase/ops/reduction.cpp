// SPDX-License-Identifier: Apache-2.0
// sum and mean over all or some dimensions.
#include "mase/base/broadcast.h"
#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/elementwise.h"

namespace mase::reduction_ops {
namespace {

struct Reduced {
  Shape kept;        // reduced dimensions are 1
  Shape out;         // as PyTorch returns it
  double count = 1;  // elements summed into one
  std::vector<int64_t> dims;

  Reduced(const Value& attributes, const Shape& shape)
      : kept(shape), dims(checked_dims(attributes["dim"], shape.size())) {
    for (const int64_t dim : dims) {
      count *= static_cast<double>(shape[static_cast<size_t>(dim)]);
      kept[static_cast<size_t>(dim)] = 1;
    }
    const bool keep = attributes["keepdim"].as_bool();
    for (size_t i = 0; i < shape.size(); ++i)
      if (keep || !std::count(dims.begin(), dims.end(), static_cast<int64_t>(i)))
        out.push_back(kept[i]);
  }
};

OpRecord reduction(OpRecord record, ReduceKind kind) {
  record.attributes = {{
      {.name = "dim",
       .help = "dimension or list of dimensions; all if not given",
       .check = dims_fault},
      boolean_field("keepdim", "keep reduced dimensions with size 1", false),
  }};
  const bool mean = kind == ReduceKind::mean;
  record.infer = [](const Value& attributes, const std::vector<Shape>& inputs) {
    return Reduced(attributes, inputs[0]).out;
  };
  record.eval = [mean](const OpCall& call) {
    const Array& x = *call.inputs[0];
    const Reduced reduced(call.attributes, x.shape);
    Array y = sum_to_shape(x, reduced.kept);
    if (mean)
      for (double& value : y.data) value /= reduced.count;
    y.shape = reduced.out;
    return y;
  };
  record.grad = [mean](const OpCall& call, const Array&, const Array& g) {
    const Array& x = *call.inputs[0];
    const Reduced reduced(call.attributes, x.shape);
    Array gx(x.shape);
    const std::vector<size_t> places = broadcast_places(reduced.kept, x.shape);
    for (size_t i = 0; i < gx.data.size(); ++i)
      gx.data[i] = g.data[places[i]] / (mean ? reduced.count : 1.0);
    return OpGradients{{std::move(gx)}};
  };
  record.cost = [](const Value&, const std::vector<Shape>& inputs, const Shape&) {
    return OpCost{0, element_count(inputs[0])};
  };
  record.lower = [kind](Lowering& lowering, const Value& attributes,
                        const std::vector<Slot>& inputs) {
    const Reduced reduced(attributes, lowering.shape(inputs[0]));
    return lowering.reduce(kind, inputs[0], reduced.dims, attributes["keepdim"].as_bool());
  };
  return record;
}

const Register<OpRecord> sum{reduction({.name = "sum",
                                        .function = "torch.sum",
                                        .mase_type = "implicit_func",
                                        .summary = "sum over dimensions"},
                                       ReduceKind::sum)};
const Register<OpRecord> mean{reduction({.name = "mean",
                                         .function = "torch.mean",
                                         .mase_type = "implicit_func",
                                         .summary = "mean over dimensions",
                                         .element = ElementRule::real},
                                        ReduceKind::mean)};

}  // namespace
}  // namespace mase::reduction_ops
