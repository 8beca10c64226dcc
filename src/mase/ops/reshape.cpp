// SPDX-License-Identifier: Apache-2.0
// reshape: the same elements in another shape. One size may be -1 and follows from the others; a 0
// keeps the size the dimension has (ONNX's rule; x.view(x.size(0), -1) is bound so).
#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/reshaping.h"

namespace mase::reshape_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape out = attributes["shape"].as_int_list("shape");
  const int64_t count = element_count(inputs[0]);
  for (size_t i = 0; i < out.size() && i < inputs[0].size(); ++i)
    if (out[i] == 0) out[i] = inputs[0][i];
  const auto open = std::find(out.begin(), out.end(), -1);
  if (open != out.end()) {
    Shape others(out.begin(), open);
    others.insert(others.end(), open + 1, out.end());
    const int64_t known = element_count(others);
    if (known > 0 && count % known == 0) *open = count / known;
  }
  if (std::count(out.begin(), out.end(), -1) || element_count(out) != count)
    throw Error("",
                fmt::format("shape {} cannot become {}", shape_text(inputs[0]),
                            shape_text(attributes["shape"].as_int_list())),
                fmt::format("{} elements must stay", count));
  return out;
}

std::optional<std::string> shape_fault(const Value& value) {
  for (const Value& size : value.as_list())
    if (!size.is_int() || size.as_int() < -1) return "expected a list of sizes; one may be -1";
  return {};
}

const Register<OpRecord> registered{{
    .name = "reshape",
    .aliases = {"view"},
    .function = "torch.reshape",
    .mase_type = "implicit_func",
    .summary = "the same elements in another shape",
    .attributes = {{list_field("shape",
                               "sizes, the batch included; one may be -1, and 0 keeps a size")
                        .needed()
                        .checked(shape_fault)}},
    .infer = infer,
    .eval = eval_reshaping<infer>,
    .grad = grad_reshaping,
    .lower = lower_reshaping<infer>,
    .complete =
        [](Dict& attributes, const std::vector<Shape>&, int64_t) {
          if (!attributes.contains("shape")) attributes.set("shape", List{-1});
        },
}};

}  // namespace
}  // namespace mase::reshape_op
