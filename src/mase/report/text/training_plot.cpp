// SPDX-License-Identifier: Apache-2.0
#include "mase/report/text/training_plot.h"

#include <algorithm>
#include <cmath>

#include "mase/report/charts/axis.h"

namespace mase {
namespace {

const Curve* named_curve(const std::vector<Curve>& curves, const std::string& name) {
  for (const Curve& curve : curves)
    if (curve.name == name && !curve.x.empty()) return &curve;
  return nullptr;
}

struct Shown {
  const char* metric;
  const char* name;
};

// The mean over an epoch's batches where it is known; what was logged of them otherwise, under its
// own name.
std::string panel(const std::vector<Curve>& curves, const std::string& title,
                  const std::vector<Shown>& training, const Shown& validation, double factor,
                  const PlotStyle& style) {
  CurvePlot plot;
  plot.title = title;
  plot.x_label = "step";
  const auto add = [&](const Shown& shown) {
    const Curve* found = named_curve(curves, shown.metric);
    if (!found) return false;
    Curve curve{shown.name, found->x, found->y};
    for (double& value : curve.y) value *= factor;
    plot.curves.push_back(std::move(curve));
    return true;
  };
  for (const Shown& shown : training)
    if (add(shown)) break;
  add(validation);
  if (plot.curves.empty()) return "";
  std::vector<double> values;
  for (const Curve& curve : plot.curves)
    values.insert(values.end(), curve.y.begin(), curve.y.end());
  plot.log_y = Axis({}, values, 0, 1).logarithmic();
  return plot_curves(plot, style);
}

}  // namespace

std::string plot_training(const std::vector<Curve>& curves, const PlotStyle& style) {
  const std::string loss = panel(curves, "loss",
                                 {{"train_loss_epoch", "train, epoch mean"},
                                  {"train_loss_logged", "train, mean of logged steps"},
                                  {"train_loss_step", "train, per step"}},
                                 {"val_loss_epoch", "validation"}, 1, style);
  const std::string accuracy = panel(curves, "accuracy, %",
                                     {{"train_acc_epoch", "train, epoch mean"},
                                      {"train_acc_logged", "train, mean of logged steps"},
                                      {"train_acc_step", "train, per step"}},
                                     {"val_acc_epoch", "validation"}, 100, style);
  return loss + (loss.empty() || accuracy.empty() ? "" : "\n") + accuracy;
}

}  // namespace mase
