#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Adding an op, a pass, a number format, a loss, a metric, an optimiser, a schedule, a task or a figure
# that a search is for touches exactly one source file, an op with a primitive and a kernel of its own three. In a scratch tree
# each is added as one new file; only those files are compiled, into shared objects that register
# themselves when loaded into the program that is already built.
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

Rounder make(const Value& config) {
  const auto step = static_cast<float>(config["step"].as_double());
  Rounder rounder;
  rounder.bits = 1;
  rounder.one = [step](const GroupRun&, float x, uint32_t) { return std::copysign(step, x); };
  return rounder;
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

cat >"$scratch/src/mase/search/figures/largest_layer.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// The multiplications of the largest layer.
#include <algorithm>

#include "mase/search/measure/figure.h"

namespace mase::largest_layer_figure {
namespace {

using namespace search;

const Register<FigureRecord> registered{{
    .name = "largest_layer",
    .summary = "BitOPs of the largest layer",
    .value =
        [](const Measured& known) {
          double most = 0;
          for (const LayerCost& layer : known.cost->layers)
            most = std::max(most, static_cast<double>(layer.bitops));
          return most;
        },
}};

}  // namespace
}  // namespace mase::largest_layer_figure
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

# An op that nothing else computes well takes three files: what it means, its primitive, its kernel.
cat >"$scratch/src/mase/ops/alternate.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// Every second feature with the other sign.
#include "mase/ir/lowering.h"
#include "mase/ir/op.h"

namespace mase::alternate_op {
namespace {

Array turned(const Array& x) {
  Array y = x;
  const auto features = static_cast<size_t>(x.shape.empty() ? 1 : x.shape.back());
  for (size_t i = 0; i < y.data.size(); ++i)
    if (i % features % 2 == 1) y.data[i] = -y.data[i];
  return y;
}

const Register<OpRecord> registered{{
    .name = "alternate",
    .class_name = "Alternate",
    .mase_type = "module_related_func",
    .summary = "every second feature with the other sign",
    .infer = [](const Value&, const std::vector<Shape>& inputs) { return inputs[0]; },
    .eval = [](const OpCall& call) { return turned(*call.inputs[0]); },
    .grad =
        [](const OpCall&, const Array&, const Array& g) {
          OpGradients result;
          result.inputs.push_back(turned(g));
          return result;
        },
    .cost = [](const Value&, const std::vector<Shape>&, const Shape&) { return OpCost{}; },
    .lower = [](Lowering& to, const Value&, const std::vector<Slot>& inputs) {
      return to.primitive("alternate", {}, inputs);
    },
}};

}  // namespace
}  // namespace mase::alternate_op
TEXT
cat >"$scratch/src/mase/engine/primitives/alternate.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// alternate: every second row of the last axis with the other sign; its gradient is itself.
#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::kernels {
void turn_sign(const float* in, float* out, int64_t n, bool accumulate, float sign);
}

namespace mase::engine::alternate_primitive {
namespace {

struct AlternatePayload {};

Slot lower(Lowerer& to, const Value&, const std::vector<Slot>& operands) {
  const Slot x = to.flat(operands[0]);
  if (!to.is_batch(x) || to.shape(x).size() < 2) return -1;
  return to.add("alternate", {.in = {x}, .payload = AlternatePayload{}}, to.shape(x), Layout::batch,
                to.info(x).axes);
}

Step sweep(Plan& plan, const Primitive& p, int from, int to, bool accumulate) {
  Step step{"alternate", "", {from}, {to}};
  const TensorView view = view_of(plan, p.out);
  const int64_t features = view.shape.back();
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, x = memory[from], y = memory[to]](const Run& run) {
      for (int64_t r = 0; r < view.rows; ++r)
        kernels::turn_sign(x + r * view.stride, y + r * view.stride, view.lanes(run.n), accumulate,
                           r % features % 2 == 1 ? -1.0f : 1.0f);
    };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  if (const Target t = backward.target(p.in[0]); t.tensor >= 0)
    backward.push(sweep(backward.plan(), p, gradient, t.tensor, t.accumulate));
}

void reference(Reference& call) {
  each_index(call.out.shape, [&](const Shape& index) {
    value_at(call.out, index) = (index.back() % 2 == 1 ? -1 : 1) * value_at(call.in[0], index);
  });
}

const Register<PrimitiveRecord> registered{{
    .name = "alternate",
    .summary = "every second row of the last axis with the other sign",
    .payload = typeid(AlternatePayload),
    .variants = {{"vectors",
                  [](Plan& plan, Primitive& p) { return sweep(plan, p, p.in[0], p.out, false); }}},
    .reference = reference,
    .gradient = gradient,
    .generate =
        [](Trial& trial) {
          const Slot x = trial.activation({trial.size(1, 5, 4), trial.size(1, 9, 64)});
          return trial.to().primitive("alternate", {}, {x});
        },
    .lower = lower,
}};

}  // namespace
}  // namespace mase::engine::alternate_primitive
TEXT
cat >"$scratch/src/mase/engine/kernels/turn_sign.cpp" <<'TEXT'
// SPDX-License-Identifier: Apache-2.0
// out = sign * in, or added to it.
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/turn_sign.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void TurnSign(const float* in, float* out, int64_t n, bool accumulate, float sign) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {  // rows end in padding
    const auto turned = hn::Mul(hn::LoadU(d, in + i), hn::Set(d, sign));
    hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, out + i), turned) : turned, d, out + i);
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {

HWY_EXPORT(TurnSign);
void turn_sign(const float* in, float* out, int64_t n, bool accumulate, float sign);
void turn_sign(const float* in, float* out, int64_t n, bool accumulate, float sign) {
  HWY_DYNAMIC_DISPATCH(TurnSign)(in, out, n, accumulate, sign);
}

}  // namespace mase::kernels
#endif
TEXT

