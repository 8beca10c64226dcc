// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention: softmax(q k^T scale + mask) v for q [.., L, E], k [.., S, E] and
// v [.., S, F]. `is_causal` hides later positions, and a `window` earlier ones than
// the last so many (Beltagy et al., 2020); fewer heads of k and v than of q serve several
// heads each (grouped queries, Ainslie et al., 2023). A mask is a fourth input that is added; a
// query that it hides all keys from gives zeros, as in PyTorch from 2.5 on and in onnxruntime.
// With `cached` q, k and v are those of one new token, behind them stand a cache of keys
// [heads, E, P] and values [heads, P, F], and the token's position [N, 1]: what the cache has
// before that position is seen with the new token itself, which a program then keeps in it. Number
// formats: query, key and value (data_in stands for all three), scores (scaled, before masks),
// exponentials (of the softmax, 0 to 1) and shares, which the softmax gives.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numeric>

#include "mase/base/broadcast.h"
#include "mase/ops/elementwise.h"
#include "mase/ops/softmax_parts.h"

namespace mase::scaled_dot_product_attention_op {
namespace {

bool is_cached(const Value& attributes) { return attributes["cached"].as_bool(); }

struct Geometry {
  int64_t lead, heads, key_heads, length, keys, width, result;  // lead: what is before the heads
  double scale;
};

Geometry geometry_of(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape &q = inputs[0], &k = inputs[1], &v = inputs[2];
  const size_t rank = q.size();
  const auto refuse = [&] {
    throw Error("", fmt::format("attention wants q [.., L, E], k [.., S, E], v [.., S, F], got {}, "
                                "{}, {}",
                                shape_text(q), shape_text(k), shape_text(v)));
  };
  if (rank < 3 || k.size() != rank || v.size() != rank) refuse();
  if (k[rank - 1] != q[rank - 1] || k[rank - 2] != v[rank - 2]) refuse();
  Geometry g{};
  g.heads = rank > 3 ? q[rank - 3] : 1;
  g.key_heads = rank > 3 ? k[rank - 3] : 1;
  const size_t before = rank > 3 ? rank - 3 : rank - 2;
  g.lead = 1;
  for (size_t i = 0; i < before; ++i) {
    if (k[i] != q[i] || v[i] != q[i]) refuse();
    g.lead *= q[i];
  }
  if (rank > 3 && v[rank - 3] != g.key_heads) refuse();
  if (g.key_heads < 1 || g.heads % g.key_heads != 0)
    throw Error("", fmt::format("{} heads cannot share {}", g.heads, g.key_heads));
  g.length = q[rank - 2];
  g.keys = k[rank - 2];
  g.width = q[rank - 1];
  g.result = v[rank - 1];
  g.scale = attributes["scale"].is_null()
                ? 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(1, g.width)))
                : attributes["scale"].as_double();
  return g;
}

void check_cache(const Geometry& g, const std::vector<Shape>& inputs) {
  const bool fits = inputs.size() == 6 && inputs[0].size() == 4 && g.length == 1 && g.keys == 1 &&
                    inputs[3].size() == 3 && inputs[3].back() >= 1 &&
                    inputs[3] == Shape{g.key_heads, g.width, inputs[3].back()} &&
                    inputs[4] == Shape{g.key_heads, inputs[3].back(), g.result} &&
                    inputs[5].size() == 2;
  if (!fits)
    throw Error("",
                "cached attention wants q, k and v of one token, keys [heads, E, P], values "
                "[heads, P, F] and a position for each sample");
}

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Geometry g = geometry_of(attributes, inputs);
  Shape out = inputs[0];
  out.back() = g.result;
  if (is_cached(attributes)) {
    check_cache(g, inputs);
    return out;
  }
  if (inputs.size() > 4)
    throw Error("",
                fmt::format("attention takes q, k, v and a mask, got {} inputs", inputs.size()));
  if (inputs.size() > 3) {
    Shape scores = inputs[0];
    scores.back() = g.keys;
    if (broadcast(scores, inputs[3]) != scores)
      throw Error("", fmt::format("a mask {} does not fit scores {}", shape_text(inputs[3]),
                                  shape_text(scores)));
  }
  return out;
}

