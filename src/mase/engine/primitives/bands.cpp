// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/bands.h"

#include <algorithm>

#include "mase/engine/kernels/parallel.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitives/depthwise.h"

namespace mase::engine::convolution_primitive {
namespace {

// Kept rows and a wide one of all channels: a part of L2, which weights and images share.
constexpr int64_t band_floats = int64_t{1} << 17;

bool is_plain(const Plan& plan, const Primitive& p) {
  return !p.as<ConvolutionPayload>().transposed && plan.at(p.in[0]).layout == Layout::batch &&
         has_plain_weights(plan, p);  // rounded weights may be products of integers
}

// Whether it is computed as products with shifted rows: those with steps of one may be transformed.
bool is_product(const Geometry& g) {
  return g.groups == 1 &&
         (g.planes.taps() == 1 || g.planes.stride[0] > 1 || g.planes.stride[1] > 1);
}

// The taps of a row of windows that lie inside.
kernels::TapRun taps_inside(const kernels::WindowAxis& axis, int64_t at) {
  kernels::TapRun run{at, 1, 0, 0};
  while (run.begin < axis.kernel && axis.place(at, run.begin) < 0) ++run.begin;
  run.end = run.begin;
  while (run.end < axis.kernel && axis.place(at, run.end) < axis.size) ++run.end;
  return run;
}

kernels::WindowAxis height_of(const Planes& p) {
  return {p.kernel[0], p.stride[0], p.before[0], p.dilation[0], p.size[0], p.result[0], {}};
}

// Columns of the image that so many columns of windows meet.
int64_t met_columns(const Planes& p, int64_t columns) {
  return (columns - 1) * p.stride[1] + p.dilation[1] * (p.kernel[1] - 1) + 1;
}

}  // namespace

std::optional<Bands> Bands::of(const Plan& plan, const std::vector<const Primitive*>& parts) {
  if (parts.size() < 2 || parts.size() > 3) return {};
  std::vector<Geometry> g;
  for (const Primitive* p : parts) {
    if (!is_plain(plan, *p)) return {};
    if (p != parts.back() && p->epilogue.find<AddStage>()) return {};
    g.push_back(geometry_of(plan, *p));
  }
  const Geometry &last = g.back(), &middle = g[g.size() - 2];
  const int64_t batch = plan.options.batch_size;
  if (last.groups != 1 || last.planes.taps() != 1 || !last.planes.direct ||
      !Depthwise::of(middle, batch) || (g.size() == 3 && !is_product(g[0])))
    return {};
  return Bands(g.size() == 3 ? std::optional(g[0]) : std::nullopt, middle, last, batch);
}

Bands::Bands(std::optional<Geometry> first, const Geometry& middle, const Geometry& last,
             int64_t batch)
    : first_(std::move(first)), middle_(middle), last_(last) {
  const Planes& p = middle_.planes;
  kept_ = first_ ? p.dilation[0] * (p.kernel[0] - 1) + 1 : 0;
  const int64_t widest = p.result[1];
  const auto set_tiles = [&](int64_t tiles) {
    columns_ = (widest + tiles - 1) / tiles;
    image_stride_ = padded_lanes(std::min(met_columns(p, columns_), p.size[1]) * batch);
    wide_stride_ = padded_lanes(columns_ * batch);
  };
  constexpr int64_t fewest_columns = 8;  // below this much of a tile is its edges
  int64_t tiles = 1;
  set_tiles(tiles);
  while (thread_floats() > band_floats && columns_ > fewest_columns) set_tiles(++tiles);
}

int64_t Bands::scratch_floats() const { return std::max(1, last_.threads) * thread_floats(); }

Bands::Bound::Bound(const Bands& bands, std::vector<Layer> layers, const float* image,
                    float* result, float* planes, float* scratch)
    : own_(std::make_shared<const Bands>(bands)),
      layers_(std::move(layers)),
      image_(image),
      result_(result),
      planes_(planes),
      scratch_(scratch) {
  const Planes& p = bands.middle_.planes;
  auto tiles = std::make_shared<std::vector<ColumnTile>>();
  for (int64_t column = 0; column < p.result[1]; column += bands.columns_) {
    ColumnTile tile;
    const int64_t columns = std::min(bands.columns_, p.result[1] - column);
    const int64_t begin = column * p.stride[1] - p.before[1];
    const int64_t end = std::clamp<int64_t>(begin + met_columns(p, columns), 0, p.size[1]);
    tile.column = column;
    tile.from = std::clamp<int64_t>(begin, 0, end);
    tile.width = {p.kernel[1], p.stride[1], tile.from - begin, p.dilation[1], end - tile.from,
                  columns,     {}};
    tile.runs = kernels::tap_runs(tile.width);
    tiles->push_back(std::move(tile));
  }
  for (ColumnTile& tile : *tiles) tile.width.runs = tile.runs;
  tiles_ = std::move(tiles);
  if (bands.first_) tables_ = tables_of(*bands.first_);
  std::vector<int64_t> offsets;
  for (int64_t c = 0; c < bands.channels(); ++c) offsets.push_back(c * bands.wide_stride_);
  offsets_ = std::make_shared<const std::vector<int64_t>>(std::move(offsets));
}

void Bands::Bound::run(int64_t n) const {
  const float* image = image_;
  if (own_->first_) {
    tables_->make(*own_->first_, n);
    image = planes_of(*own_->first_, image_, 0, planes_, n);
  }
  // Threads share the tiles, and the rows of a tile where there are few.
  const int64_t threads = std::max(1, own_->last_.threads), height = own_->last_.planes.result[0];
  const auto tiles = static_cast<int64_t>(tiles_->size());
  const int64_t cuts =
      threads == 1 ? 1 : std::clamp<int64_t>((2 * threads + tiles - 1) / tiles, 1, height);
  const int64_t pieces = tiles * cuts;
  kernels::for_each_piece(threads, static_cast<int>(threads), [&](int64_t t) {
    for (int64_t i = pieces * t / threads; i < pieces * (t + 1) / threads; ++i) {
      const int64_t cut = i % cuts;
      rows((*tiles_)[static_cast<size_t>(i / cuts)], height * cut / cuts, height * (cut + 1) / cuts,
           image, scratch_ + t * own_->thread_floats(), n);
    }
  });
}

// Rows [begin, end) of a tile of the result.
void Bands::Bound::rows(const ColumnTile& tile, int64_t begin, int64_t end, const float* image,
                        float* scratch, int64_t n) const {
  const Bands& own = *own_;
  const Planes& planes = own.middle_.planes;
  const kernels::WindowAxis height = height_of(planes);
  const Layer& layer = layers_[layers_.size() - 2];
  const int64_t slot = own.channels() * own.image_stride_;
  float* wide = scratch + own.kept_ * slot;
  const float* met[kernels::most_depthwise_taps];
  kernels::DepthwiseRows shape{{height, tile.width, n},
                               {},
                               met,
                               own.channels(),
                               own.first_ ? own.image_stride_ : own.middle_.image_stride,
                               own.wide_stride_,
                               layer.finish.low,
                               layer.finish.high};
  int64_t next = 0;  // the row of the image that is computed next
  for (int64_t y = begin; y < end; ++y) {
    shape.inside = taps_inside(height, y);
    next = std::max(next, height.place(y, 0));  // rows above are met no more
    for (int64_t tap = shape.inside.begin; tap < shape.inside.end; ++tap) {
      const int64_t row = height.place(y, tap);
      for (; own.first_ && next <= row; ++next)
        image_row(tile, next, image, scratch + next % own.kept_ * slot, n);
      met[tap - shape.inside.begin] = own.first_ ? scratch + row % own.kept_ * slot
                                                 : image + (row * planes.size[1] + tile.from) * n;
    }
    kernels::depthwise_row(shape, layer.weights, layer.bias, wide);
    result_row(tile, y, wide, n);
  }
}

// A row of the first convolution's result.
void Bands::Bound::image_row(const ColumnTile& tile, int64_t row, const float* image, float* to,
                             int64_t n) const {
  const Geometry& g = *own_->first_;
  kernels::ShiftedShape shape{};
  shape.out = g.result_channels;
  shape.in = shape.out_step = g.terms();
  shape.in_step = 1;
  shape.offsets = tables_->image.data();
  shape.y_stride = own_->image_stride_;
  shape.n = tile.width.size * n;
  const Layer& layer = layers_.front();
  kernels::shifted_linear(shape, layer.weights, layer.bias,
                          image + row * g.planes.pitch(n) + tile.from * n, to, layer.finish, false);
}

void Bands::Bound::result_row(const ColumnTile& tile, int64_t row, const float* wide,
                              int64_t n) const {
  const Geometry& g = own_->last_;
  kernels::ShiftedShape shape{};
  shape.out = g.result_channels;
  shape.in = shape.out_step = g.terms();
  shape.in_step = 1;
  shape.offsets = offsets_->data();
  shape.y_stride = g.result_stride;
  shape.n = tile.width.result * n;
  const Layer& layer = layers_.back();
  const int64_t to = (row * g.planes.result[1] + tile.column) * n;
  kernels::shifted_linear(shape, layer.weights, layer.bias, wide, result_ + to, layer.finish.at(to),
                          false);
}

}  // namespace mase::engine::convolution_primitive
