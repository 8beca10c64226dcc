// SPDX-License-Identifier: Apache-2.0
// Lab 1 in C++: train a network, test it, train it again with other options, without the command
// line. Nothing is written unless an experiment is given a folder.
//   lab1 [MODEL [DATASET]]
#include <cstdio>

#include "mase/run/experiment.h"

using namespace mase;

namespace {

// What the library says while it works; a program of your own may show it otherwise, or not at all.
Observer printer() {
  Observer observer;
  observer.log = [](LogLevel, const std::string& line) { std::printf("%s\n", line.c_str()); };
  observer.training.on_epoch = [](const EpochEvent& event, const Program&) {
    std::printf("epoch %d: validation loss %.4f\n", static_cast<int>(event.epoch),
                event.val_loss.value_or(0));
  };
  return observer;
}

double accuracy_with(const std::string& model, const std::string& dataset, double learning_rate) {
  // The same names as flags and TOML keys; a mistake among them is an Error that says which.
  const Settings settings = experiment_settings(Dict{{"model", model},
                                                     {"dataset", dataset},
                                                     {"sim_rows", 5000},
                                                     {"max_epochs", 3},
                                                     {"learning_rate", learning_rate}});
  Experiment experiment(experiment_spec(settings), printer());
  experiment.prepare();
  experiment.train(train_spec(settings));
  return experiment.evaluate("test").score.accuracy();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string model = argc > 1 ? argv[1] : "jsc-tiny",
                      dataset = argc > 2 ? argv[2] : "jsc-sim";
    for (const double rate : {1e-2, 1e-5})
      std::printf("learning rate %g: test accuracy %.3f\n", rate,
                  accuracy_with(model, dataset, rate));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