// Whether a query sees a key by their places alone.
struct Sight {
  bool causal;
  int64_t window;  // 0: all

  explicit Sight(const Value& attributes)
      : causal(attributes["is_causal"].as_bool()),
        window(attributes["window"].is_null() ? 0 : attributes["window"].as_int()) {}
  bool partial() const { return causal || window > 0; }
  bool sees(int64_t query, int64_t key) const {
    return !(causal && key > query) && !(window > 0 && key <= query - window);
  }
};

// Shares of every query over all keys, [.., L, S], as the softmax gives them and as they are taken.
struct Attention {
  Geometry g;
  Sight sight;
  Array q, k, v, shares, taken;
  const Array* mask = nullptr;
  std::vector<size_t> mask_places;

  explicit Attention(const OpCall& call)
      : sight(call.attributes),
        q(call.rounded(*call.inputs[0], "query")),
        k(call.rounded(*call.inputs[1], "key")),
        v(call.rounded(*call.inputs[2], "value")) {
    std::vector<Shape> shapes;
    for (const Array* input : call.inputs) shapes.push_back(input->shape);
    g = geometry_of(call.attributes, shapes);
    Shape all = q.shape;
    all.back() = g.keys;
    if (call.inputs.size() > 3) {
      mask = call.inputs[3];
      mask_places = broadcast_places(mask->shape, all);
    }
    Array scores(all);
    each_row([&](int64_t row, int64_t first) {
      for (int64_t j = 0; j < g.keys; ++j) {
        double score = 0;
        for (int64_t e = 0; e < g.width; ++e)
          score += q.data[static_cast<size_t>(row * g.width + e)] *
                   k.data[static_cast<size_t>((first + j) * g.width + e)];
        scores.data[static_cast<size_t>(row * g.keys + j)] = score * g.scale;
      }
    });
    shares = call.rounded(std::move(scores), "scores");
    each_row([&](int64_t row, int64_t) { exponentials(row); });
    shares = call.rounded(std::move(shares), "exponentials");
    each_row([&](int64_t row, int64_t) { normalise(row); });
    taken = call.rounded(shares, "shares");
  }

  // visit(query row, first key row of its head) for every query.
  template <class Visit>
  void each_row(const Visit& visit) const {
    for (int64_t lead = 0; lead < g.lead; ++lead)
      for (int64_t head = 0; head < g.heads; ++head)
        for (int64_t i = 0; i < g.length; ++i)
          visit((lead * g.heads + head) * g.length + i,
                (lead * g.key_heads + head / (g.heads / g.key_heads)) * g.keys);
  }

 private:
  // Of scores, in their place; zeros where nothing may be seen.
  void exponentials(int64_t row) {
    constexpr double hidden = -std::numeric_limits<double>::infinity();
    double* weights = shares.data.data() + row * g.keys;
    double most = hidden;
    for (int64_t j = 0; j < g.keys; ++j) {
      if (mask) weights[j] += mask->data[mask_places[static_cast<size_t>(row * g.keys + j)]];
      if (!sight.sees(row % g.length, j)) weights[j] = hidden;
      most = std::max(most, weights[j]);
    }
    const bool blind =
        std::all_of(weights, weights + g.keys, [](double score) { return score == hidden; });
    for (int64_t j = 0; j < g.keys; ++j) weights[j] = blind ? 0 : std::exp(weights[j] - most);
  }
  void normalise(int64_t row) {
    double* weights = shares.data.data() + row * g.keys;
    double sum = 0;
    for (int64_t j = 0; j < g.keys; ++j) sum += weights[j];
    for (int64_t j = 0; j < g.keys && sum != 0; ++j) weights[j] /= sum;
  }
};

