// SPDX-License-Identifier: Apache-2.0
// table_linear: sums of one function for each edge, of one input each. Rounded edges are written
// out as tables of all codes once a step; a row of lanes is then one look-up for each edge, and the
// gradient of a table is added up code by code before it goes to the knots.
#include <algorithm>
#include <cmath>

#include "mase/engine/lowerer.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"
#include "mase/ops/table_linear.h"

namespace mase::engine::table_linear_primitive {
namespace {

struct TableLinearPayload {
  Value attributes;
};

Slot lower(Lowerer& to, const Value& attributes, const std::vector<Slot>& operands) {
  Slot x = operands[0];
  if (!to.is_batch(x) || to.shape(x).size() != 2) return -1;
  x = to.flat(x);
  Shape shape = to.shape(x);
  shape.back() = attributes["out_features"].as_int();
  if (shape[1] == 0 || to.shape(x)[1] == 0) return -1;
  return to.add("table_linear",
                {.in = {x},
                 .weight = operands[1],
                 .payload = TableLinearPayload{attributes},
                 .params = {{"edge_bits", operands[2]}, {"edge_frac", operands[3]}}},
                shape, Layout::batch, to.info(x).axes);
}

// The tables of all edges: values by code, and slopes.
class Tables {
 public:
  explicit Tables(const Value& attributes)
      : edges_(attributes),
        codes_(static_cast<size_t>(edges_.codes())),
        values_(codes_ * static_cast<size_t>(edges_.in * edges_.out)) {}

  const TableEdges& edges() const { return edges_; }
  size_t codes() const { return codes_; }
  float* edge(size_t index) { return values_.data() + index * codes_; }
  TableWidth width(size_t index, const float* bits, const float* fracs) const {
    return edges_.width(static_cast<double>(bits[index]), static_cast<double>(fracs[index]));
  }

  // visit(edge, code, last): once for every cell, of codes [code, last).
  template <class Visit>
  void each_cell(const float* bits, const float* fracs, const Visit& visit) const {
    for (size_t e = 0; e < static_cast<size_t>(edges_.in * edges_.out); ++e) {
      const TableWidth own = width(e, bits, fracs);
      const size_t cell = codes_ >> own.bits;
      for (size_t code = 0; code < codes_; code += cell) visit(e, code, code + cell, own);
    }
  }
  void write_values(const float* heights, const float* bits, const float* fracs) {
    each_cell(bits, fracs, [&](size_t e, size_t from, size_t to, const TableWidth& own) {
      const double entry = edges_.entry(heights + e * static_cast<size_t>(edges_.knots),
                                        static_cast<int64_t>(from), own);
      std::fill(edge(e) + from, edge(e) + to, static_cast<float>(std::ldexp(entry, -own.frac)));
    });
  }
  void write_slopes(const float* heights, const float* bits, const float* fracs) {
    each_cell(bits, fracs, [&](size_t e, size_t from, size_t to, const TableWidth& own) {
      const double slope = edges_.slope(heights + e * static_cast<size_t>(edges_.knots),
                                        static_cast<int64_t>(from), own);
      std::fill(edge(e) + from, edge(e) + to, static_cast<float>(slope));
    });
  }

