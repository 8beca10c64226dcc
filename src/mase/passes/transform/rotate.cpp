// SPDX-License-Identifier: Apache-2.0
// rotate: weights turned by orthogonal matrices, so that no few of them are much larger than the
// others, and the network computes what it did (Ashkboos et al., "QuaRot", 2024). See rotation.h
// for what is turned.
#include <algorithm>
#include <cmath>
#include <functional>

#include "mase/base/table.h"
#include "mase/ir/learned.h"
#include "mase/passes/calibration.h"
#include "mase/passes/channel_scaling.h"
#include "mase/passes/format_error.h"
#include "mase/passes/output.h"
#include "mase/passes/rotation.h"

namespace mase::rotate_pass {
namespace {

constexpr double most_change = 1e-4;  // of outputs without formats: single precision only

std::string text(double value) { return fmt::format("{:.3e}", value); }

// The largest magnitude of weights over their root mean square, on average over layers: what
// rotations are to lower.
double outliers(const Graph& graph, const std::vector<NodeId>& layers) {
  double sum = 0;
  for (const NodeId id : layers) {
    const Tensor& weight = *graph.module_of(graph.node(id))->find("weight");
    double largest = 0, squares = 0;
    for (const float value : weight.values<float>()) {
      largest = std::max(largest, std::fabs(double{value}));
      squares += double{value} * value;
    }
    const double mean =
        std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, weight.numel())));
    sum += mean > 0 ? largest / mean : 0;
  }
  return layers.empty() ? 0 : sum / static_cast<double>(layers.size());
}

// One rotation that is taken or left as a whole.
struct Turn {
  std::string name;
  int64_t width = 0;
  std::vector<NodeId> layers;  // linear layers it turns
  std::function<void(Graph&)> apply;
};

std::vector<Turn> turns_of(const Graph& graph, const Value& args, uint64_t seed, Dict& left) {
  const bool hadamard = args["kind"].as_string() == "hadamard";
  std::vector<Turn> turns;
  if (args["hidden"].as_bool())
    for (RotationStream& stream : rotation_streams(graph, left)) {
      Turn turn{"hidden: " + stream.name, stream.width, stream.layers, {}};
      turn.layers.insert(turn.layers.end(), stream.readers.begin(), stream.readers.end());
      turn.apply = [stream, hadamard, seed, index = turns.size()](Graph& to) {
        rotate_stream(to, stream,
                      drawn_rotation(stream.width, {hadamard, stream.takes_mean}, seed,
                                     "rotate.hidden", index));
      };
      turns.push_back(std::move(turn));
    }
  if (args["heads"].as_bool()) {
    const std::vector<RotationHeads> all = rotation_heads(graph, left);
    if (!all.empty()) {
      Turn turn{fmt::format("values of {} attentions", all.size()), all.front().width, {}, {}};
      for (const RotationHeads& heads : all)
        turn.layers.insert(turn.layers.end(), {heads.maker, heads.taker});
      turn.apply = [all, hadamard, seed](Graph& to) {
        for (size_t i = 0; i < all.size(); ++i)
          rotate_heads(to, all[i],
                       drawn_rotation(all[i].width, {hadamard, false}, seed, "rotate.heads", i));
      };
      turns.push_back(std::move(turn));
    }
  }
  return turns;
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  Dict left, told;
  const std::vector<Turn> turns = turns_of(graph, args, context.seed, left);
  Dict data{{"rotations", Dict{}}, {"left_alone", Value(left)}};
  if (turns.empty()) {
    std::string why;
    for (const auto& [name, reason] : left)
      if (why.empty()) why = fmt::format(": {}: {}", name, reason.as_string());
    print(context, fmt::format("rotate: nothing can be rotated{}\n", why));
    return {std::move(data), false};
  }
  const CalibrationRows rows = calibration_rows(graph, args, context);
  const Graph reference = without_formats(graph);
  const bool judged = has_formats(graph);
  Graph changed = graph;
  Table table({"Rotated", "Width", "Layers", "Largest / RMS", "after", "Before (held out)",
               "After (held out)", ""});
  bool any = false;
  for (size_t at = 0; at < turns.size(); ++at) {
    const Turn& turn = turns[at];
    Graph tried = changed;
    turn.apply(tried);
    for (const NodeId id : turn.layers) refit(*tried.module_of(tried.node(id)));
    const auto error = [&](const Graph& of) {
      return judged ? output_format_error(reference, of, rows.heldout, context.threads) : 0.0;
    };
    const double before = error(changed), wide = outliers(changed, turn.layers);
    double after = error(tried), narrow = outliers(tried, turn.layers);
    const bool kept = after <= before;
    std::string what;
    if (kept) {
      changed = std::move(tried);
      any = true;
    } else {
      what = fmt::format("left alone: {} on held-out rows", text(after));
      after = before;
      narrow = wide;
    }
    table.add({turn.name, std::to_string(turn.width), std::to_string(turn.layers.size()),
               fmt::format("{:.2f}", wide), fmt::format("{:.2f}", narrow),
               judged ? text(before) : "", judged ? text(after) : "", what});
    told.set(turn.name, Dict{{"width", turn.width},
                             {"layers", turn.layers.size()},
                             {"largest_over_rms", wide},
                             {"largest_over_rms_after", narrow},
                             {"heldout_before", before},
                             {"heldout_after", after},
                             {"kept", kept},
                             {"note", what}});
    if (context.progress)
      context.progress(static_cast<double>(at + 1) / static_cast<double>(turns.size()));
  }
  const double change =
      largest_change(reference, without_formats(changed), few_rows(rows.heldout), context.threads);
  if (!(change <= most_change))
    throw Error(
        "rotate",
        fmt::format("outputs without number formats changed by {} of the largest", text(change)),
        "leave out hidden or heads; nothing was changed");
  graph = std::move(changed);
  print(context,
        fmt::format("rotate: {}\n{}\nOutputs without number formats changed by at most {} of the "
                    "largest, on {} rows.\n",
                    judged ? "errors of outputs relative to their power"
                           : "no number formats, so nothing is judged",
                    table.str(), text(change), std::min<int64_t>(32, rows.heldout.at(0).dim(0))));
  data.set("calibration", rows.record());
  data.set("rotations", std::move(told));
  data.set("judged", judged);
  data.set("change_without_formats", change);
  return {std::move(data), any};
}

Schema schema() {
  Schema result{{{.name = "kind",
                  .type = FieldType::text,
                  .default_value = "hadamard",
                  .help = "Hadamard matrices with drawn signs, or orthogonal ones that are drawn",
                  .choices = {"hadamard", "orthogonal"}},
                 {.name = "hidden",
                  .type = FieldType::boolean,
                  .default_value = true,
                  .help = "rotate what is summed up along the network"},
                 {.name = "heads",
                  .type = FieldType::boolean,
                  .default_value = true,
                  .help = "rotate the values of every head of attention"}}};
  for (Field& field : calibration_fields()) result.fields.push_back(std::move(field));
  return result;
}

const Register<PassRecord> registered{{
    .name = "rotate",
    .aliases = {"rotate_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Weights of transformers turned so that none stick out (QuaRot)",
    .help = "Exact in real arithmetic, and checked. Gains of norms go into the layers behind them; "
            "a head that shares its table with the embedding gets its own. Networks whose norms "
            "stand behind the sums (BERT) have their heads rotated alone. gptq may follow.",
    .schema = schema(),
    .run = run,
    .tolerance = most_change,
}};

}  // namespace
}  // namespace mase::rotate_pass
