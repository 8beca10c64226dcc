// SPDX-License-Identifier: Apache-2.0
// Two experiments in two threads, each as it is alone; a fault of the library's own and one of the
// caller's are exceptions, and the program goes on.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "mase/base/error.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "mase/run/experiment.h"

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::exit(1);
}

struct Trained {
  double accuracy = 0;
  mase::TensorTable weights;
};

Trained train(const char* model, int seed) {
  const mase::Settings settings = mase::experiment_settings(mase::Dict{{"model", model},
                                                                       {"dataset", "jsc-sim"},
                                                                       {"sim_rows", 2000},
                                                                       {"max_epochs", 2},
                                                                       {"learning_rate", 1e-2},
                                                                       {"seed", seed}});
  mase::Experiment experiment(mase::experiment_spec(settings));
  experiment.prepare();
  experiment.train(mase::train_spec(settings));
  return {experiment.evaluate("test").score.accuracy(), mase::state_dict(experiment.graph())};
}

bool same_bits(const Trained& a, const Trained& b) {
  if (a.accuracy != b.accuracy || a.weights.size() != b.weights.size()) return false;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    const mase::Tensor &x = a.weights[i].second, &y = b.weights[i].second;
    if (x.shape() != y.shape() || std::memcmp(x.raw(), y.raw(), x.bytes()) != 0) return false;
  }
  return true;
}

}  // namespace

int main() {
  try {
    mase::evaluate(mase::make_model("jsc-toy"), {});
    expect(false, "a call without inputs throws");
  } catch (const mase::InternalError& error) {
    std::printf("InternalError: the program goes on\n");
  }
  try {
    mase::make_model("jsc-tyo");
    expect(false, "an unknown model throws");
  } catch (const mase::Error& error) {
    std::printf("Error: %s\n", error.what());
  }
  const Trained tiny = train("jsc-tiny", 1), toy = train("jsc-toy", 2);
  Trained tiny_beside, toy_beside;
  std::thread one([&] { tiny_beside = train("jsc-tiny", 1); });
  std::thread other([&] { toy_beside = train("jsc-toy", 2); });
  one.join();
  other.join();
  expect(same_bits(tiny, tiny_beside) && same_bits(toy, toy_beside), "the same bits side by side");
  std::printf("two experiments in two threads: the same bits as one after the other\n");
}