 private:
  TableEdges edges_;
  size_t codes_;
  std::vector<float> values_;
};

Step forward(Plan& plan, Primitive& p) {
  Step step{"table_linear", "", {p.in[0], p.weight}, {p.out}};
  for (const auto& [name, tensor] : p.params) step.read({tensor});
  const int x_of = p.in[0], y_of = p.out, heights_of = p.weight, bits_of = p.params[0].second,
            fracs_of = p.params[1].second;
  const int64_t x_stride = plan.row_stride(x_of), y_stride = plan.row_stride(y_of);
  const Value attributes = p.as<TableLinearPayload>().attributes;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    auto tables = std::make_shared<Tables>(attributes);
    auto codes = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(x_stride));
    auto shares = std::make_shared<std::vector<float>>(static_cast<size_t>(x_stride));
    return [=, &plan, x = memory[x_of], y = memory[y_of], heights = memory[heights_of],
            bits = memory[bits_of], fracs = memory[fracs_of]](const Run& run) {
      const TableEdges& edges = tables->edges();
      const int64_t lanes = plan.lanes(y_of, run);
      if (edges.rounded) tables->write_values(heights, bits, fracs);
      int32_t* const at = codes->data();
      float* const share = shares->data();
      for (int64_t i = 0; i < edges.in; ++i) {
        const float* const row = x + i * x_stride;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          if (edges.rounded) {
            at[lane] = static_cast<int32_t>(edges.code_of(static_cast<double>(row[lane])));
          } else {
            const TableEdges::Place place = edges.place(static_cast<double>(row[lane]));
            at[lane] = static_cast<int32_t>(place.knot);
            share[lane] = static_cast<float>(place.share);
          }
        }
        for (int64_t o = 0; o < edges.out; ++o) {
          const auto edge = static_cast<size_t>(o * edges.in + i);
          float* const sum = y + o * y_stride;
          if (i == 0) std::fill_n(sum, lanes, 0.0f);
          if (edges.rounded) {
            const float* const table = tables->edge(edge);
            for (int64_t lane = 0; lane < lanes; ++lane) sum[lane] += table[at[lane]];
          } else {
            const float* const knot = heights + edge * static_cast<size_t>(edges.knots);
            for (int64_t lane = 0; lane < lanes; ++lane)
              sum[lane] += knot[at[lane]] + share[lane] * (knot[at[lane] + 1] - knot[at[lane]]);
          }
        }
      }
    };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const Target x_to = backward.target(p.in[0]), heights_to = backward.target(p.weight);
  if (x_to.tensor < 0 && heights_to.tensor < 0) return;
  Step step{"table_linear_gradient", "", {p.in[0], p.weight, gradient}, {}};
  for (const auto& [name, tensor] : p.params) step.read({tensor});
  step.write({x_to.tensor, heights_to.tensor});
  const int x_of = p.in[0], y_of = p.out, heights_of = p.weight, bits_of = p.params[0].second,
            fracs_of = p.params[1].second;
  const int64_t x_stride = plan.row_stride(x_of), g_stride = plan.row_stride(gradient);
  const Value attributes = p.as<TableLinearPayload>().attributes;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    auto tables = std::make_shared<Tables>(attributes);
    const auto lanes_most = static_cast<size_t>(x_stride);
    auto codes = std::make_shared<std::vector<int32_t>>(lanes_most);
    auto shares = std::make_shared<std::vector<float>>(lanes_most);
    auto inside = std::make_shared<std::vector<char>>(lanes_most);
    auto sums = std::make_shared<std::vector<float>>(lanes_most);
    auto by_code = std::make_shared<std::vector<float>>(tables->codes());
    return [=, &plan, x = memory[x_of], g = memory[gradient], heights = memory[heights_of],
            bits = memory[bits_of], fracs = memory[fracs_of], dx = memory.at(x_to.tensor),
            dh = memory.at(heights_to.tensor)](const Run& run) {
      const TableEdges& edges = tables->edges();
      const int64_t lanes = plan.lanes(y_of, run);
      const auto knots = static_cast<size_t>(edges.knots);
      if (dh && !heights_to.accumulate)
        std::fill_n(dh, static_cast<size_t>(edges.in * edges.out) * knots, 0.0f);
      if (edges.rounded && dx) tables->write_slopes(heights, bits, fracs);
      const auto per_knot =
          static_cast<float>(static_cast<double>(edges.knots - 1) / (edges.high() - edges.low()));
      int32_t* const at = codes->data();
      for (int64_t i = 0; i < edges.in; ++i) {
        const float* const row = x + i * x_stride;
        bool all_inside = true;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const auto v = static_cast<double>(row[lane]);
          const TableEdges::Place place = edges.place(v);
          at[lane] = static_cast<int32_t>(edges.rounded ? edges.code_of(v) : place.knot);
          (*shares)[static_cast<size_t>(lane)] = static_cast<float>(place.share);
          (*inside)[static_cast<size_t>(lane)] = place.inside;
          all_inside = all_inside && place.inside;
        }
        std::fill_n(sums->data(), lanes, 0.0f);
        for (int64_t o = 0; o < edges.out; ++o) {
          const auto edge = static_cast<size_t>(o * edges.in + i);
          const float* const d = g + o * g_stride;
          const float* const knot = heights + edge * knots;
          if (!edges.rounded) {
            for (int64_t lane = 0; lane < lanes; ++lane) {
              const float share = (*shares)[static_cast<size_t>(lane)];
              if (dh) {
                dh[edge * knots + static_cast<size_t>(at[lane])] += d[lane] * (1 - share);
                dh[edge * knots + static_cast<size_t>(at[lane]) + 1] += d[lane] * share;
              }
              if ((*inside)[static_cast<size_t>(lane)])
                (*sums)[static_cast<size_t>(lane)] +=
                    d[lane] * per_knot * (knot[at[lane] + 1] - knot[at[lane]]);
            }
            continue;
          }
          const TableWidth own = tables->width(edge, bits, fracs);
          if (dh) {
            float* const sum = by_code->data();
            std::fill_n(sum, tables->codes(), 0.0f);
            for (int64_t lane = 0; lane < lanes; ++lane) sum[at[lane]] += d[lane];
            const size_t cell = tables->codes() >> own.bits;
            for (size_t code = 0; code < tables->codes(); code += cell) {
              double all = 0;
              for (size_t k = code; k < code + cell; ++k) all += static_cast<double>(sum[k]);
              const TableEdges::Place place =
                  edges.place(edges.middle(static_cast<int64_t>(code), own.bits));
              float* const to = dh + edge * knots + place.knot;
              to[0] += static_cast<float>(all * (1 - place.share));
              to[1] += static_cast<float>(all * place.share);
            }
          }
          if (!dx) continue;
          const float* const slope = tables->edge(edge);
          float* const sum = sums->data();
          if (all_inside) {
            for (int64_t lane = 0; lane < lanes; ++lane) sum[lane] += d[lane] * slope[at[lane]];
            continue;
          }
          for (int64_t lane = 0; lane < lanes; ++lane) {
            if ((*inside)[static_cast<size_t>(lane)])
              sum[lane] += d[lane] * slope[at[lane]];
            else if (edges.wraps)
              sum[lane] += d[lane] * static_cast<float>(edges.way_back(
                                         knot, static_cast<double>(row[lane]), at[lane], own));
          }
        }
        if (!dx) continue;
        float* const to = dx + i * plan.row_stride(x_to.tensor);
        for (int64_t lane = 0; lane < lanes; ++lane)
          to[lane] = (*sums)[static_cast<size_t>(lane)] + (x_to.accumulate ? to[lane] : 0.0f);
      }
    };
  };
  backward.push(std::move(step));
}

