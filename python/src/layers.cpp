// SPDX-License-Identifier: Apache-2.0
// A quantised linear layer on the memory of torch's tensors: operands rounded and multiplied, and
// the straight-through gradient, each in one call. A network's layers are small, and a framework's
// calls would take longer than their arithmetic. Row-major samples have their features along the
// lanes here.
#include <nanobind/stl/shared_ptr.h>

#include <cmath>
#include <optional>
#include <vector>

#include "convert.h"
#include "mase/engine/kernels/integer_rows.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/shifted.h"
#include "mase/formats/format.h"
#include "module.h"

namespace mase::python {
namespace {

const float* input(uintptr_t address) { return reinterpret_cast<const float*>(address); }
float* output(uintptr_t address) { return reinterpret_cast<float*>(address); }

// [rows][lanes] = a [rows][inner] times b [inner][lanes], `a` by strides.
struct Product {
  int64_t rows, inner, row_step, inner_step, lanes;
};

// Scratch of a thread: two layers may run at once.
struct Scratch {
  std::vector<float> transposed, bias;
  std::vector<int64_t> offsets;
  std::vector<uint32_t> x_words, w_words, w_lanes;
};
Scratch& scratch() {
  thread_local Scratch own;
  return own;
}

// `start`: what each row begins with; null: zeros.
void multiply(const Product& p, const float* a, const float* b, const float* start, float* y,
              Scratch& own) {
  if (p.inner == 0) {  // sums of nothing; what is not there has no address either
    for (int64_t r = 0; r < p.rows; ++r)
      for (int64_t i = 0; i < p.lanes; ++i) y[r * p.lanes + i] = start ? start[i] : 0.0f;
    return;
  }
  own.offsets.resize(static_cast<size_t>(p.inner));
  for (int64_t i = 0; i < p.inner; ++i) own.offsets[static_cast<size_t>(i)] = i * p.lanes;
  kernels::ShiftedShape shape{p.rows,  p.inner, p.row_step, p.inner_step, own.offsets.data(),
                              p.lanes, p.lanes};
  shape.start = start;
  kernels::shifted_linear(shape, a, nullptr, b, y, {}, false);
}

// What a quantizer rounds to, if that is one signed fixed-point type for all of it.
const Fixed* signed_fixed(const Quantizer& quantizer) {
  const Fixed* fixed = quantizer.type ? quantizer.type->as<Fixed>() : nullptr;
  const bool plain = fixed && fixed->is_signed && fixed->widths.empty() && fixed->fracs.empty() &&
                     fixed->signs.empty() && std::abs(fixed->frac) <= 60;
  return plain ? fixed : nullptr;
}

// Operands of at most 8 bits whose sums stay below 2^24 are multiplied as integers, where the
// processor can: float32 gives the same bits. A bias must be on the grid of the products.
struct IntegerScales {
  float x, weight, unit;
};
std::optional<IntegerScales> integer_scales(const Quantizer& x, const Quantizer& weight,
                                            const Quantizer* bias, int64_t in) {
  const Fixed *fx = signed_fixed(x), *fw = signed_fixed(weight);
  if (!kernels::has_integer_dot() || !fx || !fw || fx->width > 8 || fw->width > 8) return {};
  double largest = static_cast<double>(in) * std::ldexp(1.0, fx->width - 1 + fw->width - 1);
  if (bias) {
    const Fixed* fb = signed_fixed(*bias);
    if (!fb || fb->frac > fx->frac + fw->frac) return {};
    largest += std::ldexp(1.0, fb->width - 1 + fx->frac + fw->frac - fb->frac);
  }
  if (in < 1 || largest >= 16777216) return {};
  return IntegerScales{std::ldexp(1.0f, fx->frac), std::ldexp(1.0f, fw->frac),
                       std::ldexp(1.0f, -fx->frac - fw->frac)};
}

class LinearLayer {
 public:
  LinearLayer(std::shared_ptr<Quantizer> x, std::shared_ptr<Quantizer> weight,
              std::shared_ptr<Quantizer> bias, int64_t in, int64_t out)
      : x_(std::move(x)), weight_(std::move(weight)), bias_(std::move(bias)), in_(in), out_(out) {
    for (const auto& quantizer : {x_, weight_, bias_})
      if (quantizer && quantizer->has_gradient())
        throw Error(quantizer->format, "is not straight through");
    if (const auto reason = misfit(*weight_, {out, in})) throw Error("weight", *reason);
    integers_ = integer_scales(*x_, *weight_, bias_.get(), in);
  }

