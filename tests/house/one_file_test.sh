#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Adding an op, a pass or a number format touches exactly one source file. In a scratch tree each is
# added as one new file; only that file is compiled, into a shared object that registers itself when
# loaded into the program that is already built.
set -euo pipefail
grep -q '^MASE_SANITIZE:STRING=.' "$MASE_BUILD/CMakeCache.txt" && exit 77  # preloads need plain objects
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$MASE_SOURCE/src" "$scratch/src"

cat >"$scratch/src/mase/ops/mish.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// Mish: x tanh(softplus(x)).
#include "mase/ops/elementwise.h"

namespace mase::mish_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return x * tanh(softplus(x));
}

const Register<OpRecord> registered{activation({.name = "mish",
                                                .class_name = "Mish",
                                                .function = "torch.nn.functional.mish",
                                                .mase_type = {},
                                                .summary = "x * tanh(softplus(x))"},
                                               expr)};

}  // namespace
}  // namespace mase::mish_op
TEXT
cat >"$scratch/src/mase/passes/analysis/count_nodes.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// count_nodes: how many nodes the graph has.
#include "mase/passes/pass.h"

namespace mase::count_nodes_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext&) {
  const auto count = static_cast<int64_t>(graph.order().size());
  return {Dict{{"nodes", count * args["factor"].as_int()}}, false};
}

const Register<PassRecord> registered{{
    .name = "count_nodes",
    .summary = "how many nodes the graph has",
    .schema = {{{.name = "factor", .type = FieldType::integer, .default_value = 1}}},
    .run = run,
}};

}  // namespace
}  // namespace mase::count_nodes_pass
TEXT
cat >"$scratch/src/mase/formats/sign_only.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// sign_only: every value becomes its sign times a step.
#include <cmath>

#include "mase/formats/format.h"

namespace mase::sign_only_format {
namespace {

Quantizer make(const Value& config) {
  const auto step = static_cast<float>(config["step"].as_double());
  Quantizer quantizer;
  quantizer.elementwise = true;
  quantizer.quantize = [step](const float* in, float* out, const Shape& shape) {
    for (int64_t i = 0; i < element_count(shape); ++i) out[i] = std::copysign(step, in[i]);
  };
  quantizer.reference = quantizer.quantize;
  quantizer.bits_per_value = [](const Shape&) { return 1.0; };
  return quantizer;
}

const Register<FormatRecord> registered{{
    .name = "sign_only",
    .class_suffix = "SignOnly",
    .summary = "the sign times a step",
    .schema = {{{.name = "step", .type = FieldType::number, .default_value = 1.0}}},
    .make = make,
}};

}  // namespace
}  // namespace mase::sign_only_format
TEXT

# Exactly three files differ from the tree: one for each.
[[ $(diff -rq "$MASE_SOURCE/src" "$scratch/src" | wc -l) == 3 ]]
[[ $(diff -rq "$MASE_SOURCE/src" "$scratch/src" | grep -c "^Only in $scratch") == 3 ]]
python3 "$MASE_SOURCE/scripts/check_includes.py" "$scratch"

library=$(dirname "$(dirname "$MASE_CH")")/lib
compile() {
  g++ -std=c++20 -O0 -Wall -Wextra -Werror -Wno-missing-field-initializers -fPIC -shared \
    -I "$scratch/src" "$scratch/src/mase/$1" -L "$library" -lmase -lfmt -o "$scratch/$2.so"
}
compile ops/mish.cpp op & a=$!
compile passes/analysis/count_nodes.cpp pass & b=$!
compile formats/sign_only.cpp format & c=$!
wait $a; wait $b; wait $c
export LD_LIBRARY_PATH=$library
loaded="$scratch/op.so $scratch/pass.so $scratch/format.so"

LD_PRELOAD=$loaded "$MASE_CH" --info all >"$scratch/info"
grep -q "^mish  *Mish  *torch.nn.functional.mish" "$scratch/info"
grep -q "^count_nodes  *analysis" "$scratch/info"
grep -q "^sign_only  *step" "$scratch/info"

# The op can be used at once, and the sweep over the registry tests its gradient.
printf 'input = [4]\nseq_blocks = [{type = "Linear", out_features = 3}, {type = "Mish"}]\n' \
  >"$scratch/net.toml"
LD_PRELOAD=$loaded "$MASE_CH" summary "$scratch/net.toml" | grep -q "seq_blocks.1 (Mish)"
if [[ -x $MASE_BUILD/tests/test_ops_gradient ]]; then
  LD_PRELOAD=$loaded "$MASE_BUILD/tests/test_ops_gradient" --gtest_filter='*EveryOp*' >"$scratch/gradient"
fi
# All three appear in the reference.
LD_PRELOAD=$loaded "$MASE_CH" reference >"$scratch/reference"
for name in mish count_nodes sign_only; do grep -q "^### \`$name\`" "$scratch/reference"; done