# Exactly eleven files differ from the tree: one for each, three for the op with a kernel.
[[ $(diff -rq "$MASE_SOURCE/src" "$scratch/src" | wc -l) == 12 ]]
[[ $(diff -rq "$MASE_SOURCE/src" "$scratch/src" | grep -c "^Only in $scratch") == 12 ]]
python3 "$MASE_SOURCE/scripts/check_includes.py" "$scratch"

library=$(dirname "$(dirname "$MASE_CH")")/lib
compile() {
  g++ -std=c++20 -O0 -Wall -Wextra -Werror -Wno-missing-field-initializers -fPIC -shared \
    -I "$scratch/src" "$scratch/src/mase/$1" -L "$library" -lmase -lfmt ${3:-} -o "$scratch/$2.so"
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
compile ops/alternate.cpp fast_op & a=$!
compile engine/primitives/alternate.cpp primitive & b=$!
compile engine/kernels/turn_sign.cpp kernel "$(pkg-config --cflags --libs libhwy)" & c=$!
wait $a; wait $b; wait $c
compile train/tasks/robust_regression.cpp task & a=$!
compile search/figures/largest_layer.cpp figure & b=$!
wait $a; wait $b
export LD_LIBRARY_PATH=$library
fast="$scratch/kernel.so $scratch/primitive.so $scratch/fast_op.so"
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
if [[ -x $MASE_BUILD/tests/test_ops ]]; then
  LD_PRELOAD=$loaded "$MASE_BUILD/tests/test_ops" --gtest_filter='*EveryOp*' >"$scratch/gradient"
fi
# The op with a kernel runs by it, not by its own code, and the sweep over primitives tests it.
printf 'input = [4]\nseq_blocks = [{type = "Linear", out_features = 3}, {type = "Alternate"}]\n' \
  >"$scratch/fast.toml"
LD_PRELOAD=$fast "$MASE_CH" summary "$scratch/fast.toml" --program >"$scratch/program"
grep -q "  alternate  .*seq_blocks_1" "$scratch/program"
! grep -q "  call  " "$scratch/program"
if [[ -x $MASE_BUILD/tests/test_engine ]]; then
  LD_PRELOAD=$fast "$MASE_BUILD/tests/test_engine" --gtest_filter='*/alternate' >"$scratch/sweep"
  grep -q "3 tests" "$scratch/sweep"
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
if [[ -x $MASE_BUILD/tests/test_train ]]; then  # its gradient is tested by existing
  LD_PRELOAD="$loaded $training" "$MASE_BUILD/tests/test_train" --gtest_filter='Losses.*Gradients*' >"$scratch/losses"
fi
# The figure is an objective, a runner and a column of the tables by existing.
LD_PRELOAD=$scratch/figure.so "$MASE_CH" search jsc-tiny jsc-sim --sim-rows 500 --space bits=4,8 --objective accuracy,largest_layer \
  --project found >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
grep -q "|   largest_layer |" "$scratch/out" || { cat "$scratch/out"; exit 1; }
grep -q '"largest_layer":' mase_output/found/software/search_ckpts/best.json
