// SPDX-License-Identifier: Apache-2.0
#include "mase/report/charts/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/report/text/plot.h"

namespace mase {
namespace {

constexpr double decades = 30;  // a ratio beyond which a linear axis hides the small values

}  // namespace

std::string axis_text(double value, NumberText text) {
  if (!std::isfinite(value)) return "–";
  if (text == NumberText::percent) return fmt::format("{:.6g} %", 100 * value);
  if (text == NumberText::whole && std::abs(value) < 1e15)
    return with_thousands(static_cast<int64_t>(std::llround(value)));
  return short_number(value);
}

std::string exact_text(double value, NumberText text) {
  if (!std::isfinite(value)) return "–";
  if (text == NumberText::percent) return fmt::format("{:.2f} %", 100 * value);
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return with_thousands(static_cast<int64_t>(value));
  return fmt::format("{:.6g}", value);
}

Axis::Axis(const AxisOptions& options, const std::vector<double>& values, double first, double last)
    : text_(options.text), words_(options.words), first_(first), last_(last) {
  bool any = false, positive = true;
  double low = 0, high = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    positive = positive && value > 0;
    any = true;
  }
  logarithmic_ = any && positive &&
                 (options.kind == AxisKind::logarithmic ||
                  (options.kind == AxisKind::automatic && high / low >= decades));
  if (!any) high = 1;
  low_ = scaled(low);
  high_ = scaled(high);
  const double margin = high_ > low_                ? (high_ - low_) / 20
                        : logarithmic_ || low_ == 0 ? 0.5
                                                    : std::abs(low_) / 10;
  // Amounts that begin at nothing keep nothing as their end.
  low_ = !logarithmic_ && low_ >= 0 && low_ - margin < 0 ? std::min(0.0, low_) : low_ - margin;
  high_ += margin;
  if (!words_.empty()) {
    low_ = -0.5;
    high_ = static_cast<double>(words_.size()) - 0.5;
    for (size_t i = 0; i < words_.size(); ++i) ticks_.push_back(static_cast<double>(i));
    return;
  }
  const int wanted = std::max(2, static_cast<int>(std::abs(last - first) / 70));
  ticks_ = logarithmic_ ? log_axis_ticks(low_, high_) : axis_ticks(low_, high_, wanted);
  // One tick alone says no scale.
  for (int more = wanted + 1; !logarithmic_ && ticks_.size() < 3 && more <= 3 * wanted; ++more)
    ticks_ = axis_ticks(low_, high_, more);
  if (text_ == NumberText::whole && !logarithmic_)
    std::erase_if(ticks_, [](double tick) { return tick != std::floor(tick); });
}

std::string Axis::text(double value) const {
  if (words_.empty()) return axis_text(value, text_);
  return value >= 0 && value < static_cast<double>(words_.size())
             ? words_[static_cast<size_t>(value)]
             : "–";
}

std::string Axis::exact(double value) const {
  return words_.empty() ? exact_text(value, text_) : text(value);
}

std::string Axis::described() const {
  if (!words_.empty()) return "words";
  return fmt::format("{} {:.9g} {:.9g} {:.1f} {:.1f} {}", logarithmic_ ? "log" : "linear", low_,
                     high_, first_, last_, text_ == NumberText::percent ? "percent" : "plain");
}

double Axis::scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }

bool Axis::drawable(double value) const {
  return std::isfinite(value) && (!logarithmic_ || value > 0);
}

double Axis::place(double value) const {
  return first_ + (scaled(value) - low_) / (high_ - low_) * (last_ - first_);
}

}  // namespace mase
