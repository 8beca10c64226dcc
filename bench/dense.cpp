// SPDX-License-Identifier: Apache-2.0
// The engine's products against oneDNN's on the same shapes, one thread, and the arithmetic rate of
// a whole training step of jsc-10x.
//
//   bench_dense [seconds per figure]
#include <fmt/format.h>
#include <omp.h>
#include <dnnl.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "mase/base/random.h"
#include "mase/base/table.h"
#include "mase/base/tensor.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/optimizer.h"
#include "mase/engine/program.h"
#include "mase/models/model.h"
#include "mase/train/loss.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A side of the comparison: `run` does `flops` floating-point operations.
struct Side {
  double flops;
  std::function<void()> run;
  double best = 0;  // operations per second

  void measure(double seconds) {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    do {
      const auto start = Clock::now();
      int64_t runs = 0;
      do {
        run();
        ++runs;
      } while (seconds_since(start) < 2e-4);
      best = std::max(best, flops * static_cast<double>(runs) / seconds_since(start));
    } while (Clock::now() < end);
  }
};

// Best windows of all sides, interleaved, so that a busy machine disturbs them alike.
void compare(std::vector<Side*> sides, double seconds) {
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round)
    for (Side* side : sides) side->measure(seconds / rounds);
}

mase::Tensor random_matrix(int64_t rows, int64_t columns) {
  mase::Random random(1, "dense");
  mase::Tensor matrix({rows, columns});
  float* values = matrix.mutable_data<float>();
  for (int64_t i = 0; i < matrix.numel(); ++i)
    values[i] = static_cast<float>(random.uniform(-1, 1));
  return matrix;
}

// y [batch, out] = x [batch, in] w^T, as a framework asks oneDNN for a linear layer.
class OneDnn {
 public:
  OneDnn(int64_t batch, int64_t in, int64_t out)
      : x_(random_matrix(batch, in)), w_(random_matrix(out, in)), y_(random_matrix(batch, out)) {
    using dnnl::memory;
    const memory::desc x({batch, in}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc w({in, out}, memory::data_type::f32, memory::format_tag::ba);
    const memory::desc y({batch, out}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::desc description(x, w, y);
    product_ = dnnl::matmul({description, engine_});
    arguments_ = {{DNNL_ARG_SRC, memory(x, engine_, x_.mutable_data<float>())},
                  {DNNL_ARG_WEIGHTS, memory(w, engine_, w_.mutable_data<float>())},
                  {DNNL_ARG_DST, memory(y, engine_, y_.mutable_data<float>())}};
  }
  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  mase::Tensor x_, w_, y_;
  dnnl::matmul product_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// The same by our kernel, the batch along the rows.
class Ours {
 public:
  Ours(int64_t batch, int64_t in, int64_t out)
      : shape_{out, in, in, 1, ((batch + 15) / 16 | 1) * 16, batch, 1},
        x_(random_matrix(in, shape_.stride)),
        w_(random_matrix(out, in)),
        y_(random_matrix(out, shape_.stride)) {}
  void run() {
    mase::kernels::linear(shape_, w_.data<float>(), nullptr, x_.data<float>(),
                          y_.mutable_data<float>(), false, false);
  }

 private:
  mase::kernels::LinearShape shape_;
  mase::Tensor x_, w_, y_;
};

// A whole training step: gather, forward, backward, Adam.
class Step {
 public:
  explicit Step(const mase::Graph& graph)
      : program_(mase::Program::compile(graph, options())),
        x_(random_matrix(4096, 16)),
        labels_(4096),
        mean_(program_.parameter_memory().size()),
        square_(mean_.size()) {
    for (size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<int32_t>(i % 5);
    batch_.inputs = {x_};
    batch_.target = mase::RowTensor(labels_);
    batch_.size = 256;
  }
  void run() {
    batch_.first_row = (batch_.first_row + 256) % 4096;
    program_.forward_backward(batch_);
    mase::kernels::adam(program_.parameter_memory(), program_.gradient_memory(), mean_, square_,
                        {.learning_rate = 1e-4, .step = ++updates_});
    program_.parameters_changed();
  }

 private:
  static mase::CompileOptions options() {
    mase::CompileOptions options;
    options.training = true;
    options.loss = mase::make_loss("cross_entropy");
    return options;
  }
  mase::Program program_;
  mase::Tensor x_;
  std::vector<int32_t> labels_;
  std::vector<float> mean_, square_;
  mase::Batch batch_;
  int64_t updates_ = 0;
};

#if defined(__x86_64__)
// Twelve independent chains of multiply-adds in registers: what no product can exceed.
__attribute__((target("avx2,fma"))) void multiply_adds() {
  __m256 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(1e-3f);
  for (int k = 0; k < 1000; ++k)
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));  // they count
}
#endif

std::string rate(double flops) { return fmt::format("{:.1f}", flops / 1e9); }

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 1.0;
  omp_set_num_threads(1);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    Side peak{1000.0 * 12 * 8 * 2, multiply_adds};
    compare({&peak}, seconds);
    fmt::print("multiply-adds alone (AVX2, one core): {} GFLOP/s\n\n", rate(peak.best));
  }
#endif
  mase::Table table({"Product", "oneDNN GFLOP/s", "ours GFLOP/s", "ratio"});
  const int64_t shapes[][3] = {{256, 16, 5},    {256, 16, 60},   {256, 60, 32},     {256, 64, 64},
                               {256, 192, 192}, {256, 512, 512}, {1024, 1024, 1024}};
  double reference = 0;
  for (const auto& [batch, in, out] : shapes) {
    OneDnn theirs(batch, in, out);
    Ours mine(batch, in, out);
    const double flops = 2.0 * static_cast<double>(batch * in * out);
    Side a{flops, [&] { theirs.run(); }}, b{flops, [&] { mine.run(); }};
    compare({&a, &b}, seconds);
    if (in == 64) reference = a.best;
    table.add({fmt::format("{} x {} x {}", batch, in, out), rate(a.best), rate(b.best),
               fmt::format("{:.2f}", b.best / a.best)});
  }
  fmt::print("{}\n", table.str());
  Step step(mase::make_model("jsc-10x"));
  // Forward, input gradient and weight gradient of each layer.
  Side whole{3.0 * 2 * 256 * (16 * 60 + 60 * 32 + 32 * 5), [&] { step.run(); }};
  compare({&whole}, seconds);
  fmt::print("jsc-10x training step, batch 256: {} GFLOP/s, {:.0f} % of oneDNN's 256 x 64 x 64\n",
             rate(whole.best), 100 * whole.best / reference);
  return 0;
}
