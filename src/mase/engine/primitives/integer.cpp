// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/integer.h"

#include <cmath>
#include <cstring>

#include "mase/engine/payloads.h"
#include "mase/formats/format.h"

namespace mase::engine {
namespace {

// What a tensor was rounded to, if that is one fixed-point type for all of it.
std::optional<Fixed> one_fixed_point(const Plan& plan, int tensor) {
  const Quantizer* quantizer = plan.at(tensor).rounding;
  if (!quantizer || quantizer->learned || !quantizer->type) return {};
  std::optional<Fixed> fixed = as_fixed(*quantizer->type, false);
  if (!fixed || !fixed->widths.empty() || !fixed->fracs.empty()) return {};
  return fixed;
}

// Integers live in the program's memory, among floats: a word that was written as one is read as
// one. Weights and corrections are put there by their bytes.
template <class T>
void put(float* memory, int64_t index, T value) {
  static_assert(sizeof(T) == sizeof(float));
  std::memcpy(memory + index, &value, sizeof(T));
}

}  // namespace

std::optional<IntegerProduct> IntegerProduct::of(Plan& plan, const Primitive& p, int64_t x_stride,
                                                 bool tiles) {
  if (plan.options.training || !kernels::has_integer_dot()) return {};
  if (tiles && !kernels::has_integer_tiles()) return {};
  const int weight = p.weight, bias = p.bias;
  const std::optional<Fixed> x = one_fixed_point(plan, p.in[0]), w = one_fixed_point(plan, weight);
  if (!x || !w || x->width > 8 || w->width > 8 || !w->is_signed) return {};
  if (std::abs(x->frac) > 60 || std::abs(w->frac) > 60) return {};
  if (bias >= 0) {  // on the grid of the products
    const std::optional<Fixed> b = one_fixed_point(plan, bias);
    if (!b || b->frac > x->frac + w->frac) return {};
  }
  const Shape& shape = plan.at(weight).shape;
  IntegerProduct product;
  product.tiles_ = tiles;
  product.out_ = shape[0];
  product.channels_ = shape[1];
  for (size_t i = 2; i < shape.size(); ++i) product.taps_ *= shape[i];
  constexpr int64_t smallest = 1024;  // weights: packing costs as much as a few outputs
  if (product.out_ < 8 || product.out_ * product.channels_ * product.taps_ < smallest) return {};
  product.x_stride_ = x_stride;
  product.x_scale_ = std::ldexp(1.0f, x->frac);
  product.w_scale_ = std::ldexp(1.0f, w->frac);
  product.offset_ = x->is_signed ? 128 : 0;
  product.most_ = x->is_signed ? 128 : 255;
  const int64_t pieces = product.terms() / kernels::integer_longest_sum + 1;
  product.words_ = plan.scratch("words", product.out_ * product.terms());
  product.starts_ = plan.scratch("starts", 1 + pieces * product.out_);
  product.packed_ = plan.scratch("quads", product.quads() * x_stride);
  plan.prepare.push_back(product.prepare(weight, bias));
  return product;
}

uint32_t IntegerProduct::zero() const { return static_cast<uint32_t>(offset_) * 0x01010101u; }

Step IntegerProduct::prepare(int weight, int bias) const {
  Step step{"pack_integers", "", {weight}, {words_, starts_}};
  step.read({bias});
  step.bind = [own = *this, weight, bias](const Memory& memory) -> Kernel {
    return [=, w = memory[weight], b = memory.at(bias), words = memory[own.words_],
            starts = memory[own.starts_]](const Run&) {
      constexpr double limit = 16777216;  // sums below 2^24 are exact in float32
      bool fit = true;
      const int64_t pieces = own.terms() / kernels::integer_longest_sum + 1;
      std::vector<int32_t> sums(static_cast<size_t>(pieces * own.out_));
      for (int64_t o = 0; o < own.out_; ++o) {
        double largest =
            b ? std::abs(b[o]) * static_cast<double>(own.x_scale_) * own.w_scale_ : 0.0;
        for (int64_t term = 0; term < own.terms(); ++term) {
          uint32_t word = 0;
          for (int64_t r = 0; r < kernels::quad; ++r) {
            const int64_t channel = term / own.taps_ * kernels::quad + r;
            if (channel >= own.channels_) break;
            const double code =
                static_cast<double>(
                    w[(o * own.channels_ + channel) * own.taps_ + term % own.taps_]) *
                own.w_scale_;
            if (!(code >= -128 && code <= 127) || code != std::floor(code)) {
              fit = false;
              continue;
            }
            largest += std::abs(code) * own.most_;
            const auto whole = static_cast<int32_t>(code);
            word |= (static_cast<uint32_t>(whole) & 255u) << (8 * r);
            sums[static_cast<size_t>(term / kernels::integer_longest_sum * own.out_ + o)] -=
                own.offset_ * whole;
          }
          put(words, o * own.terms() + term, word);
        }
        fit = fit && largest < limit;
      }
      starts[0] = fit ? 1.0f : 0.0f;
      for (size_t i = 0; i < sums.size(); ++i) put(starts, static_cast<int64_t>(i) + 1, sums[i]);
    };
  };
  return step;
}

IntegerProduct::Bound::Bound(const IntegerProduct& product, const Memory& memory)
    : segment_(product.tiles_ ? kernels::integer_tile_segment : nullptr),
      x_scale_(product.x_scale_),
      unit_(1 / (product.x_scale_ * product.w_scale_)),
      offset_(product.offset_),
      channels_(product.channels_),
      stride_(product.x_stride_),
      fit_(memory[product.starts_]),
      words_(reinterpret_cast<const uint32_t*>(memory[product.words_])),
      starts_(reinterpret_cast<const int32_t*>(memory[product.starts_] + 1)),
      packed_(reinterpret_cast<uint32_t*>(memory[product.packed_])) {}

const uint32_t* IntegerProduct::Bound::pack(const float* x, int64_t lanes) const {
  if (*fit_ != 1) return nullptr;
  const kernels::Quads shape{channels_, stride_, lanes, x_scale_, offset_, stride_};
  return kernels::pack_quads(shape, x, packed_) ? packed_ : nullptr;
}

void IntegerProduct::Bound::run(const kernels::ShiftedShape& shape, const float* bias,
                                const uint32_t* quads, float* y,
                                const kernels::Finish& finish) const {
  kernels::integer_linear(shape, words_, starts_, unit_, bias, quads, y, finish, segment_);
}

}  // namespace mase::engine
