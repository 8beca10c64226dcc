#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Adding an op, a pass, a number format, a loss, a metric, an optimiser, a schedule or a task touches
# exactly one source file. In a scratch tree each is added as one new file; only that file is
# compiled, into a shared object that registers itself when loaded into the program that is already
# built.
set -euo pipefail
grep -q '^MASE_SANITIZE:STRING=.' "$MASE_BUILD/CMakeCache.txt" && exit 77  # preloads need plain objects
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$MASE_SOURCE/src" "$scratch/src"

cat >"$scratch/src/mase/ops/squareplus.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// Squareplus: (x + sqrt(x^2 + 4)) / 2.
#include "mase/ops/elementwise.h"

namespace mase::squareplus_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return 0.5 * (x + sqrt(x * x + 4.0));
}

const Register<OpRecord> registered{activation({.name = "squareplus",
                                                .class_name = "Squareplus",
                                                .function = "torch.nn.functional.squareplus",
                                                .mase_type = {},
                                                .summary = "(x + sqrt(x^2 + 4)) / 2"},
                                               expr)};

}  // namespace
}  // namespace mase::squareplus_op
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

cat >"$scratch/src/mase/train/losses/cauchy.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// log(1 + d^2 / 2): errors far out weigh little.
#include "mase/train/loss.h"

namespace mase::cauchy_loss {
namespace {

const Register<LossRecord> registered{
    elementwise_loss("cauchy", "log(1 + d^2 / 2)", {}, [](const Value&) {
      const Expr d = Expr::operand(0) - Expr::operand(1);
      return log(1.0 + 0.5 * (d * d));
    })};

}  // namespace
}  // namespace mase::cauchy_loss
TEXT
cat >"$scratch/src/mase/train/metrics/largest_error.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// The largest error of any row.
#include <algorithm>
#include <cmath>

#include "mase/train/metric.h"

namespace mase::largest_error_metric {
namespace {

void add(const MetricInput& batch, const Value&, std::span<double> row) {
  for (int64_t i = 0; i < batch.rows * batch.outputs; ++i)
    row[0] = std::max(row[0], std::abs(static_cast<double>(batch.logits[i]) - batch.targets[i]));
}

double value(std::span<const double> table, int64_t, const Value&) {
  return *std::max_element(table.begin(), table.end());
}

const Register<MetricRecord> registered{{
    .name = "largest_error",
    .summary = "the largest error of any row",
    .for_classes = false,
    .for_numbers = true,
    .higher_is_better = false,
    .columns = [](int64_t) -> int64_t { return 1; },
    .add = add,
    .value = value,
}};

}  // namespace
}  // namespace mase::largest_error_metric
TEXT
cat >"$scratch/src/mase/train/optimizers/sign_sgd.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// Sign descent: every weight moves by the learning rate.
#include "mase/train/optimizer.h"

namespace mase::sign_sgd_optimizer {
namespace {

void update(const Value&, const UpdateStep& step) {
  for (size_t i = 0; i < step.values.size(); ++i) {
    const float g = step.gradients[i];
    step.values[i] -= static_cast<float>(step.learning_rate) * static_cast<float>((g > 0) - (g < 0));
  }
}

const Register<OptimizerRecord> registered{
    {.name = "sign_sgd", .summary = "steps of one size", .update = update}};

}  // namespace
}  // namespace mase::sign_sgd_optimizer
TEXT
cat >"$scratch/src/mase/train/schedules/halving.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// Half the rate in each epoch.
#include <cmath>

#include "mase/train/schedule.h"

namespace mase::halving_schedule {
namespace {

const Register<ScheduleRecord> registered{{
    .name = "halving",
    .summary = "half the rate in each epoch",
    .rate = [](const Value&, const SchedulePosition& at) {
      return at.base * std::exp2(-static_cast<double>(at.epoch));
    },
}};

}  // namespace
}  // namespace mase::halving_schedule
TEXT
cat >"$scratch/src/mase/train/tasks/robust_regression.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// Numbers among which some are far off.
#include "mase/train/task.h"

