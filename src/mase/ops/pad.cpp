// SPDX-License-Identifier: Apache-2.0
// pad: further indices around the last dimensions, filled with a value, or with what stands inside:
// mirrored, the outermost again, or from the other end. `pad` names pairs from the last dimension
// backwards, as PyTorch's; negative ones cut off.
#include <algorithm>

#include "mase/base/fields.h"
#include "mase/ops/windows.h"

namespace mase::pad_op {
namespace {

struct Padding {
  Shape in, out;
  std::vector<int64_t> before;
  PaddingMode mode;
  std::vector<int64_t> first, last;  // what is not cut off: the whole that is wrapped around

  Padding(const Value& attributes, const Shape& x)
      : in(x),
        out(x),
        before(x.size(), 0),
        mode(padding_mode_of(attributes["mode"].as_string())),
        first(x.size(), 0),
        last(x) {
    const std::vector<int64_t> pads = attributes["pad"].as_int_list("pad");
    if (pads.size() % 2 != 0 || pads.size() / 2 > x.size())
      throw Error("", fmt::format("{} numbers pad no {} dimensions", pads.size(), x.size()),
                  "give two for each dimension, the last one first");
    constexpr int64_t limit = int64_t{1} << 32;  // far from where sums of sizes overflow
    for (const int64_t pad : pads)
      if (pad < -limit || pad > limit)
        throw Error("", fmt::format("a padding of {} indices", pad), "take a smaller one");
    for (size_t i = 0; i < pads.size() / 2; ++i) {
      const size_t dim = x.size() - 1 - i;
      before[dim] = pads[2 * i];
      out[dim] += pads[2 * i] + pads[2 * i + 1];
      if (out[dim] < 0) throw Error("", "more is cut off than there is");
      first[dim] = std::max<int64_t>(0, -pads[2 * i]);
      last[dim] -= std::max<int64_t>(0, -pads[2 * i + 1]);
      const int64_t most = std::max(pads[2 * i], pads[2 * i + 1]);
      if ((mode == PaddingMode::reflect && most > 0 && most >= x[dim]) ||
          (mode == PaddingMode::circular && most > last[dim] - first[dim]) ||
          (mode == PaddingMode::replicate && most > 0 && x[dim] == 0))
        throw Error("",
                    fmt::format("a padding of {} by mode '{}' for {} indices", most,
                                attributes["mode"].as_string(), x[dim]),
                    "take a smaller padding, or mode 'constant'");
    }
    element_count(out);
  }

  // The index of x that stands at an index of y; -1: the value.
  int64_t source(size_t dim, int64_t index) const {
    const int64_t at = index - before[dim];
    if (mode != PaddingMode::circular) return padded_source(at, in[dim], mode);
    return first[dim] + padded_source(at - first[dim], last[dim] - first[dim], mode);
  }

  // visit(place in x, place in y) for what is of x.
  template <class Visit>
  void each(const Visit& visit) const {
    const auto count = static_cast<size_t>(element_count(out));
    for (size_t i = 0; i < count; ++i) {
      size_t rest = i, place = 0, stride = 1;
      bool inside = true;
      for (size_t d = out.size(); d-- > 0;) {
        const auto size = static_cast<size_t>(out[d]);
        const int64_t at = source(d, static_cast<int64_t>(rest % size));
        inside = inside && at >= 0;
        if (inside) place += static_cast<size_t>(at) * stride;
        stride *= static_cast<size_t>(in[d]);
        rest /= size;
      }
      if (inside) visit(place, i);
    }
  }
};

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Padding padding(call.attributes, x.shape);
  Array y(padding.out, call.attributes["value"].as_double());
  padding.each([&](size_t from, size_t to) { y.data[to] = x.data[from]; });
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Shape& x = call.inputs[0]->shape;
  OpGradients result;
  result.inputs.emplace_back(x);
  Padding(call.attributes, x).each([&](size_t to, size_t from) {
    result.inputs[0].data[to] += g.data[from];
  });
  return result;
}

// One dimension after the other: each index of the result is one of x, or the value.
Slot lower(Lowering& to, const Value& attributes, const std::vector<Slot>& inputs) {
  const Shape x = to.shape(inputs[0]);
  if (x.empty()) return -1;
  const Padding padding(attributes, x);
  Slot y = inputs[0];
  for (size_t dim = 0; dim < x.size(); ++dim) {
    if (padding.before[dim] == 0 && padding.out[dim] == x[dim]) continue;
    List taps;
    for (int64_t k = 0; k < padding.out[dim]; ++k) {
      const int64_t from = padding.source(dim, k);
      taps.emplace_back(List{});
      if (from >= 0) taps.back().list().emplace_back(List{from, 1.0});
    }
    y = to.primitive("resample",
                     Dict{{"dim", static_cast<int64_t>(dim)},
                          {"taps", taps},
                          {"fill", attributes["value"].as_double()}},
                     {y});
  }
  return y;
}

const Register<OpRecord> registered{{
    .name = "pad",
    .function = "torch.nn.functional.pad",
    .mase_type = "builtin_func",
    .summary = "further indices filled with a value or with what stands inside",
    .attributes =
        {{list_field("pad", "how many before and after, the last dimension first").needed(),
          text_field("mode", "what fills them", "constant",
                     {"constant", "reflect", "replicate", "circular"}),
          number_field("value", "the value of mode 'constant'", 0.0)}},
    .scalars = {{"value", false}},
    .infer = [](const Value& attributes,
                const std::vector<Shape>& inputs) { return Padding(attributes, inputs[0]).out; },
    .eval = eval,
    .grad = grad,
    .lower = lower,
    .complete =
        [](Dict& attributes, const std::vector<Shape>&, int64_t) {
          if (!attributes.contains("pad")) attributes.set("pad", List{1, 2});
        },
}};

}  // namespace
}  // namespace mase::pad_op
