// SPDX-License-Identifier: Apache-2.0
// Resize and the old Upsample: PyTorch's Upsample where it places positions alike; else each
// dimension by itself, the nearest entries taken by number, or a product with the matrix of the
// weights that each new position has of the old ones.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx::resize_operators {
namespace {

struct Resize {
  std::string mode, positions, nearest;
  double cubic = -0.75;
  bool excludes_outside = false, antialias = false;
  double outside = 0;
};

struct Dimension {
  int64_t from = 1, to = 1;
  double scale = 1, start = 0, end = 1;  // start and end of the part that is taken
};

// The place among the old positions; nothing: outside of the part that is taken.
std::optional<double> place_of(const Resize& resize, const Dimension& d, int64_t at) {
  const auto x = static_cast<double>(at), from = static_cast<double>(d.from);
  const double width = d.scale * from;
  if (resize.positions == "align_corners") return width == 1 ? 0 : x * (from - 1) / (width - 1);
  if (resize.positions == "asymmetric") return x / d.scale;
  if (resize.positions == "tf_half_pixel_for_nn") return (x + 0.5) / d.scale;
  if (resize.positions == "tf_crop_and_resize") {
    const double place =
        width == 1 ? (d.end - d.start) * (from - 1) / 2 + d.start * (from - 1)
                   : x * (d.end - d.start) * (from - 1) / (width - 1) + d.start * (from - 1);
    if (place < 0 || place > from - 1) return {};
    return place;
  }
  if (resize.positions == "pytorch_half_pixel" && width == 1) return -0.5;
  if (resize.positions == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(d.to) / width;
    return from / 2 * (1 - adjustment) + (x + 0.5) / d.scale - 0.5;
  }
  return (x + 0.5) / d.scale - 0.5;
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// Of the neighbours, from the left.
std::vector<double> weights_at(const Resize& resize, double ratio, double scale) {
  if (resize.mode == "nearest") {
    bool first = false;
    if (ratio == 1)
      first = false;
    else if (resize.nearest == "round_prefer_floor")
      first = ratio <= 0.5;
    else if (resize.nearest == "round_prefer_ceil")
      first = ratio < 0.5;
    else
      first = resize.nearest == "floor";
    return first ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
  }
  const bool linear = resize.mode == "linear";
  const double narrowed = resize.antialias ? std::min(scale, 1.0) : 1.0;
  const auto reach = static_cast<int64_t>(std::floor((linear ? -1 : -2) / narrowed)) + 1;
  std::vector<double> weights;
  for (int64_t i = reach; i < 2 - reach; ++i) {
    const double x = (static_cast<double>(i) - ratio) * narrowed;
    weights.push_back(linear ? std::clamp(1 - std::fabs(x), 0.0, 1.0)
                             : cubic_weight(x, resize.cubic));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (resize.antialias)
    for (double& weight : weights) weight /= sum;
  return weights;
}

// [to][from]; positions outside have nothing.
Tensor matrix_of(const Resize& resize, const Dimension& d) {
  Tensor matrix(Shape{d.to, d.from});
  for (int64_t at = 0; at < d.to; ++at) {
    const auto place = place_of(resize, d, at);
    if (!place) continue;
    const double below = std::floor(*place);
    const double ratio = *place == below ? 1 : *place - below;
    std::vector<double> weights = weights_at(resize, ratio, d.scale);
    // The neighbours: as many as there are weights, around the place.
    const auto count = static_cast<int64_t>(weights.size());
    const int64_t first = static_cast<int64_t>(*place == below ? below - 1 : below) - count / 2 + 1;
    const auto inside = [&](int64_t i) { return first + i >= 0 && first + i < d.from; };
    if (resize.excludes_outside) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += inside(i) ? weights[static_cast<size_t>(i)] : 0;
      for (int64_t i = 0; i < count; ++i) {
        double& weight = weights[static_cast<size_t>(i)];
        weight = inside(i) ? weight / sum : 0;
      }
    }
    std::vector<double> row(static_cast<size_t>(d.from), 0);
    for (int64_t i = 0; i < count; ++i)
      row[static_cast<size_t>(std::clamp<int64_t>(first + i, 0, d.from - 1))] +=
          weights[static_cast<size_t>(i)];
    for (int64_t i = 0; i < d.from; ++i)
      matrix.mutable_data<float>()[at * d.from + i] =
          static_cast<float>(row[static_cast<size_t>(i)]);
  }
  return matrix;
}

Operand resized_along(NodeContext& context, const Operand& x, int64_t axis, const Resize& resize,
                      const Dimension& d) {
  constexpr int64_t most = int64_t{1} << 22;
  if (d.from < 1 || d.to < 1 || d.to > most / d.from)
    context.fail(fmt::format("{} positions become {}", d.from, d.to));
  const Tensor matrix = matrix_of(resize, d);
  if (resize.mode == "nearest") {
    std::vector<int64_t> places;
    for (int64_t at = 0; at < d.to; ++at) {
      const float* row = matrix.data<float>() + at * d.from;
      places.push_back(std::max_element(row, row + d.from) - row);
    }
    return context.call("index_select",
                        {x, context.constant_operand(
                                Tensor::of<int64_t>({d.to}, std::span<const int64_t>(places)))},
                        Dict{{"dim", axis}});
  }
  std::vector<int64_t> order(x.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const bool turns = order.back() != static_cast<int64_t>(x.rank()) - 1;
  const auto turned = [&](const Operand& from) {
    return turns ? context.call("permute", {from}, Dict{{"dims", Value::of(order)}}) : from;
  };
  Tensor transposed(Shape{d.from, d.to});
  for (int64_t i = 0; i < d.to; ++i)
    for (int64_t k = 0; k < d.from; ++k)
      transposed.mutable_data<float>()[k * d.to + i] = matrix.data<float>()[i * d.from + k];
  return turned(context.call("matmul", {turned(x), context.constant_operand(transposed)}));
}

// PyTorch's Upsample places positions so.
std::optional<Dict> as_upsample(const Operand& x, const Resize& resize,
                                const std::vector<Dimension>& dims) {
  if (x.rank() != 4 || x.is_constant() || resize.antialias || resize.excludes_outside) return {};
  for (size_t i = 0; i < 4; ++i) {
    if (i > 0 && x.shape[i].has_batch()) return {};
    if (i < 2 && dims[i].from != dims[i].to) return {};
    if (i >= 2 &&
        dims[i].scale * static_cast<double>(dims[i].from) != static_cast<double>(dims[i].to))
      return {};
    if (dims[i].from < 1 || dims[i].to < 1) return {};
  }
  Dict attributes{{"size", Value::of(Shape{dims[2].to, dims[3].to})}};
  const bool whole = dims[2].to % dims[2].from == 0 && dims[3].to % dims[3].from == 0;
  if (resize.mode == "nearest") {
    if (!whole || resize.positions != "asymmetric" || resize.nearest != "floor") return {};
    return attributes;
  }
  if (resize.mode != "linear") return {};
  const bool corners = resize.positions == "align_corners";
  const bool half = resize.positions == "half_pixel" ||
                    (resize.positions == "pytorch_half_pixel" && dims[2].to > 1 && dims[3].to > 1);
  if (!corners && !half) return {};
  attributes.set("mode", "bilinear");
  attributes.set("align_corners", corners);
  return attributes;
}

// Which positions of all dimensions lie inside the part that is taken; nothing if all do.
std::optional<Tensor> inside_of(const Resize& resize, const std::vector<Dimension>& dims) {
  Shape shape;
  for (const Dimension& d : dims) shape.push_back(d.from == d.to && d.scale == 1 ? 1 : d.to);
  Tensor inside(shape, DType::boolean);
  bool all = true;
  for (int64_t at = 0; at < inside.numel(); ++at) {
    int64_t rest = at;
    bool here = true;
    for (size_t i = dims.size(); i-- > 0;) {
      if (shape[i] > 1 || dims[i].to == 1)
        here = here && place_of(resize, dims[i], rest % shape[i]).has_value();
      rest /= shape[i];
    }
    inside.mutable_data<bool>()[at] = here;
    all = all && here;
  }
  if (all) return {};
  return inside;
}

std::vector<Dimension> dimensions_of(NodeContext& context, const Operand& x, size_t roi_input,
                                     size_t scales_input, size_t sizes_input) {
  std::vector<int64_t> axes = context.integer_list("axes");
  if (axes.empty())
    for (size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  const auto given = [&](size_t index) {
    return context.has(index) && element_count(context.value(index).shape) > 0;
  };
  std::vector<Dimension> dims(x.rank());
  for (size_t i = 0; i < x.rank(); ++i)
    dims[i].from = dims[i].to = x.shape[i].has_batch() ? 1 : x.shape[i].number();
  const bool sized = sizes_input != 0 && given(sizes_input);
  std::vector<double> numbers;
  if (sized) {
    // The batch stays as it is: a dimension of 1 here.
    const std::vector<Size> sizes = context.sizes(sizes_input, "the sizes");
    for (size_t i = 0; i < sizes.size() && sizes.size() == axes.size(); ++i) {
      const Size& own = x.shape[static_cast<size_t>(context.checked_axis(axes[i], x.rank()))];
      const bool kept =
          own.has_batch() && (sizes[i] == own || (own.is_batch() && context.fixed_batch() > 0 &&
                                                  sizes[i] == context.fixed_batch()));
      if (own.has_batch() && !kept) context.needs_batch("the batch gets another size");
      numbers.push_back(kept ? 1 : static_cast<double>(sizes[i].number()));
    }
  } else if (context.has_attribute("scales")) {
    const Attribute* scales = context.node().find("scales");
    numbers.assign(scales->numbers.begin(), scales->numbers.end());
  } else if (given(scales_input))
    numbers = context.numbers(scales_input, "the scales");
  if (numbers.size() != axes.size())
    context.fail(fmt::format("{} sizes for {} dimensions", numbers.size(), axes.size()));
  const std::string policy = context.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dimension& d = dims[static_cast<size_t>(context.checked_axis(axes[i], x.rank()))];
    if (!(numbers[i] > 0) || numbers[i] > 1e7)
      context.fail(fmt::format("a size of {}", numbers[i]));
    if (sized && policy != "stretch") {
      const double scale = numbers[i] / static_cast<double>(d.from);
      common = i == 0                   ? scale
               : policy == "not_larger" ? std::min(common, scale)
                                        : std::max(common, scale);
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(context.checked_axis(axes[i], x.rank()));
    Dimension& d = dims[axis];
    const auto from = static_cast<double>(d.from);
    if (sized && common > 0) {
      d.scale = common;
      d.to = static_cast<int64_t>(std::floor(common * from + 0.5));
    } else if (sized) {
      d.to = static_cast<int64_t>(numbers[i]);
      d.scale = static_cast<double>(d.to) / from;
    } else {
      d.scale = numbers[i];
      d.to = static_cast<int64_t>(std::floor(from * d.scale));
    }
    if (x.shape[axis].has_batch() && (d.to != d.from || d.scale != 1))
      context.needs_batch("the batch gets another size");
  }
  if (context.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    const std::vector<double> roi = context.numbers(roi_input, "the part that is taken");
    if (roi.size() != 2 * axes.size()) context.fail("roi has not two numbers for each dimension");
    for (size_t i = 0; i < axes.size(); ++i) {
      Dimension& d = dims[static_cast<size_t>(context.checked_axis(axes[i], x.rank()))];
      d.start = roi[i];
      d.end = roi[i + axes.size()];
      if (x.shape[static_cast<size_t>(context.checked_axis(axes[i], x.rank()))].has_batch() &&
          (d.start != 0 || d.end != 1))
        context.needs_batch("a part of the batch is taken");
    }
  }
  return dims;
}

int64_t sample_count(const Operand& x) {
  const Size count = element_count(x.shape);
  return count.has_batch() ? count.batches : count.constant;
}

// Between whole numbers lie others; they are cut off.
Operand whole_again(NodeContext& context, Operand x, Element element, const Resize& resize) {
  if (!is_real(element) && resize.mode != "nearest") x = context.call("trunc", {x});
  if (!x.is_constant()) x.element = element;
  return x;
}

void apply(NodeContext& context, const Resize& resize, const std::vector<Dimension>& dims) {
  Operand x = context.input(0);
  if (resize.mode != "nearest" && resize.mode != "linear" && resize.mode != "cubic")
    context.fail(fmt::format("mode '{}'", resize.mode));
  if (const auto attributes = as_upsample(x, resize, dims))
    return context.result(
        0, whole_again(context, context.call("upsample", {x}, *attributes), x.element, resize));
  const Element element = x.element;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool cropped = dims[i].start != 0 || dims[i].end != 1;
    if (dims[i].from == dims[i].to && dims[i].scale == 1 && !cropped) continue;
    x = resized_along(context, x, static_cast<int64_t>(i), resize, dims[i]);
  }
  constexpr int64_t most = int64_t{1} << 22;
  if (resize.positions == "tf_crop_and_resize" && !x.is_constant() && sample_count(x) > most)
    context.fail("too many positions are cropped");
  if (resize.positions == "tf_crop_and_resize")
    if (const auto inside = inside_of(resize, dims)) {
      const Operand fill = context.scalar(resize.outside);
      x = context.call("where", {context.constant_operand(*inside), x, fill});
    }
  context.result(0, whole_again(context, x, element, resize));
}

void resize(NodeContext& context) {
  constexpr int64_t sizes_since = 11;
  const bool old = context.version() < sizes_since;
  Resize resize;
  resize.mode = context.text("mode", "nearest");
  resize.positions =
      old ? "asymmetric" : context.text("coordinate_transformation_mode", "half_pixel");
  resize.nearest = old ? "floor" : context.text("nearest_mode", "round_prefer_floor");
  resize.cubic = context.number("cubic_coeff_a", -0.75);
  resize.excludes_outside = context.integer("exclude_outside", 0) != 0;
  resize.antialias = context.integer("antialias", 0) != 0;
  resize.outside = context.number("extrapolation_value", 0);
  apply(context, resize, dimensions_of(context, context.input(0), 1, old ? 1 : 2, old ? 0 : 3));
}

void upsample(NodeContext& context) {
  Resize resize;
  resize.mode = context.text("mode", "nearest");
  resize.positions = "asymmetric";
  resize.nearest = "floor";
  apply(context, resize, dimensions_of(context, context.input(0), 1, 1, 0));
}

const Register<OnnxOperator> resize_operator{
    {.name = "Resize", .summary = "Upsample, index_select or matmul", .convert = resize}};
const Register<OnnxOperator> upsample_operator{
    {.name = "Upsample", .summary = "Upsample, index_select or matmul", .convert = upsample}};

}  // namespace
}  // namespace mase::onnx::resize_operators