void reference(Reference& call) {
  const Array bits = call.read(call.primitive.params[0].second),
              fracs = call.read(call.primitive.params[1].second);
  const OpCall one{call.primitive.as<TableLinearPayload>().attributes,
                   {&call.in[0]},
                   {{"heights", &call.weight}, {"edge_bits", &bits}, {"edge_frac", &fracs}}};
  call.out = find_op("table_linear").eval(one);
}

Slot generate(Trial& trial) {
  trial.batch(512);
  const int64_t in = trial.size(1, 9, 16), out = trial.size(1, 9, 12), knots = trial.size(2, 9, 17);
  const bool rounded = trial.coin(true), wraps = trial.coin();
  if (rounded) trial.straight_through();
  const Dict attributes{{"in_features", in},  {"out_features", out},
                        {"knots", knots},     {"input_width", 6},
                        {"input_frac", 4},    {"output_frac", 4},
                        {"rounded", rounded}, {"overflow", wraps ? "wrap" : "saturate"}};
  const Slot x = trial.activation({in}), heights = trial.parameter({out, in, knots}),
             bits = trial.parameter({out, in}, {0, 6, true}),
             fracs = trial.parameter({out, in}, {-1, 5, true});
  return trial.to().primitive("table_linear", attributes, {x, heights, bits, fracs});
}

const Register<PrimitiveRecord> registered{{
    .name = "table_linear",
    .summary = "sums of functions of one input each, by look-up",
    .payload = typeid(TableLinearPayload),
    .variants = {{"tables", forward}},
    .reference = reference,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .lower = lower,
}};

}  // namespace
}  // namespace mase::engine::table_linear_primitive
