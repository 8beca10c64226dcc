// SPDX-License-Identifier: Apache-2.0
// A quantised linear layer on the memory of torch's tensors: operands rounded and multiplied, and
// the straight-through gradient, each in one call. A network's layers are small, and a framework's
// calls would take longer than their arithmetic. Row-major samples have their features along the
// lanes here.
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <vector>

#include "convert.h"
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

void multiply(const Product& p, const float* a, const float* b, float* y, bool accumulate,
              std::vector<int64_t>& offsets) {
  offsets.resize(static_cast<size_t>(p.inner));
  for (int64_t i = 0; i < p.inner; ++i) offsets[static_cast<size_t>(i)] = i * p.lanes;
  kernels::ShiftedShape shape{p.rows,         p.inner, p.row_step, p.inner_step,
                              offsets.data(), p.lanes, p.lanes};
  kernels::shifted_linear(shape, a, nullptr, b, y, false, accumulate);
}

// Scratch of a thread: two layers may run at once.
struct Scratch {
  std::vector<float> transposed, bias;
  std::vector<int64_t> offsets;
};
Scratch& scratch() {
  thread_local Scratch own;
  return own;
}

class LinearLayer {
 public:
  LinearLayer(std::shared_ptr<Quantizer> x, std::shared_ptr<Quantizer> weight,
              std::shared_ptr<Quantizer> bias, int64_t in, int64_t out)
      : x_(std::move(x)), weight_(std::move(weight)), bias_(std::move(bias)), in_(in), out_(out) {
    for (const auto& quantizer : {x_, weight_, bias_})
      if (quantizer && quantizer->gradient)
        throw Error(quantizer->format, "is not straight through");
    if (const auto reason = misfit(*weight_, {out, in})) throw Error("weight", *reason);
  }

  // Writes the rounded x and weight, which the backward pass multiplies by, and y.
  void forward(int64_t rows, uintptr_t x, uintptr_t weight, uintptr_t bias, uintptr_t rounded_x,
               uintptr_t rounded_weight, uintptr_t y) const {
    if (const auto reason = misfit(*x_, {rows, in_})) throw Error("x", *reason);
    if (rows == 0 || out_ == 0) return;
    Scratch& own = scratch();
    float* wq = output(rounded_weight);
    if (in_ > 0) {
      x_->quantize(input(x), output(rounded_x), {rows, in_});
      weight_->quantize(input(weight), wq, {out_, in_});
    }
    own.transposed.resize(static_cast<size_t>(in_ * out_));
    for (int64_t o = 0; o < out_; ++o)
      for (int64_t i = 0; i < in_; ++i)
        own.transposed[static_cast<size_t>(i * out_ + o)] = wq[o * in_ + i];
    own.bias.assign(static_cast<size_t>(out_), 0.0f);
    if (bias && bias_)
      bias_->quantize(input(bias), own.bias.data(), {out_});
    else if (bias)
      std::copy_n(input(bias), out_, own.bias.data());
    // Blocks of rows that stay in the cache between the bias and the product.
    constexpr int64_t block = 32;
    for (int64_t first = 0; first < rows; first += block) {
      const int64_t count = std::min(block, rows - first);
      float* to = output(y) + first * out_;
      for (int64_t r = 0; r < count; ++r) std::copy_n(own.bias.data(), out_, to + r * out_);
      if (in_ > 0)
        multiply({count, in_, in_, 1, out_}, output(rounded_x) + first * in_, own.transposed.data(),
                 to, true, own.offsets);
    }
  }

  // Gradients whose address is 0 are not wanted.
  void backward(int64_t rows, uintptr_t grad, uintptr_t rounded_x, uintptr_t rounded_weight,
                uintptr_t grad_x, uintptr_t grad_weight, uintptr_t grad_bias) const {
    Scratch& own = scratch();
    const float* g = input(grad);
    if (grad_x && rows * in_ > 0)
      multiply({rows, out_, out_, 1, in_}, g, input(rounded_weight), output(grad_x), false,
               own.offsets);
    if (grad_weight && out_ * in_ > 0)
      multiply({out_, rows, 1, out_, in_}, g, input(rounded_x), output(grad_weight), false,
               own.offsets);
    if (!grad_bias) return;
    float* sums = output(grad_bias);
    std::fill_n(sums, out_, 0.0f);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < out_; ++o) sums[o] += g[r * out_ + o];
  }

 private:
  std::shared_ptr<Quantizer> x_, weight_, bias_;
  int64_t in_, out_;
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