// One new token, whose position says how much of the cache is seen.
Array eval_cached(const OpCall& call) {
  std::vector<Shape> shapes;
  for (const Array* input : call.inputs) shapes.push_back(input->shape);
  const Geometry g = geometry_of(call.attributes, shapes);
  const Array q = call.rounded(*call.inputs[0], "query"), k = call.rounded(*call.inputs[1], "key"),
              v = call.rounded(*call.inputs[2], "value");
  const Array &keys = *call.inputs[3], &values = *call.inputs[4];
  const int64_t room = keys.shape.back(), window = Sight(call.attributes).window;
  Shape shape = q.shape;
  shape.back() = g.result;
  Array y(shape);
  for (int64_t sample = 0; sample < g.lead; ++sample) {
    const double given = call.inputs[5]->data[static_cast<size_t>(sample)];
    if (!(given >= 0 && given < static_cast<double>(room)))
      throw Error("", fmt::format("position {} of {}", given, room));
    const auto position = static_cast<int64_t>(given);
    const int64_t first = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
    Array scores({1, g.heads, 1, position - first + 1});
    const int64_t count = scores.shape.back();
    const auto key_at = [&](int64_t head, int64_t j, int64_t e) {
      return j == position
                 ? k.data[static_cast<size_t>((sample * g.key_heads + head) * g.width + e)]
                 : keys.data[static_cast<size_t>((head * g.width + e) * room + j)];
    };
    const auto value_at = [&](int64_t head, int64_t j, int64_t f) {
      return j == position
                 ? v.data[static_cast<size_t>((sample * g.key_heads + head) * g.result + f)]
                 : values.data[static_cast<size_t>((head * room + j) * g.result + f)];
    };
    const int64_t each = g.heads / g.key_heads;
    for (int64_t h = 0; h < g.heads; ++h)
      for (int64_t j = 0; j < count; ++j) {
        double score = 0;
        for (int64_t e = 0; e < g.width; ++e)
          score += q.data[static_cast<size_t>((sample * g.heads + h) * g.width + e)] *
                   key_at(h / each, first + j, e);
        scores.data[static_cast<size_t>(h * count + j)] = score * g.scale;
      }
    Array shares = call.rounded(std::move(scores), "scores");
    const auto row_of = [&](int64_t h) { return shares.data.data() + h * count; };
    for (int64_t h = 0; h < g.heads; ++h) {
      double* row = row_of(h);
      const double most = *std::max_element(row, row + count);
      for (int64_t j = 0; j < count; ++j) row[j] = std::exp(row[j] - most);
    }
    shares = call.rounded(std::move(shares), "exponentials");
    for (int64_t h = 0; h < g.heads; ++h) {
      double* row = row_of(h);
      const double sum = std::accumulate(row, row + count, 0.0);
      for (int64_t j = 0; j < count && sum != 0; ++j) row[j] /= sum;
    }
    const Array taken = call.rounded(std::move(shares), "shares");
    for (int64_t h = 0; h < g.heads; ++h)
      for (int64_t j = 0; j < count; ++j)
        for (int64_t f = 0; f < g.result; ++f)
          y.data[static_cast<size_t>((sample * g.heads + h) * g.result + f)] +=
              taken.data[static_cast<size_t>(h * count + j)] * value_at(h / each, first + j, f);
  }
  return y;
}

Array eval(const OpCall& call) {
  if (is_cached(call.attributes)) return eval_cached(call);
  const Attention attention(call);
  const Geometry& g = attention.g;
  Shape shape = call.inputs[0]->shape;
  shape.back() = g.result;
  Array y(shape);
  attention.each_row([&](int64_t row, int64_t first) {
    for (int64_t j = 0; j < g.keys; ++j)
      for (int64_t f = 0; f < g.result; ++f)
        y.data[static_cast<size_t>(row * g.result + f)] +=
            attention.taken.data[static_cast<size_t>(row * g.keys + j)] *
            attention.v.data[static_cast<size_t>((first + j) * g.result + f)];
  });
  return y;
}

