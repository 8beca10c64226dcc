// SPDX-License-Identifier: Apache-2.0
// The scalar operations of expressions on tiles. Rows may end in padding, but tiles of tensors
// without a batch do not: the last values go through one vector on the stack.
#include <cmath>
#include <cstring>
#include <limits>

#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/elementwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <class Function>
HWY_INLINE void Sweep(const float* a, const float* b, const float* c, float* out, int64_t n,
                      const Function& f) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* second = b ? b : a;
  const float* third = c ? c : a;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, second + i), hn::LoadU(d, third + i)), d,
               out + i);
  if (i == n) return;
  HWY_ALIGN float rest[4][64] = {};
  const auto bytes = static_cast<size_t>(n - i) * sizeof(float);
  std::memcpy(rest[0], a + i, bytes);
  std::memcpy(rest[1], second + i, bytes);
  std::memcpy(rest[2], third + i, bytes);
  hn::Store(f(hn::Load(d, rest[0]), hn::Load(d, rest[1]), hn::Load(d, rest[2])), d, rest[3]);
  std::memcpy(out + i, rest[3], bytes);
}

void Apply(ScalarOp op, const float* a, const float* b, const float* c, float* out, int64_t n) {
  const D d;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  switch (op) {
    case ScalarOp::operand:
    case ScalarOp::constant:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return x; });
    case ScalarOp::add:
      return Sweep(a, b, c, out, n, [=](V x, V y, V) HWY_ATTR { return hn::Add(x, y); });
    case ScalarOp::sub:
      return Sweep(a, b, c, out, n, [=](V x, V y, V) HWY_ATTR { return hn::Sub(x, y); });
    case ScalarOp::mul:
      return Sweep(a, b, c, out, n, [=](V x, V y, V) HWY_ATTR { return hn::Mul(x, y); });
    case ScalarOp::div:
      return Sweep(a, b, c, out, n, [=](V x, V y, V) HWY_ATTR { return hn::Div(x, y); });
    case ScalarOp::min:
      return Sweep(a, b, c, out, n, [=](V x, V y, V) HWY_ATTR {
        return hn::IfThenElse(hn::Or(hn::Lt(y, x), hn::IsNaN(y)), y, x);
      });
    case ScalarOp::max:
      return Sweep(a, b, c, out, n, [=](V x, V y, V) HWY_ATTR {
        return hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(y)), y, x);
      });
    case ScalarOp::neg:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return hn::Neg(x); });
    case ScalarOp::abs:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return hn::Abs(x); });
    case ScalarOp::sqrt:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return hn::Sqrt(x); });
    case ScalarOp::exp:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return SafeExp(d, x); });
    case ScalarOp::log:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return SafeLog(d, x); });
    case ScalarOp::sigmoid:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR {
        return hn::Div(one, hn::Add(one, SafeExp(d, hn::Neg(x))));
      });
    case ScalarOp::less:
      return Sweep(a, b, c, out, n,
                   [=](V x, V y, V) HWY_ATTR { return hn::IfThenElseZero(hn::Lt(x, y), one); });
    case ScalarOp::select:
      return Sweep(a, b, c, out, n,
                   [=](V x, V y, V z) HWY_ATTR { return hn::IfThenElse(hn::Eq(x, zero), z, y); });
    case ScalarOp::tanh:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return SafeTanh(d, x); });
    case ScalarOp::erf:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return SafeErf(d, x); });
    case ScalarOp::softplus:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return SafeSoftplus(d, x); });
    case ScalarOp::sin:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return SafeSin(d, x); });
    case ScalarOp::cos:
      return Sweep(a, b, c, out, n, [=](V x, V, V) HWY_ATTR { return SafeCos(d, x); });
    // Some of Highway's targets lose the sign of -0.
    case ScalarOp::floor:
      return Sweep(a, b, c, out, n,
                   [=](V x, V, V) HWY_ATTR { return hn::CopySign(hn::Floor(x), x); });
    case ScalarOp::round:
      return Sweep(a, b, c, out, n,
                   [=](V x, V, V) HWY_ATTR { return hn::CopySign(hn::Round(x), x); });
  }
}

void AddTo(float* out, const float* in, int64_t n) {
  Apply(ScalarOp::add, out, in, nullptr, out, n);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {

HWY_EXPORT(Apply);
HWY_EXPORT(AddTo);

void apply(ScalarOp op, const float* a, const float* b, const float* c, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Apply)(op, a, b, c, out, n);
}

void add_to(float* out, const float* in, int64_t n) { HWY_DYNAMIC_DISPATCH(AddTo)(out, in, n); }

}  // namespace mase::kernels
#endif
