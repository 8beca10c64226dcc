// SPDX-License-Identifier: Apache-2.0
// Where the values of a tensor lie, and how they move.
#include "mase/engine/plan.h"

#include <algorithm>

#include "mase/base/broadcast.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/primitive.h"

namespace mase::engine {
namespace {

size_t aligned(size_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

int64_t padded_lanes(int64_t lanes) {
  const int64_t stride = (lanes + 15) / 16 * 16;
  return stride / 16 % 2 == 0 ? stride + 16 : stride;
}

Shape TensorInfo::row_shape() const {
  if (layout != Layout::batch) return shape;
  Shape sizes;
  for (const int axis : axes.rows) sizes.push_back(shape[static_cast<size_t>(axis)]);
  return sizes;
}

int64_t TensorInfo::rows() const {  // asked during runs: makes no shape
  int64_t count = 1;
  if (layout == Layout::batch)
    for (const int axis : axes.rows) count *= shape[static_cast<size_t>(axis)];
  else
    for (const int64_t size : shape) count *= size;
  return count;
}

int64_t TensorInfo::positions() const {
  int64_t count = 1;
  for (const int axis : axes.lanes)
    if (axis > 0) count *= shape[static_cast<size_t>(axis)];
  return count;
}

int TensorInfo::row_place(int64_t axis) const {
  if (layout != Layout::batch) return static_cast<int>(axis);
  const auto found = std::find(axes.rows.begin(), axes.rows.end(), axis);
  return found == axes.rows.end() ? -1 : static_cast<int>(found - axes.rows.begin());
}

std::vector<int> Primitive::reads() const {
  std::vector<int> tensors = in;
  for (const int tensor : {weight, bias})
    if (tensor >= 0) tensors.push_back(tensor);
  for (const auto& [name, tensor] : params) tensors.push_back(tensor);
  for (const int tensor : epilogue.reads()) tensors.push_back(tensor);
  return tensors;
}

void Step::read(std::initializer_list<int> tensors) {
  for (const int tensor : tensors)
    if (tensor >= 0) reads.push_back(tensor);
}

void Step::write(std::initializer_list<int> tensors) {
  for (const int tensor : tensors)
    if (tensor >= 0) writes.push_back(tensor);
}

int Plan::root(int tensor) const {
  while (at(tensor).view_of >= 0) tensor = at(tensor).view_of;
  return tensor;
}

int Plan::add(TensorInfo info) {
  tensors.push_back(std::move(info));
  return static_cast<int>(tensors.size()) - 1;
}

int64_t Plan::row_stride(int tensor) const {
  const TensorInfo& info = at(tensor);
  if (info.layout != Layout::batch) return 1;
  const int64_t lanes = options.batch_size * info.positions();
  return lanes == 1 && options.one_position ? 1 : padded_lanes(lanes);
}

size_t Plan::floats(int tensor) const {
  const TensorInfo& info = at(tensor);
  const auto count = static_cast<size_t>(element_count(info.shape));
  if (info.layout == Layout::batch) return static_cast<size_t>(info.rows() * row_stride(tensor));
  return aligned(count);
}

int Plan::scratch(const std::string& name, int64_t count) {
  TensorInfo info;
  info.name = name;
  info.shape = {count};
  info.layout = Layout::fixed;
  return add(std::move(info));
}

Shape TensorView::shape_for(int64_t n) const {
  if (layout == Layout::free) return shape_at(n);
  Shape result = shape;
  if (layout == Layout::batch) result[0] = n;
  return result;
}

void TensorView::strides(int64_t n, int64_t* out) const {
  if (layout != Layout::batch) return row_major_strides(shape, out);
  int64_t step = stride;
  for (size_t i = axes.rows.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(axes.rows[i]);
    out[axis] = step;
    step *= shape[axis];
  }
  step = 1;
  for (size_t i = axes.lanes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(axes.lanes[i]);
    out[axis] = step;
    step *= axis == 0 ? n : shape[axis];
  }
}

std::shared_ptr<const TypedGraph> analyse(const Graph& graph) {
  struct Analysed {
    explicit Analysed(const Graph& given) : graph(given), typed(graph) {}
    const Graph graph;
    const TypedGraph typed;
  };
  const auto analysed = std::make_shared<const Analysed>(graph);
  return {analysed, &analysed->typed};
}

TensorView view_of(const Plan& plan, int tensor) {
  const TensorInfo& info = plan.at(tensor);
  TensorView view;
  view.shape = info.shape;
  view.layout = info.layout;
  view.axes = info.axes;
  view.rows = info.layout == Layout::free ? 0 : info.rows();
  view.stride = plan.row_stride(tensor);
  view.positions = info.positions();
  if (info.layout == Layout::free) {
    // The shape at another batch size needs the whole graph: slow, and only here.
    const NodeId node = info.node;
    view.shape_at = [typed = plan.typed, node, largest = plan.options.batch_size,
                     shape = info.shape](int64_t n) {
      return n == largest ? shape : typed->shapes(n)[static_cast<size_t>(node)];
    };
  }
  return view;
}

namespace {

// Rows in their own order with nothing but samples along them: what the vector kernels transpose.
bool is_plain(const TensorView& view) {
  return view.positions == 1 && std::is_sorted(view.axes.rows.begin(), view.axes.rows.end());
}

StridedCopy row_major_copy(const TensorView& view, int64_t n, bool to_rows) {
  int64_t own[StridedCopy::most], plain[StridedCopy::most];
  view.strides(n, own);
  row_major_strides(view.shape, plain);
  StridedCopy copy;
  for (size_t i = 0; i < view.shape.size(); ++i)
    copy.add(i == 0 ? n : view.shape[i], to_rows ? plain[i] : own[i], to_rows ? own[i] : plain[i]);
  return copy;
}

}  // namespace

void to_row_major(const TensorView& view, const float* in, int64_t n, float* out) {
  if (view.layout == Layout::free)
    std::copy_n(in, element_count(view.shape_for(n)), out);
  else if (view.layout == Layout::fixed)
    std::copy_n(in, view.rows, out);
  else if (is_plain(view) && view.stride == 1)
    std::copy_n(in, view.rows, out);
  else if (is_plain(view))
    kernels::scatter(in, view.rows, view.stride, n, out);
  else
    row_major_copy(view, n, false).run(in, out, false);
}

void from_row_major(const TensorView& view, const float* in, int64_t n, float* out,
                    bool accumulate) {
  if (view.layout != Layout::batch) {
    const int64_t count = element_count(view.shape_for(n));
    if (accumulate)
      kernels::add_to(out, in, count);
    else
      std::copy_n(in, count, out);
  } else if (is_plain(view) && view.stride > 1 && !accumulate) {
    kernels::gather(in, view.rows, nullptr, 0, n, out, view.stride);
  } else {
    row_major_copy(view, n, true).run(in, out, accumulate);
  }
}

std::vector<int32_t> broadcast_rows(const Shape& result, const Shape& operand) {
  // A leading 1 of a fixed operand stands where the batch is.
  const size_t skip = operand.size() > result.size() ? operand.size() - result.size() : 0;
  const Shape own(operand.begin() + static_cast<std::ptrdiff_t>(skip), operand.end());
  const std::vector<size_t> places = broadcast_places(own, result);
  std::vector<int32_t> index(places.begin(), places.end());
  for (size_t row = 0; row < places.size(); ++row)
    if (places[row] != row) return index;
  return {};
}

const PrimitiveRecord& find_primitive(const std::string& name) {
  const PrimitiveRecord* record = Registry<PrimitiveRecord>::instance().find(name);
  MASE_CHECK(record, "no primitive '{}'", name);
  return *record;
}

int Plan::counter_of(int tensor) const {
  for (const Parameter& parameter : parameters)
    if (parameter.tensor == tensor) return parameter.counter;
  return -1;
}

int gradient_of(Plan& plan, int tensor) {
  plan.gradient.resize(std::max(plan.gradient.size(), plan.tensors.size()), -1);
  int known = plan.gradient[static_cast<size_t>(tensor)];
  if (known >= 0) return known;
  TensorInfo info = plan.at(tensor);
  info.name = "d " + info.name;
  info.pinned = false;
  info.constant = false;
  info.rounding = nullptr;
  info.before_rounding = -1;
  if (info.view_of >= 0)
    info.view_of = gradient_of(plan, info.view_of);
  else
    info.place = info.place == Place::parameter ? Place::gradient : Place::arena;
  known = plan.add(std::move(info));
  plan.gradient.resize(plan.tensors.size(), -1);
  return plan.gradient[static_cast<size_t>(tensor)] = known;
}

}  // namespace mase::engine