// Straight through every rounding.
OpGradients grad(const OpCall& call, const Array&, const Array& up) {
  if (is_cached(call.attributes)) throw Error("", "attention over a cache is not trained");
  const Attention attention(call);
  const Geometry& g = attention.g;
  OpGradients result;
  for (const Array* input : call.inputs) result.inputs.emplace_back(input->shape);
  Array &gq = result.inputs[0], &gk = result.inputs[1], &gv = result.inputs[2];
  std::vector<double> slopes(static_cast<size_t>(g.keys));
  attention.each_row([&](int64_t row, int64_t first) {
    const double *shares = attention.shares.data.data() + row * g.keys,
                 *taken = attention.taken.data.data() + row * g.keys;
    double total = 0;
    for (int64_t j = 0; j < g.keys; ++j) {
      double slope = 0;
      for (int64_t f = 0; f < g.result; ++f) {
        const double d = up.data[static_cast<size_t>(row * g.result + f)];
        const auto at = static_cast<size_t>((first + j) * g.result + f);
        slope += d * attention.v.data[at];
        gv.data[at] += d * taken[j];
      }
      slopes[static_cast<size_t>(j)] = slope;
      total += slope * shares[j];
    }
    for (int64_t j = 0; j < g.keys; ++j) {
      const double d = shares[j] * (slopes[static_cast<size_t>(j)] - total);
      if (attention.mask)
        result.inputs[3].data[attention.mask_places[static_cast<size_t>(row * g.keys + j)]] += d;
      for (int64_t e = 0; e < g.width; ++e) {
        const auto at = static_cast<size_t>(row * g.width + e);
        const auto key = static_cast<size_t>((first + j) * g.width + e);
        gq.data[at] += d * g.scale * attention.k.data[key];
        gk.data[key] += d * g.scale * attention.q.data[at];
      }
    }
  });
  return result;
}

