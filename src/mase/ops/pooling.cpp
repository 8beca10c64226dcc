// SPDX-License-Identifier: Apache-2.0
// Pools: the maximum or mean of each window of each channel of [N, C, positions...]. Adaptive ones
// choose their windows so that the result has a given size. A maximum also says where in its plane
// it stands, if it is asked to.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "mase/base/fields.h"
#include "mase/ops/along.h"
#include "mase/ops/windows.h"

namespace mase::pooling_ops {
namespace {

// The range of x that one index of the result covers, along one dimension; `count` is what a mean
// divides by, `step` the dilation.
struct Span {
  int64_t begin, end, step, count;
};

struct Pooling {
  Shape y;
  std::function<Span(size_t dim, int64_t index)> span;
  std::optional<double> divisor = {};  // what a mean divides by, whatever its window counts
};

struct Kind {
  std::string name;
  size_t dims;
  PoolKind pool;
};

void check_rank(const Shape& x, const Kind& kind) {
  if (x.size() != kind.dims + 2)
    throw Error("",
                fmt::format("{} wants [N, C, {}], got {}", kind.name, kind.dims == 1 ? "L" : "H, W",
                            shape_text(x)),
                "reshape before it");
}

Windows windows_of(const Value& attributes, const Kind& kind) {
  Windows windows;
  windows.kernel = per_dimension(attributes["kernel_size"], kind.dims, "kernel_size");
  windows.stride = attributes["stride"].is_null()
                       ? windows.kernel
                       : per_dimension(attributes["stride"], kind.dims, "stride");
  windows.padding_before = windows.padding_after =
      per_dimension(attributes["padding"], kind.dims, "padding");
  windows.dilation = attributes["dilation"].is_null()
                         ? std::vector<int64_t>(kind.dims, 1)
                         : per_dimension(attributes["dilation"], kind.dims, "dilation");
  return windows;
}

bool counts_padding(const Value& attributes) {
  return attributes["count_include_pad"].is_null() || attributes["count_include_pad"].as_bool();
}

Pooling sliding(const Value& attributes, const Shape& x, const Kind& kind) {
  check_rank(x, kind);
  const Windows w = windows_of(attributes, kind);
  const bool ceil = attributes["ceil_mode"].as_bool();
  Pooling pooling;
  pooling.y = {x[0], x[1]};
  for (size_t i = 0; i < kind.dims; ++i) {
    const int64_t pad = w.padding_before[i], size = x[i + 2];
    if (2 * pad > w.kernel[i])
      throw Error("", fmt::format("a padding of {} for windows of {}", pad, w.kernel[i]),
                  "the padding is at most half the window");
    const int64_t room = size + 2 * pad - w.dilation[i] * (w.kernel[i] - 1) - 1;
    if (room < 0)
      throw Error(
          "", fmt::format("a window of {} does not fit {} positions", w.kernel[i], size + 2 * pad),
          "take a smaller window");
    int64_t result = (room + (ceil ? w.stride[i] - 1 : 0)) / w.stride[i] + 1;
    if (ceil && (result - 1) * w.stride[i] >= size + pad) --result;  // begins in the padding
    pooling.y.push_back(result);
  }
  if (const Value& divisor = attributes["divisor_override"]; !divisor.is_null())
    pooling.divisor = divisor.as_double();
  const bool padding = counts_padding(attributes);
  pooling.span = [w, x, padding](size_t dim, int64_t index) {
    const int64_t size = x[dim + 2], pad = w.padding_before[dim], step = w.dilation[dim];
    const int64_t begin = index * w.stride[dim] - pad;
    const int64_t end = begin + step * (w.kernel[dim] - 1) + 1;
    const int64_t inside = std::min(begin + w.kernel[dim], size + pad);
    Span span{begin, std::min(end, size), step, inside - begin};
    if (!padding) span.count = std::min(inside, size) - std::max<int64_t>(begin, 0);
    while (span.begin < 0) span.begin += step;
    return span;
  };
  return pooling;
}

Pooling adaptive(const Value& attributes, const Shape& x, const Kind& kind) {
  check_rank(x, kind);
  Pooling pooling;
  pooling.y = {x[0], x[1]};
  const Value& given = attributes["output_size"];
  for (size_t i = 0; i < kind.dims; ++i) {
    const Value& size =
        given.is_list() ? given.as_list().at(std::min(i, given.as_list().size() - 1)) : given;
    pooling.y.push_back(size.is_null() ? x[i + 2] : size.as_int("output_size"));
  }
  pooling.span = [y = pooling.y, x](size_t dim, int64_t index) {
    const int64_t size = x[dim + 2], parts = y[dim + 2];
    const int64_t begin = index * size / parts, end = ((index + 1) * size + parts - 1) / parts;
    return Span{begin, end, 1, end - begin};
  };
  return pooling;
}

// Calls visit(result index, x index) for all of a window, then done(result index, count).
template <class Visit, class Done>
void each_window(const Pooling& pooling, const Shape& x, const Visit& visit, const Done& done) {
  const bool flat = x.size() == 3;
  const auto height = flat ? 1 : x[2], width = x.back();
  const auto rows = flat ? 1 : pooling.y[2], columns = pooling.y.back();
  const size_t last = x.size() - 3;
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const Span down = flat ? Span{0, 1, 1, 1} : pooling.span(0, r);
        const Span across = pooling.span(last, c);
        const auto at = static_cast<size_t>((plane * rows + r) * columns + c);
        for (int64_t i = down.begin; i < down.end; i += down.step)
          for (int64_t j = across.begin; j < across.end; j += across.step)
            visit(at, static_cast<size_t>((plane * height + i) * width + j));
        done(at, pooling.divisor.value_or(static_cast<double>(down.count * across.count)));
      }
}

Array mean(const Pooling& pooling, const Array& x) {
  Array y(pooling.y);
  each_window(
      pooling, x.shape, [&](size_t at, size_t from) { y.data[at] += x.data[from]; },
      [&](size_t at, double count) { y.data[at] /= count; });
  return y;
}

// The largest values, or where in their planes they stand: of equal ones the first, of NaNs the
// last, as PyTorch's.
Array largest(const Pooling& pooling, const Array& x, bool places) {
  Array y(pooling.y, -std::numeric_limits<double>::infinity());
  std::vector<size_t> place(y.data.size());
  std::vector<bool> seen(y.data.size(), false);
  each_window(
      pooling, x.shape,
      [&](size_t at, size_t from) {
        const double value = x.data[from];
        if (seen[at] && !(value > y.data[at] || std::isnan(value))) return;
        y.data[at] = value;
        place[at] = from;
        seen[at] = true;
      },
      [](size_t, double) {});
  if (!places) return y;
  size_t plane = 1;
  for (size_t i = 2; i < x.shape.size(); ++i) plane *= static_cast<size_t>(x.shape[i]);
  for (size_t at = 0; at < place.size(); ++at) y.data[at] = static_cast<double>(place[at] % plane);
  return y;
}

// Which result is meant: without `return_indices` there is one.
bool asks_for_places(const Value& attributes) {
  if (attributes["result"].is_null()) return false;
  const bool several = attributes["return_indices"].as_bool();
  return checked_result(attributes, several ? 2 : 1) == 1;
}

// A mean is a sum with known weights, one dimension after the other.
Slot lower_mean(Lowering& lowering, const Pooling& pooling, Slot y) {
  for (size_t dim = 2; dim < pooling.y.size(); ++dim) {
    List taps;
    for (int64_t k = 0; k < pooling.y[dim]; ++k) {
      const Span span = pooling.span(dim - 2, k);
      double weight = 1.0 / static_cast<double>(span.count);
      if (pooling.divisor) weight = dim == 2 ? 1.0 / *pooling.divisor : 1.0;
      List window;
      for (int64_t i = span.begin; i < span.end; i += span.step)
        window.emplace_back(List{i, weight});
      taps.emplace_back(window);
    }
    y = lowering.primitive(
        "resample", Dict{{"dim", static_cast<int64_t>(dim)}, {"taps", taps}, {"fill", 0.0}}, {y});
  }
  return y;
}

// Windows of different sizes are laid side by side, the shorter ones filled up with their last
// position, which is a maximum only where it was one.
Slot lower_largest(Lowering& lowering, const Pooling& pooling, Slot y) {
  Windows windows;
  for (size_t dim = 2; dim < pooling.y.size(); ++dim) {
    int64_t longest = 1;
    for (int64_t k = 0; k < pooling.y[dim]; ++k) {
      const Span span = pooling.span(dim - 2, k);
      longest = std::max(longest, span.end - span.begin);
    }
    List taps;
    for (int64_t k = 0; k < pooling.y[dim]; ++k) {
      const Span span = pooling.span(dim - 2, k);
      for (int64_t i = 0; i < longest; ++i) {
        // A value of its own: compilers differ on what a list of one list is.
        const Value tap = List{std::min(span.begin + i, span.end - 1), 1.0};
        taps.emplace_back(List{tap});
      }
    }
    y = lowering.primitive(
        "resample", Dict{{"dim", static_cast<int64_t>(dim)}, {"taps", taps}, {"fill", 0.0}}, {y});
    windows.kernel.push_back(longest);
    windows.padding_before.push_back(0);
    windows.dilation.push_back(1);
  }
  windows.stride = windows.kernel;
  windows.padding_after = windows.padding_before;
  return lowering.pool(PoolKind::max, y, windows, true, {pooling.y.begin() + 2, pooling.y.end()});
}

OpGradients grad(const Pooling& pooling, const Array& x, const Array& y, const Array& g,
                 PoolKind kind) {
  Array gx(x.shape);
  std::vector<size_t> window;
  each_window(
      pooling, x.shape, [&](size_t, size_t from) { window.push_back(from); },
      [&](size_t at, double count) {
        for (const size_t from : window) {
          if (kind == PoolKind::mean) {
            gx.data[from] += g.data[at] / count;
          } else if (x.data[from] == y.data[at]) {
            gx.data[from] += g.data[at];
            break;
          }
        }
        window.clear();
      });
  return OpGradients{{std::move(gx)}};
}

std::optional<std::string> not_zero(const Value& value) {
  if (value.is_int() && value.as_int() == 0) return "a divisor cannot be 0";
  return {};
}

using Choose = Pooling (*)(const Value& attributes, const Shape& x, const Kind& kind);

OpRecord common(OpRecord record, const Kind& kind, const char* windows, Choose choose) {
  record.mase_type = "module_related_func";
  record.summary =
      fmt::format("{} of {}", kind.pool == PoolKind::max ? "maximum" : "mean", windows);
  record.operands = {"data_in", "data_out"};
  record.required_operands = {"data_in"};
  if (kind.pool == PoolKind::max) {
    record.attributes.fields.push_back(
        boolean_field("return_indices", "a second result: where in its plane each stands", false));
    record.attributes.fields.push_back(result_field());
    record.results = ResultsInfo{
        .count = [](const Value&, const std::vector<Shape>&) { return int64_t{2}; },
        .several = [](const Value& attributes) { return attributes["return_indices"].as_bool(); },
        .elements = {ElementRule::promoted, ElementRule::integer}};
  }
  record.infer = [=](const Value& attributes, const std::vector<Shape>& inputs) {
    asks_for_places(attributes);
    return choose(attributes, inputs[0], kind).y;
  };
  record.eval = [=](const OpCall& call) {
    const Array& x = *call.inputs[0];
    const Pooling pooling = choose(call.attributes, x.shape, kind);
    return kind.pool == PoolKind::mean ? mean(pooling, x)
                                       : largest(pooling, x, asks_for_places(call.attributes));
  };
  record.grad = [=](const OpCall& call, const Array& y, const Array& g) {
    const Array& x = *call.inputs[0];
    if (asks_for_places(call.attributes)) {  // a place has no gradient
      return OpGradients{{Array(x.shape)}};
    }
    return grad(choose(call.attributes, x.shape, kind), x, y, g, kind.pool);
  };
  record.cost = [](const Value&, const std::vector<Shape>& inputs, const Shape&) {
    return OpCost{0, element_count(inputs[0])};
  };
  return record;
}

// PyTorch's MaxPool and AvgPool of one or two dimensions.
OpRecord pool_record(OpRecord record, size_t dims, PoolKind pool) {
  const Kind kind{record.class_name, dims, pool};
  const bool maximum = pool == PoolKind::max;
  record.attributes.fields = {size_field("kernel_size", 2, "size of the window", 1),
                              size_field("stride", {}, "from one window to the next", 1),
                              size_field("padding", 0, "added around the positions", 0)};
  record.attributes.fields[1].help += "; the window's size if not given";
  const Field ceil = boolean_field("ceil_mode", "windows that only partly fit count too", false);
  if (maximum) {
    record.attributes.fields.push_back(size_field("dilation", 1, "from one tap to the next", 1));
    record.attributes.fields.push_back(ceil);
  } else {
    record.attributes.fields.push_back(ceil);
    record.attributes.fields.push_back(
        boolean_field("count_include_pad", "the mean counts the padding", true));
    if (dims == 2)  // PyTorch's AvgPool1d has none
      record.attributes.fields.push_back(
          integer_field("divisor_override",
                        "what the sum is divided by; the window's size if not given")
              .checked(not_zero));
  }
  record = common(std::move(record), kind, "each window", sliding);
  record.repr = [=](const Value& attributes) {
    const auto text = [&](const char* name, const Value& value) {
      // PyTorch's AvgPool1d keeps tuples, the others what they were given.
      if (!maximum && dims == 1) return tuple_text(per_dimension(value, 1, name));
      return value.is_list() ? tuple_text(value.as_int_list(name)) : python_repr(value);
    };
    const Value& kernel = attributes["kernel_size"];
    const Value& stride = attributes["stride"].is_null() ? kernel : attributes["stride"];
    std::string line =
        fmt::format("kernel_size={}, stride={}, padding={}", text("kernel_size", kernel),
                    text("stride", stride), text("padding", attributes["padding"]));
    if (maximum)
      line += fmt::format(", dilation={}, ceil_mode={}", text("dilation", attributes["dilation"]),
                          python_repr(attributes["ceil_mode"]));
    return line;
  };
  record.lower = [=](Lowering& lowering, const Value& attributes,
                     const std::vector<Slot>& inputs) -> Slot {
    if (asks_for_places(attributes)) return -1;
    const Pooling pooling = sliding(attributes, lowering.shape(inputs[0]), kind);
    if (pooling.divisor) return lower_mean(lowering, pooling, inputs[0]);
    return lowering.pool(pool, inputs[0], windows_of(attributes, kind), counts_padding(attributes),
                         {pooling.y.begin() + 2, pooling.y.end()});
  };
  return record;
}

// Windows that divide the positions into `output_size` parts.
OpRecord adaptive_pool_record(OpRecord record, size_t dims, PoolKind pool) {
  const Kind kind{record.class_name, dims, pool};
  record.attributes.fields = {{.name = "output_size",
                               .default_value = 1,
                               .help = "positions of the result, or one for each dimension"}};
  record.attributes.fields[0].check = [dims](const Value& value) -> std::optional<std::string> {
    const List sizes = value.is_list() ? value.as_list() : List{value};
    if (sizes.empty() || sizes.size() > dims) return "expected one size for each dimension";
    for (const Value& size : sizes)
      if (!size.is_null() && (!size.is_int() || size.as_int() < 1))
        return "expected whole numbers of at least 1";
    return {};
  };
  record = common(std::move(record), kind, "windows that give a certain size", adaptive);
  record.repr = [](const Value& attributes) {
    const Value& size = attributes["output_size"];
    if (!size.is_list()) return "output_size=" + python_repr(size);
    std::vector<std::string> parts;
    for (const Value& part : size.as_list()) parts.push_back(python_repr(part));
    return fmt::format("output_size=({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
  };
  record.lower = [=](Lowering& lowering, const Value& attributes,
                     const std::vector<Slot>& inputs) -> Slot {
    if (asks_for_places(attributes)) return -1;
    const Shape x = lowering.shape(inputs[0]);
    const Pooling pooling = adaptive(attributes, x, kind);
    const Shape& y = pooling.y;
    Windows windows;
    bool whole = pool == PoolKind::mean;
    for (size_t i = 2; i < x.size(); ++i) {
      whole = whole && y[i] == 1;
      if (x[i] % y[i] != 0)  // windows of different sizes
        return pool == PoolKind::mean ? lower_mean(lowering, pooling, inputs[0])
                                      : lower_largest(lowering, pooling, inputs[0]);
      windows.kernel.push_back(x[i] / y[i]);
      windows.padding_before.push_back(0);
      windows.dilation.push_back(1);
    }
    windows.stride = windows.kernel;
    windows.padding_after = windows.padding_before;
    if (whole) {
      std::vector<int64_t> positions;
      for (size_t i = 2; i < x.size(); ++i) positions.push_back(static_cast<int64_t>(i));
      return lowering.reduce(ReduceKind::mean, inputs[0], positions, true);
    }
    return lowering.pool(pool, inputs[0], windows, true, {y.begin() + 2, y.end()});
  };
  return record;
}

template <auto record_of>
struct Pool : Register<OpRecord> {
  Pool(const char* name, const char* class_name, const std::string& module, size_t dims,
       PoolKind pool)
      : Register(
            record_of({.name = name, .class_name = class_name, .function = module + "." + name},
                      dims, pool)) {}
};

constexpr PoolKind mean_of = PoolKind::mean, max_of = PoolKind::max;
const std::string functional = "torch.nn.functional";

const Pool<pool_record> registered[] = {
    {"avg_pool1d", "AvgPool1d", "torch", 1, mean_of},
    {"avg_pool2d", "AvgPool2d", "torch._C._nn", 2, mean_of},
    {"max_pool1d", "MaxPool1d", functional, 1, max_of},
    {"max_pool2d", "MaxPool2d", functional, 2, max_of},
};
const Pool<adaptive_pool_record> registered_adaptive[] = {
    {"adaptive_avg_pool1d", "AdaptiveAvgPool1d", functional, 1, mean_of},
    {"adaptive_avg_pool2d", "AdaptiveAvgPool2d", functional, 2, mean_of},
    {"adaptive_max_pool1d", "AdaptiveMaxPool1d", functional, 1, max_of},
    {"adaptive_max_pool2d", "AdaptiveMaxPool2d", functional, 2, max_of},
};

}  // namespace
}  // namespace mase::pooling_ops