namespace mase::robust_regression_task {
namespace {

const Register<TaskRecord> registered{{
    .name = "robust_regression",
    .summary = "numbers among which some are far off",
    .classes = false,
    .loss = "cauchy",
    .metrics = {"loss", "largest_error"},
    .monitor = "largest_error",
}};

}  // namespace
}  // namespace mase::robust_regression_task
TEXT

# Exactly eight files differ from the tree: one for each.
[[ $(diff -rq "$MASE_SOURCE/src" "$scratch/src" | wc -l) == 8 ]]
[[ $(diff -rq "$MASE_SOURCE/src" "$scratch/src" | grep -c "^Only in $scratch") == 8 ]]
python3 "$MASE_SOURCE/scripts/check_includes.py" "$scratch"

library=$(dirname "$(dirname "$MASE_CH")")/lib
compile() {
  g++ -std=c++20 -O0 -Wall -Wextra -Werror -Wno-missing-field-initializers -fPIC -shared \
    -I "$scratch/src" "$scratch/src/mase/$1" -L "$library" -lmase -lfmt -o "$scratch/$2.so"
}
compile ops/squareplus.cpp op & a=$!
compile passes/analysis/count_nodes.cpp pass & b=$!
compile formats/sign_only.cpp format & c=$!
wait $a; wait $b; wait $c
compile train/losses/cauchy.cpp loss & a=$!
compile train/metrics/largest_error.cpp metric & b=$!
wait $a; wait $b
compile train/optimizers/sign_sgd.cpp optimizer & a=$!
compile train/schedules/halving.cpp schedule & b=$!
wait $a; wait $b
compile train/tasks/robust_regression.cpp task
export LD_LIBRARY_PATH=$library
loaded="$scratch/op.so $scratch/pass.so $scratch/format.so"
training="$scratch/loss.so $scratch/metric.so $scratch/optimizer.so $scratch/schedule.so $scratch/task.so"

LD_PRELOAD=$loaded "$MASE_CH" --info all >"$scratch/info"
grep -q "^squareplus  *Squareplus  *torch.nn.functional.squareplus" "$scratch/info"
grep -q "^count_nodes  *analysis" "$scratch/info"
grep -q "^sign_only  *step" "$scratch/info"

# The op can be used at once, and the sweep over the registry tests its gradient.
printf 'input = [4]\nseq_blocks = [{type = "Linear", out_features = 3}, {type = "Squareplus"}]\n' \
  >"$scratch/net.toml"
LD_PRELOAD=$loaded "$MASE_CH" summary "$scratch/net.toml" | grep -q "seq_blocks.1 (Squareplus)"
if [[ -x $MASE_BUILD/tests/test_ops_gradient ]]; then
  LD_PRELOAD=$loaded "$MASE_BUILD/tests/test_ops_gradient" --gtest_filter='*EveryOp*' >"$scratch/gradient"
fi
# All three appear in the reference.
LD_PRELOAD=$loaded "$MASE_CH" reference >"$scratch/reference"
for name in squareplus count_nodes sign_only; do grep -q "^### \`$name\`" "$scratch/reference"; done

# What belongs to training is there by name, and trains: its own task chooses the new loss and the new
# figure by itself.
seq 0 199 | awk 'BEGIN { print "a,b,y" } { print $1 / 100 "," ($1 % 7) / 7 "," $1 / 50 + 0.25 }' \
  >"$scratch/table.csv"
printf 'seq_blocks = [{type = "Linear", out_features = 1}]\n' >"$scratch/small.toml"
cd "$scratch"
LD_PRELOAD="$loaded $training" "$MASE_CH" train small.toml table.csv --target y --task robust_regression \
  --training-optimizer sign_sgd --schedule halving --learning-rate 0.05 --max-epochs 4 --batch-size 16 \
  --project run >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
head -1 mase_output/run/software/metrics.csv | grep -q "val_loss_epoch,val_largest_error_epoch"
grep -q "by val_largest_error_epoch" "$scratch/out" || { cat "$scratch/out"; exit 1; }
if [[ -x $MASE_BUILD/tests/test_train_losses ]]; then  # its gradient is tested by existing
  LD_PRELOAD="$loaded $training" "$MASE_BUILD/tests/test_train_losses" --gtest_filter='*Gradients*' >"$scratch/losses"
fi