  // Writes y, and what the gradient is made of: the rounded x and after it the rounded weight.
  void forward(int64_t rows, uintptr_t x, uintptr_t weight, uintptr_t bias, uintptr_t rounded,
               uintptr_t y) const {
    if (const auto reason = misfit(*x_, {rows, in_})) throw Error("x", *reason);
    if (rows == 0 || out_ == 0) return;
    Scratch& own = scratch();
    float* xq = output(rounded);
    float* wq = xq + rows * in_;
    if (in_ > 0) {
      x_->quantize(input(x), xq, {rows, in_});
      weight_->quantize(input(weight), wq, {out_, in_});
    }
    const float* start = nullptr;  // of each row: the bias
    if (bias && bias_) {
      own.bias.resize(static_cast<size_t>(out_));
      bias_->quantize(input(bias), own.bias.data(), {out_});
      start = own.bias.data();
    } else if (bias) {
      start = input(bias);
    }
    if (integers_ && !(bias && !bias_) && multiply_integers(rows, xq, wq, start, output(y), own))
      return;
    own.transposed.resize(static_cast<size_t>(in_ * out_));
    if (in_ > 0) kernels::gather(wq, in_, nullptr, 0, out_, own.transposed.data(), out_);
    multiply({rows, in_, in_, 1, out_}, xq, own.transposed.data(), start, output(y), own);
  }

  // Gradients whose address is 0 are not wanted.
  void backward(int64_t rows, uintptr_t grad, uintptr_t rounded, uintptr_t grad_x,
                uintptr_t grad_weight, uintptr_t grad_bias) const {
    Scratch& own = scratch();
    const float *g = input(grad), *xq = input(rounded), *wq = xq + rows * in_;
    if (grad_x && rows * in_ > 0)
      multiply({rows, out_, out_, 1, in_}, g, wq, nullptr, output(grad_x), own);
    if (grad_weight && out_ * in_ > 0)
      multiply({out_, rows, 1, out_, in_}, g, xq, nullptr, output(grad_weight), own);
    const float one = 1.0f;
    if (grad_bias && out_ > 0)
      multiply({1, rows, 0, 0, out_}, &one, g, nullptr, output(grad_bias), own);
  }

 private:
  // False if a value is no code: NaN.
  bool multiply_integers(int64_t rows, const float* xq, const float* wq, const float* start,
                         float* y, Scratch& own) const {
    const kernels::IntegerRows shape{rows, in_, out_};
    const auto words = static_cast<size_t>(shape.words()), slack = size_t{4};
    own.x_words.resize(static_cast<size_t>(rows) * words + slack);
    own.w_words.resize(static_cast<size_t>(out_) * words + slack);
    own.w_lanes.resize(static_cast<size_t>(out_) * words);
    if (!kernels::pack_rows(rows, in_, xq, integers_->x, own.x_words.data()) ||
        !kernels::pack_rows(out_, in_, wq, integers_->weight, own.w_words.data()))
      return false;
    for (uint32_t& word : own.w_words) word ^= 0x80808080u;  // signed again
    for (size_t o = 0; o < static_cast<size_t>(out_); ++o)
      for (size_t i = 0; i < words; ++i)
        own.w_lanes[i * static_cast<size_t>(out_) + o] = own.w_words[o * words + i];
    kernels::integer_rows(shape, own.x_words.data(), own.w_lanes.data(), integers_->unit, start, y);
    return true;
  }

  std::shared_ptr<Quantizer> x_, weight_, bias_;
  int64_t in_, out_;
  std::optional<IntegerScales> integers_;
};

}  // namespace

void bind_layers(nb::module_& module) {
  nb::class_<LinearLayer>(module, "LinearLayer", "y = q(x) q(W)^T + q(b) on tensors' memory.")
      .def(nb::init<std::shared_ptr<Quantizer>, std::shared_ptr<Quantizer>,
                    std::shared_ptr<Quantizer>, int64_t, int64_t>(),
           nb::arg("x"), nb::arg("weight"), nb::arg("bias").none(), nb::arg("in_features"),
           nb::arg("out_features"))
      .def("forward", &LinearLayer::forward)
      .def("backward", &LinearLayer::backward);
}

}  // namespace mase::python
