// SPDX-License-Identifier: Apache-2.0
// pack_weights: matrices whose weights have a number format are kept by their codes: what the
// format leaves of them in the bits that it counts. Outputs stay what they were but for the order
// of sums, files are written so, and programs read the codes. What cannot be packed exactly stays
// as it is.
#include "mase/formats/packed_groups.h"
#include "mase/passes/pass.h"

namespace mase::pack_weights_pass {
namespace {

PassResult run(Graph& graph, const Value&, PassContext&) {
  List packed, left;
  int64_t before = 0, after = 0;
  for (auto& [path, module] : graph.modules())
    for (auto& [name, tensor] : module.parameters) {
      const Quantizer* quantizer = module.quantization.find(name);
      if (!quantizer || tensor.shape().size() != 2 || tensor.packed()) continue;
      const std::string place = tensor_name(path, name);
      const Tensor floats = tensor.to(DType::f32);
      const std::optional<Tensor> made = misfit(*quantizer, tensor.shape()) || quantizer->learned
                                             ? std::nullopt
                                             : packed_as(quantize(*quantizer, floats), *quantizer);
      if (!made) {
        left.emplace_back(place);
        continue;
      }
      before += static_cast<int64_t>(tensor.bytes());
      after += static_cast<int64_t>(made->stored_bytes());
      tensor = *made;
      packed.emplace_back(place);
    }
  const bool changed = !packed.empty();
  return {Dict{{"packed", std::move(packed)},
               {"left", std::move(left)},
               {"bytes_before", before},
               {"bytes_after", after}},
          changed};
}

const Register<PassRecord> registered{{
    .name = "pack_weights",
    .aliases = {"pack_weights_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Keeps rounded weights by their codes, in memory and in files",
    .run = run,
    .tolerance = 1e-5,
}};

}  // namespace
}  // namespace mase::pack_weights_pass
