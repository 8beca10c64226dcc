// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/optimizer.h"

#include <cmath>

#include "mase/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/optimizer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Compiled once per instruction set: what is common to all stands behind a guard.
#ifndef MASE_OPTIMIZER_FACTORS
#define MASE_OPTIMIZER_FACTORS
namespace mase::kernels {
struct AdamFactors {
  float b1, one_b1, b2, one_b2, step_size, inverse_root, eps, decay, shrink;
};

struct SgdFactors {
  float learning_rate, momentum, keep, decay;
  bool nesterov, first, has_momentum;
};

}  // namespace mase::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The whole vectors of the block; the caller's plain loop does the rest.
size_t Adam(float* HWY_RESTRICT p, const float* HWY_RESTRICT g, float* HWY_RESTRICT m,
            float* HWY_RESTRICT v, size_t count, const AdamFactors& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto b1 = hn::Set(d, f.b1), one_b1 = hn::Set(d, f.one_b1), b2 = hn::Set(d, f.b2),
             one_b2 = hn::Set(d, f.one_b2), step = hn::Set(d, f.step_size),
             root = hn::Set(d, f.inverse_root), eps = hn::Set(d, f.eps),
             decay = hn::Set(d, f.decay), shrink = hn::Set(d, f.shrink);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto value = hn::Mul(hn::LoadU(d, p + i), shrink);
    const auto gradient = hn::Add(hn::LoadU(d, g + i), hn::Mul(value, decay));
    const auto mean = hn::Add(hn::Mul(hn::LoadU(d, m + i), b1), hn::Mul(gradient, one_b1));
    const auto square =
        hn::Add(hn::Mul(hn::LoadU(d, v + i), b2), hn::Mul(hn::Mul(gradient, gradient), one_b2));
    hn::StoreU(mean, d, m + i);
    hn::StoreU(square, d, v + i);
    const auto denominator = hn::Add(hn::Mul(hn::Sqrt(square), root), eps);
    value = hn::Sub(value, hn::Div(hn::Mul(step, mean), denominator));
    hn::StoreU(value, d, p + i);
  }
  return i;
}

size_t Sgd(float* HWY_RESTRICT p, const float* HWY_RESTRICT g, float* HWY_RESTRICT b, size_t count,
           const SgdFactors& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto rate = hn::Set(d, f.learning_rate), momentum = hn::Set(d, f.momentum),
             keep = hn::Set(d, f.keep), decay = hn::Set(d, f.decay);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, p + i);
    auto gradient = hn::Add(hn::LoadU(d, g + i), hn::Mul(value, decay));
    if (f.has_momentum) {
      const auto buffer =
          f.first ? gradient
                  : hn::Add(hn::Mul(hn::LoadU(d, b + i), momentum), hn::Mul(gradient, keep));
      hn::StoreU(buffer, d, b + i);
      gradient = f.nesterov ? hn::Add(gradient, hn::Mul(buffer, momentum)) : buffer;
    }
    hn::StoreU(hn::Sub(value, hn::Mul(rate, gradient)), d, p + i);
  }
  return i;
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(Adam);
HWY_EXPORT(Sgd);

AdamFactors adam_factors(const AdamUpdate& u) {
  const double correction1 = 1 - std::pow(u.beta1, static_cast<double>(u.step));
  const double correction2 = 1 - std::pow(u.beta2, static_cast<double>(u.step));
  AdamFactors f;
  f.b1 = static_cast<float>(u.beta1);
  f.one_b1 = static_cast<float>(1 - u.beta1);
  f.b2 = static_cast<float>(u.beta2);
  f.one_b2 = static_cast<float>(1 - u.beta2);
  f.step_size = static_cast<float>(u.learning_rate / correction1);
  f.inverse_root = static_cast<float>(1 / std::sqrt(correction2));
  f.eps = static_cast<float>(u.eps);
  f.decay = u.decoupled ? 0.0f : static_cast<float>(u.weight_decay);
  f.shrink = u.decoupled ? static_cast<float>(1 - u.learning_rate * u.weight_decay) : 1.0f;
  return f;
}

SgdFactors sgd_factors(const SgdUpdate& u) {
  return {static_cast<float>(u.learning_rate),
          static_cast<float>(u.momentum),
          static_cast<float>(1 - u.dampening),
          static_cast<float>(u.weight_decay),
          u.nesterov,
          u.first,
          u.momentum != 0};
}

void plain_adam(float* p, const float* g, float* m, float* v, size_t from, size_t to,
                const AdamFactors& f) {
  for (size_t i = from; i < to; ++i) {
    const float value = p[i] * f.shrink;
    const float gradient = g[i] + value * f.decay;
    m[i] = m[i] * f.b1 + gradient * f.one_b1;
    v[i] = v[i] * f.b2 + gradient * gradient * f.one_b2;
    p[i] = value - f.step_size * m[i] / (std::sqrt(v[i]) * f.inverse_root + f.eps);
  }
}

void plain_sgd(float* p, const float* g, float* b, size_t from, size_t to, const SgdFactors& f) {
  for (size_t i = from; i < to; ++i) {
    float gradient = g[i] + p[i] * f.decay;
    if (f.has_momentum) {
      b[i] = f.first ? gradient : b[i] * f.momentum + gradient * f.keep;
      gradient = f.nesterov ? gradient + b[i] * f.momentum : b[i];
    }
    p[i] = p[i] - f.learning_rate * gradient;
  }
}

}  // namespace

void adam(std::span<float> value, std::span<const float> gradient, std::span<float> mean,
          std::span<float> square, const AdamUpdate& update) {
  MASE_CHECK(gradient.size() == value.size() && mean.size() == value.size() &&
                 square.size() == value.size(),
             "Adam's state has another size");
  const AdamFactors f = adam_factors(update);
  const size_t done = HWY_DYNAMIC_DISPATCH(Adam)(value.data(), gradient.data(), mean.data(),
                                                 square.data(), value.size(), f);
  plain_adam(value.data(), gradient.data(), mean.data(), square.data(), done, value.size(), f);
}

void sgd(std::span<float> value, std::span<const float> gradient, std::span<float> momentum,
         const SgdUpdate& update) {
  MASE_CHECK(
      gradient.size() == value.size() && (update.momentum == 0 || momentum.size() == value.size()),
      "SGD's state has another size");
  const SgdFactors f = sgd_factors(update);
  const size_t done =
      HWY_DYNAMIC_DISPATCH(Sgd)(value.data(), gradient.data(), momentum.data(), value.size(), f);
  plain_sgd(value.data(), gradient.data(), momentum.data(), done, value.size(), f);
}

double sum_of_squares(std::span<const float> values) {
  double sums[4] = {0, 0, 0, 0};
  for (size_t i = 0; i < values.size(); ++i)
    sums[i & 3] += static_cast<double>(values[i]) * values[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void scale(std::span<float> values, float factor) {
  for (float& value : values) value *= factor;
}

namespace reference {

void adam(std::span<float> value, std::span<const float> gradient, std::span<float> mean,
          std::span<float> square, const AdamUpdate& update) {
  plain_adam(value.data(), gradient.data(), mean.data(), square.data(), 0, value.size(),
             adam_factors(update));
}

void sgd(std::span<float> value, std::span<const float> gradient, std::span<float> momentum,
         const SgdUpdate& update) {
  plain_sgd(value.data(), gradient.data(), momentum.data(), 0, value.size(), sgd_factors(update));
}

}  // namespace reference
}  // namespace mase::kernels
#endif
