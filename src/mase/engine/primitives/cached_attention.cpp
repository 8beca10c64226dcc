// SPDX-License-Identifier: Apache-2.0
// cached_attention: one new token over a cache of keys and values, which are buffers of the graph:
// the token's own key and value are put at its position, then everything up to there is seen. What
// was written stays for the next run. A batch of one, in inference.
#include "mase/engine/kernels/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mase/engine/kernels/parallel.h"
#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"
#include "mase/formats/format.h"

namespace mase::engine::cached_attention_primitive {
namespace {

struct CachedAttentionPayload {
  double scale = 1;
  int64_t window = 0;  // 0: all
  // What those are rounded to.
  const Quantizer *scores = nullptr, *exponentials = nullptr, *shares = nullptr;
};

Slot lower(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
  for (size_t i = 0; i < 3; ++i)
    if (!to.is_batch(operands[i]) || to.shape(operands[i])[0] != 1) return -1;
  if (!to.is_fixed(operands[3]) || !to.is_fixed(operands[4]) || !to.is_batch(operands[5]))
    return -1;
  CachedAttentionPayload payload{attributes["scale"].as_double(), attributes["window"].as_int()};
  if (to.node()) {
    payload.scores = to.format_of("scores");
    payload.exponentials = to.format_of("exponentials");
    payload.shares = to.format_of("shares");
  }
  Primitive primitive{.payload = payload};
  for (const size_t i : {0, 1, 2, 5}) primitive.in.push_back(to.flat(operands[i]));
  primitive.params = {{"keys", operands[3]}, {"values", operands[4]}};
  Shape shape = to.shape(operands[0]);
  shape.back() = to.shape(operands[2]).back();
  return to.add("cached_attention", std::move(primitive), shape, Layout::batch,
                Axes::flat(shape.size()));
}

kernels::CachedAttention shape_of(const Plan& plan, const Primitive& p) {
  const Shape &q = plan.at(p.in[0]).shape, &keys = plan.at(p.params[0].second).shape;
  return {q[1],    keys[0],
          q[3],    plan.at(p.out).shape[3],
          keys[2], static_cast<float>(p.as<CachedAttentionPayload>().scale)};
}

int64_t position_of(float given, int64_t positions, const std::string& place) {
  if (!(given >= 0 && given < static_cast<float>(positions)) || given != std::floor(given))
    throw Error(place, fmt::format("position {} in a cache of {}", given, positions));
  return static_cast<int64_t>(given);
}

// The halves of a softmax, where what it sums up has a number format.
void exponentials(float* row, int64_t count) {
  const float most = *std::max_element(row, row + count);
  for (int64_t j = 0; j < count; ++j) row[j] = std::exp(row[j] - most);
}

void normalise(float* row, int64_t count) {
  const float sum = std::accumulate(row, row + count, 0.0f);
  for (int64_t j = 0; j < count && sum != 0; ++j) row[j] /= sum;
}

std::optional<Step> vectors(Plan& plan, Primitive& p) {
  const kernels::CachedAttention s = shape_of(plan, p);
  const int values_of_q = plan.scratch("query", s.heads * s.width),
            scores = plan.scratch("scores", s.heads * s.positions),
            mixed = plan.scratch("mixed", s.heads * s.result);
  const int keys = p.params[0].second, values = p.params[1].second;
  Step step{"cached_attention", fmt::format("{} heads, {} positions", s.heads, s.positions)};
  for (const int tensor : p.in) step.read({tensor});
  step.write({p.out, keys, values, values_of_q, scores, mixed});
  const std::vector<int64_t> strides = {plan.row_stride(p.in[0]), plan.row_stride(p.in[1]),
                                        plan.row_stride(p.in[2]), plan.row_stride(p.out)};
  const std::string place = p.node >= 0 ? plan.graph().node(p.node).name : "";
  const int threads = plan.options.threads;
  step.bind = [=, own = p.as<CachedAttentionPayload>(), in = p.in,
               out = p.out](const Memory& memory) -> Kernel {
    return [=, q = memory[in[0]], k = memory[in[1]], v = memory[in[2]], at = memory[in[3]],
            to = memory[out], cached_keys = memory[keys], cached_values = memory[values],
            query = memory[values_of_q], weights = memory[scores],
            result = memory[mixed]](const Run&) {
      const int64_t position = position_of(at[0], s.positions, place);
      for (int64_t i = 0; i < s.key_heads * s.width; ++i)
        cached_keys[i * s.positions + position] = k[i * strides[1]];
      for (int64_t h = 0; h < s.key_heads; ++h)
        for (int64_t f = 0; f < s.result; ++f)
          cached_values[(h * s.positions + position) * s.result + f] =
              v[(h * s.result + f) * strides[2]];
      for (int64_t i = 0; i < s.heads * s.width; ++i) query[i] = q[i * strides[0]];
      const int64_t end = position + 1,
                    begin = own.window > 0 ? std::max<int64_t>(0, end - own.window) : 0,
                    count = end - begin;
      constexpr int64_t parallel_work = int64_t{1} << 18;
      const int parts = s.heads * s.width * count >= parallel_work ? threads : 1;
      const auto head_of = [&](int64_t h) { return weights + h * count; };
      kernels::for_each_piece(s.heads, parts, [&](int64_t h) {
        kernels::cached_scores(s, h, query + h * s.width, cached_keys, begin, end, head_of(h));
      });
      const Shape whole = {1, s.heads, 1, count};
      if (own.scores) own.scores->quantize(weights, weights, whole);
      if (own.exponentials) {
        for (int64_t h = 0; h < s.heads; ++h) exponentials(head_of(h), count);
        own.exponentials->quantize(weights, weights, whole);
        for (int64_t h = 0; h < s.heads; ++h) normalise(head_of(h), count);
      } else {
        for (int64_t h = 0; h < s.heads; ++h) kernels::share_out(head_of(h), count);
      }
      if (own.shares) own.shares->quantize(weights, weights, whole);
      kernels::for_each_piece(s.heads, parts, [&](int64_t h) {
        kernels::cached_mix(s, h, head_of(h), cached_values, begin, end, result + h * s.result);
      });
      for (int64_t i = 0; i < s.heads * s.result; ++i) to[i * strides[3]] = result[i];
    };
  };
  return step;
}

void reference(Reference& call) {
  const auto& own = call.primitive.as<CachedAttentionPayload>();
  const Array keys = call.read(call.primitive.params[0].second),
              values = call.read(call.primitive.params[1].second);
  const Value attributes = Dict{{"is_causal", false},
                                {"cached", true},
                                {"scale", own.scale},
                                {"window", own.window > 0 ? Value(own.window) : Value()}};
  OpCall op{attributes, {&call.in[0], &call.in[1], &call.in[2], &keys, &values, &call.in[3]}};
  call.out.data = find_op("scaled_dot_product_attention").eval(op).data;
}

Slot generate(Trial& trial) {
  if (trial.to().training()) return -1;
  trial.batch(1, 1);
  const int64_t key_heads = trial.size(1, 3, 3), heads = key_heads * trial.size(1, 3, 3),
                width = trial.size(1, 70, 64), result = trial.size(1, 70, 64),
                room = trial.size(1, 90, 512);
  const Slot q = trial.activation({heads, 1, width}), k = trial.activation({key_heads, 1, width}),
             v = trial.activation({key_heads, 1, result}),
             keys = trial.parameter({key_heads, width, room}),
             values = trial.parameter({key_heads, room, result}),
             at = trial.activation({1}, {0, static_cast<double>(room - 1), true});
  return trial.to().primitive(
      "cached_attention", Dict{{"scale", 0.2}, {"window", trial.coin() ? trial.size(1, 20, 0) : 0}},
      {q, k, v, keys, values, at});
}

const Register<PrimitiveRecord> registered{{
    .name = "cached_attention",
    .summary = "one new token over a cache of keys and values, which keeps it",
    .payload = typeid(CachedAttentionPayload),
    .variants = {{"vectors", vectors}},
    .reference = reference,
    .generate = generate,
    .any_stride = true,
    .multiply_adds =
        [](const Plan& plan, const Primitive& p) {
          const kernels::CachedAttention s = shape_of(plan, p);
          return static_cast<double>(s.heads * s.positions * (s.width + s.result));
        },
    .lower = lower,
}};

}  // namespace
}  // namespace mase::engine::cached_attention_primitive
