// SPDX-License-Identifier: Apache-2.0
// Upsample: [N, C, H, W] at another size, by the nearest position or by bilinear interpolation, as
// PyTorch places positions.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ops/windows.h"

namespace mase::upsample_op {
namespace {

struct Resize {
  Shape out;
  double scale[2];  // positions of x per position of y
  bool bilinear, corners;

  Resize(const Value& attributes, const Shape& x)
      : bilinear(attributes["mode"].as_string() == "bilinear"),
        corners(attributes["align_corners"].as_bool()) {
    if (x.size() != 4)
      throw Error("", fmt::format("Upsample wants [N, C, H, W], got {}", shape_text(x)));
    const bool sized = !attributes["size"].is_null();
    if (sized == !attributes["scale_factor"].is_null())
      throw Error("", "Upsample wants either a size or a scale_factor");
    out = {x[0], x[1]};
    for (size_t i = 0; i < 2; ++i) {
      double factor = 0;
      if (sized) {
        out.push_back(per_dimension(attributes["size"], 2, "size")[i]);
      } else {
        const Value& given = attributes["scale_factor"];
        factor = given.is_list() ? given.as_list().at(i).as_double() : given.as_double();
        if (!(factor > 0 && factor < 1e6)) throw Error("", "a scale_factor must be above 0");
        out.push_back(static_cast<int64_t>(std::floor(static_cast<double>(x[i + 2]) * factor)));
      }
      const bool recomputed = attributes["recompute_scale_factor"].as_bool();
      const auto from = static_cast<double>(x[i + 2]), to = static_cast<double>(out[i + 2]);
      scale[i] = bilinear && corners         ? (to > 1 ? (from - 1) / (to - 1) : 0)
                 : factor > 0 && !recomputed ? 1 / factor
                                             : from / to;
    }
    if (x[2] < 1 || x[3] < 1 || out[2] < 1 || out[3] < 1)
      throw Error("", "Upsample wants at least one position");
  }

  struct Place {
    size_t first, second;
    double share;  // of the second
  };
  Place place(int axis, int64_t at, int64_t size) const {
    const auto position = static_cast<double>(at);
    if (!bilinear) {
      const auto nearest =
          std::min<int64_t>(static_cast<int64_t>(std::floor(position * scale[axis])), size - 1);
      return {static_cast<size_t>(nearest), static_cast<size_t>(nearest), 0};
    }
    const double exact =
        corners ? position * scale[axis] : std::max(0.0, (position + 0.5) * scale[axis] - 0.5);
    const auto first = std::min<int64_t>(static_cast<int64_t>(exact), size - 1);
    const auto second = std::min<int64_t>(first + 1, size - 1);
    return {static_cast<size_t>(first), static_cast<size_t>(second),
            exact - static_cast<double>(first)};
  }

