// SPDX-License-Identifier: Apache-2.0
// gptq: chooses the roundings of quantised weights column by column, each making good the errors of
// those before it on calibration rows (Frantar et al., 2023). Any number format; its scales are
// those of the weights before (static groups), so that inference needs no order of columns.
#include "mase/passes/gptq_choice.h"

namespace mase::gptq_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  return improve_weights(
      graph, args, context,
      {.name = "gptq",
       .choose = [options = gptq_options(args)](
                     const WeightProblem& problem) { return gptq_choice(problem, options); },
       .clips = clips_of(args["clip"])});
}

Schema schema() {
  std::vector<Field> fields = gptq_fields();
  fields.push_back(clips_field(
      "clip", "shares of a group's range that its scale may serve: the best by the inputs is taken",
      List{1.0}));
  return weight_method_schema(std::move(fields));
}

const Register<PassRecord> registered{{
    .name = "gptq",
    .aliases = {"gptq_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Roundings of weights that make good each other's errors (GPTQ)",
    .help = "Runs behind quantize, on every quantised linear layer and convolution. A layer whose "
            "error on held-out rows would rise is left as it was. Scales that clip_search found "
            "are kept.",
    .schema = schema(),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::gptq_pass
