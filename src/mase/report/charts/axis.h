// SPDX-License-Identifier: Apache-2.0
// An axis of a drawn chart: linear or logarithmic, with round ticks and texts for them.
#pragma once

#include <string>
#include <vector>

namespace mase {

// automatic: logarithmic where all values are positive and span decades.
enum class AxisKind { automatic, linear, logarithmic };
enum class NumberText { plain, percent, whole };  // 0.5, 50 %, 1,234

struct AxisOptions {
  std::string label = {};
  AxisKind kind = AxisKind::automatic;
  NumberText text = NumberText::plain;  // whole: ticks at whole numbers only
  std::vector<std::string> words = {};  // set: values are indices of these
};

std::string axis_text(double value, NumberText text);   // short, for round numbers
std::string exact_text(double value, NumberText text);  // six digits, for those under the pointer

class Axis {
 public:
  // Over the finite values, from pixel `first` to pixel `last`, with a margin of a twentieth.
  // Values that are not positive make a logarithmic axis linear.
  Axis(const AxisOptions& options, const std::vector<double>& values, double first, double last);

  double place(double value) const;   // in pixels
  std::string described() const;      // for the script: kind, ends in values and in pixels, texts
  bool drawable(double value) const;  // finite, and positive where it must be
  bool logarithmic() const { return logarithmic_; }
  const std::vector<double>& ticks() const { return ticks_; }
  std::string text(double value) const;
  std::string exact(double value) const;

 private:
  double scaled(double value) const;
  bool logarithmic_ = false;
  NumberText text_;
  std::vector<std::string> words_;
  double low_ = 0, high_ = 1, first_, last_;
  std::vector<double> ticks_;
};

}  // namespace mase