  // visit(place in x, place in y, weight) for all that is added up.
  template <class Visit>
  void each(const Shape& x, const Visit& visit) const {
    const auto width = static_cast<size_t>(x[3]), plane = static_cast<size_t>(x[2]) * width;
    size_t to = 0;
    for (size_t p = 0; p < static_cast<size_t>(x[0] * x[1]); ++p)
      for (int64_t r = 0; r < out[2]; ++r)
        for (int64_t c = 0; c < out[3]; ++c, ++to) {
          const Place down = place(0, r, x[2]), across = place(1, c, x[3]);
          const size_t base = p * plane;
          visit(base + down.first * width + across.first, to,
                (1 - down.share) * (1 - across.share));
          if (!bilinear) continue;
          visit(base + down.first * width + across.second, to, (1 - down.share) * across.share);
          visit(base + down.second * width + across.first, to, down.share * (1 - across.share));
          visit(base + down.second * width + across.second, to, down.share * across.share);
        }
  }
};

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Resize resize(call.attributes, x.shape);
  Array y(resize.out);
  resize.each(x.shape,
              [&](size_t from, size_t to, double weight) { y.data[to] += x.data[from] * weight; });
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Shape& x = call.inputs[0]->shape;
  OpGradients result;
  result.inputs.emplace_back(x);
  Resize(call.attributes, x).each(x, [&](size_t to, size_t from, double weight) {
    result.inputs[0].data[to] += g.data[from] * weight;
  });
  return result;
}

// One dimension after the other, each position from one or two of x.
Slot interpolate(Lowering& lowering, const Resize& resize, const Shape& x, Slot y) {
  for (int axis = 0; axis < 2; ++axis) {
    const auto dim = static_cast<size_t>(axis + 2);
    List taps;
    for (int64_t k = 0; k < resize.out[dim]; ++k) {
      const Resize::Place place = resize.place(axis, k, x[dim]);
      List index;
      index.emplace_back(List{static_cast<int64_t>(place.first), 1 - place.share});
      if (place.share != 0)
        index.emplace_back(List{static_cast<int64_t>(place.second), place.share});
      taps.emplace_back(index);
    }
    y = lowering.primitive(
        "resample", Dict{{"dim", static_cast<int64_t>(dim)}, {"taps", taps}, {"fill", 0.0}}, {y});
  }
  return y;
}

// A whole factor: each position becomes a block of equal ones.
Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const Shape x = lowering.shape(inputs[0]);
  const Resize resize(attributes, x);
  const Shape& y = resize.out;
  if (resize.bilinear || y[2] % x[2] != 0 || y[3] % x[3] != 0)
    return interpolate(lowering, resize, x, inputs[0]);
  const int64_t down = y[2] / x[2], across = y[3] / x[3];
  const Slot apart = lowering.reshape(inputs[0], {x[0], x[1], x[2], 1, x[3], 1});
  const std::vector<float> ones(static_cast<size_t>(down * across), 1.0f);
  const Slot blocks = lowering.constant({down, 1, across}, ones);
  return lowering.reshape(lowering.map(Expr::operand(0) * Expr::operand(1), {apart, blocks}), y);
}

// PyTorch keeps factors as floating-point numbers and sizes as they were given.
std::string number_text(const Value& value, bool size) {
  const auto text = [&](const Value& part) {
    return python_repr(size ? part : Value(part.as_double()));
  };
  if (!value.is_list()) return text(value);
  std::vector<std::string> parts;
  for (const Value& part : value.as_list()) parts.push_back(text(part));
  return fmt::format("({})", fmt::join(parts, ", "));
}

const Register<OpRecord> registered{{
    .name = "upsample",
    .class_name = "Upsample",
    .mase_type = "module_related_func",
    .summary = "images at another size",
    .attributes = {{{.name = "size", .help = "of the result, or one for each dimension"},
                    {.name = "scale_factor", .help = "of the sizes, or one for each dimension"},
                    text_field("mode", "how values are found", "nearest", {"nearest", "bilinear"}),
                    boolean_field("align_corners",
                                  "bilinear: the corners of both images are the same", false),
                    boolean_field("recompute_scale_factor",
                                  "places go by the sizes, not by the factor they came from",
                                  false)}},
    .operands = {"data_in", "data_out"},
    .infer = [](const Value& attributes,
                const std::vector<Shape>& inputs) { return Resize(attributes, inputs[0]).out; },
    .eval = eval,
    .grad = grad,
    .cost =
        [](const Value&, const std::vector<Shape>&, const Shape& out) {
          return OpCost{0, element_count(out)};
        },
    .repr =
        [](const Value& attributes) {
          const bool sized = !attributes["size"].is_null();
          const char* name = sized ? "size" : "scale_factor";
          return fmt::format("{}={}, mode={}", name, number_text(attributes[name], sized),
                             attributes["mode"].as_string());
        },
    .lower = lower,
    .complete =
        [](Dict& attributes, const std::vector<Shape>&, int64_t) {
          if (!attributes.contains("size") && !attributes.contains("scale_factor"))
            attributes.set("scale_factor", 2.0);
        },
}};

}  // namespace
}  // namespace mase::upsample_op