OpCost cost(const Value& attributes, const std::vector<Shape>& inputs, const Shape&) {
  Geometry g = geometry_of(attributes, inputs);
  if (is_cached(attributes)) g.keys = inputs[3].back();
  const int64_t macs = g.lead * g.heads * g.length * g.keys * (g.width + g.result);
  return {macs, 2 * macs + 3 * g.lead * g.heads * g.length * g.keys};
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  std::vector<Shape> shapes;
  for (const Slot input : inputs) shapes.push_back(lowering.shape(input));
  const Geometry g = geometry_of(attributes, shapes);
  const auto rank = static_cast<int64_t>(shapes[0].size());
  Slot q = lowering.rounded(inputs[0], "query"), k = lowering.rounded(inputs[1], "key"),
       v = lowering.rounded(inputs[2], "value");
  if (is_cached(attributes)) {
    const Slot done =
        lowering.training()
            ? -1
            : lowering.primitive("cached_attention",
                                 Dict{{"scale", g.scale}, {"window", Sight(attributes).window}},
                                 {q, k, v, inputs[3], inputs[4], inputs[5]});
    if (done < 0)
      throw Error("", "attention over a cache runs one text at a time, and is not trained");
    return done;
  }
  std::optional<Slot> mask;
  if (inputs.size() > 3) mask = inputs[3];
  Shape out = shapes[0];
  out.back() = g.result;
  const bool grouped = g.heads != g.key_heads;
  if (grouped) {  // [.., groups, heads of a group, L, E] with one head of k and v
    const auto split = [&](Slot x, int64_t groups, int64_t each) {
      Shape shape = lowering.shape(x);
      shape[static_cast<size_t>(rank - 3)] = groups;
      shape.insert(shape.end() - 2, each);
      return lowering.reshape(x, shape);
    };
    q = split(q, g.key_heads, g.heads / g.key_heads);
    k = split(k, g.key_heads, 1);
    v = split(v, g.key_heads, 1);
    if (mask && shapes[3].size() > 2) {
      Shape shape = shapes[3];
      int64_t& heads = shape[shape.size() - 3];
      const int64_t each = heads == 1 ? 1 : g.heads / g.key_heads;
      heads /= each;
      shape.insert(shape.end() - 2, each);
      mask = lowering.reshape(*mask, shape);
    }
  }
  std::vector<int64_t> order;
  const int64_t ranks = rank + (grouped ? 1 : 0);
  for (int64_t i = 0; i < ranks; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(ranks - 1)], order[static_cast<size_t>(ranks - 2)]);
  // Formats meet scores and shares as [.., heads, L, S].
  const auto rounded = [&](Slot x, const char* operand) {
    const Slot done = lowering.rounded(x, operand);
    if (done == x || !grouped) return done;
    Shape whole = shapes[0];
    whole.back() = g.keys;
    return lowering.reshape(lowering.rounded(lowering.reshape(x, whole), operand),
                            lowering.shape(x));
  };
  Slot scores = lowering.matmul(q, lowering.permute(k, order));
  Expr scaled = Expr::operand(0) * g.scale;
  if (lowering.rounded(scores, "scores") != scores) {  // before masks, whose limits are no scores
    scores = rounded(lowering.map(scaled, {scores}), "scores");
    scaled = Expr::operand(0);
  }
  std::vector<Slot> operands = {scores};
  if (mask) {
    operands.push_back(*mask);
    scaled = scaled + Expr::operand(1);
  }
  if (const Sight sight(attributes); sight.partial()) {
    std::vector<float> hidden(static_cast<size_t>(g.length * g.keys), 0.0f);
    for (int64_t i = 0; i < g.length; ++i)
      for (int64_t j = 0; j < g.keys; ++j)
        if (!sight.sees(i, j))
          hidden[static_cast<size_t>(i * g.keys + j)] = -std::numeric_limits<float>::infinity();
    operands.push_back(lowering.constant({g.length, g.keys}, hidden));
    scaled = scaled + Expr::operand(static_cast<int>(operands.size()) - 1);
    if (mask) mask = lowering.map(Expr::operand(0) + Expr::operand(1), {*mask, operands.back()});
  }
  if (!mask || lowering.shape(*mask).empty()) {
    scores = softmax_by_exponentials(lowering, lowering.map(scaled, operands), -1, false);
    return lowering.reshape(lowering.matmul(rounded(scores, "shares"), v), out);
  }
  // The most that a query may see of a key: below all numbers where it sees none. Its scores are
  // then made zeros, which a softmax and its gradient can take, and so is its result.
  const auto last = static_cast<int64_t>(lowering.shape(*mask).size()) - 1;
  const Slot most = lowering.reduce(ReduceKind::max, *mask, {last}, true);
  const auto unless_blind = [&](const Expr& value, int seen) {
    return select(less(Expr::operand(seen), -static_cast<double>(FLT_MAX)), 0.0, value);
  };
  operands.push_back(most);
  const int place = static_cast<int>(operands.size()) - 1;
  scores = softmax_by_exponentials(lowering, lowering.map(unless_blind(scaled, place), operands),
                                   -1, false);
  const Slot mixed = lowering.matmul(rounded(scores, "shares"), v);
  return lowering.reshape(lowering.map(unless_blind(Expr::operand(0), 1), {mixed, most}), out);
}

const Register<OpRecord> registered{{
    .name = "scaled_dot_product_attention",
    .function = "torch._C._nn.scaled_dot_product_attention",
    .mase_type = "builtin_func",
    .summary = "softmax(q k^T) v",
    .attributes = {{{.name = "is_causal",
                     .type = FieldType::boolean,
                     .default_value = false,
                     .help = "a position sees itself and earlier ones only"},
                    {.name = "scale",
                     .type = FieldType::number,
                     .help = "of the scores; 1 / sqrt(E) if not given"},
                    {.name = "window",
                     .type = FieldType::integer,
                     .help = "a position sees so many up to itself only",
                     .minimum = 1},
                    {.name = "cached",
                     .type = FieldType::boolean,
                     .default_value = false,
                     .help = "one new token over a cache of keys and values"}}},
    .min_inputs = 3,
    .max_inputs = 6,
    .index_inputs = {5},
    .real_inputs = {3},  // PyTorch takes a mask of bools as what may be seen
    .operands = {"data_in", "query", "key", "value", "scores", "exponentials", "shares",
                 "data_out"},
    .inner_operands = {"exponentials"},
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost = cost,
    .lower = lower,
    .summed_axes = {{"value", -2}},  // the sequence
}};

}  // namespace
}  // namespace mase::scaled_dot_product_attention_op
