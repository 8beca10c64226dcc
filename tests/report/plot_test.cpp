// SPDX-License-Identifier: Apache-2.0
#include "mase/report/text/plot.h"

#include <cmath>

#include "mase/base/text.h"
#include "mase/report/text/training_plot.h"
#include "support/support.h"

namespace mase::plot_test {
namespace {

Curve falling(const std::string& name, double rate, int points = 200) {
  Curve curve{name, {}, {}};
  for (int i = 0; i < points; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(0.4 + 1.2 * std::exp(-rate * i) + 0.03 * std::sin(i * 1.7));
  }
  return curve;
}

void expect_fits(const std::string& text, int width) {
  for (const std::string& line : split(text, '\n')) EXPECT_LE(display_width(line), width) << line;
}

bool is_ascii(const std::string& text) {
  for (char c : text)
    if (c != '\n' && (c < 32 || c > 126)) return false;
  return true;
}

HistogramPlot bell(double lowest, double largest) {
  HistogramPlot plot{.title = "seq_blocks_2 weight", .lowest = lowest, .largest = largest};
  for (int i = 0; i <= 60; ++i) plot.edges.push_back(-3 + i * 0.1);
  for (int i = 0; i < 60; ++i) {
    const double middle = -2.95 + i * 0.1;
    plot.counts.push_back(std::round(1000 * std::exp(-middle * middle / 2)));
  }
  return plot;
}

TEST(Thin, KeepsEveryExtremeAndBothEnds) {
  std::vector<double> y(100000, 1.0);
  y[31234] = 50;
  y[77777] = -3;
  y[50000] = NAN;
  const std::vector<size_t> kept = thin_indices(y, 1000);
  EXPECT_LE(kept.size(), 1000u);
  for (size_t i : {0, 31234, 50000, 77777, 99999})
    EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), i)) << i;
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

TEST(Thin, LeavesShortCurvesAlone) {
  EXPECT_EQ(thin_indices(std::vector<double>{3, 1, 2}, 3), (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(thin_indices({}, 10).empty());
}

TEST(PlotCurves, Golden) {
  const CurvePlot plot{"loss", "step", {falling("train", 0.03), falling("validation", 0.015)}};
  test::expect_golden(plot_curves({"loss", "step", {falling("train", 0.03)}}, {.width = 60}),
                      "report/curve.txt");
  test::expect_golden(plot_curves(plot, {.width = 60}), "report/curves.txt");
  test::expect_golden(plot_curves(plot, {.width = 60, .ascii = true}), "report/curves_ascii.txt");
}

TEST(PlotHistogram, Golden) {
  test::expect_golden(plot_histogram(bell(-1, 0.9375), {.width = 60, .height = 8}),
                      "report/histogram.txt");
  test::expect_golden(plot_histogram(bell(-8, 7.9), {.width = 60, .height = 8, .ascii = true}),
                      "report/histogram_ascii.txt");
}

TEST(PlotBars, Golden) {
  test::expect_golden(
      plot_bars("SQNR (dB)", {{"seq_blocks_2", 41.2}, {"seq_blocks_5", 33.7}, {"worse", -4}},
                {.width = 50}),
      "report/bars.txt");
}

TEST(Plot, KeepsToTheWidthAndToAscii) {
  const CurvePlot plot{std::string(300, 't'),
                       "step",
                       {falling("a\xC3\xA9\033[31m", 0.1), falling(std::string(200, 'b'), 0.2)}};
  for (int width : {20, 33, 80, 159}) {
    for (bool ascii : {false, true}) {
      const PlotStyle style{.width = width, .ascii = ascii};
      for (const std::string& text :
           {plot_curves(plot, style), plot_histogram(bell(-1, 1), style),
            plot_bars("t", {{std::string(99, 'l'), 3}, {"m", -2}}, style)}) {
        expect_fits(text, width);
        EXPECT_EQ(text.find('\033'), std::string::npos);
        EXPECT_TRUE(!ascii || is_ascii(text)) << text;
      }
    }
  }
}

TEST(Plot, ColoursOnlyWhenAsked) {
  const CurvePlot plot{"loss", "step", {falling("a", 0.1)}};
  EXPECT_NE(plot_curves(plot, {.colour = true}).find('\033'), std::string::npos);
  EXPECT_EQ(plot_curves(plot, {}).find('\033'), std::string::npos);
}

TEST(Plot, SurvivesOddNumbers) {
  const double huge = 1.7e308;
  for (const std::vector<double>& y : {std::vector<double>{},
                                       {NAN, NAN},
                                       {1},
                                       {2, 2, 2},
                                       {-huge, huge},
                                       {INFINITY, 1, -INFINITY},
                                       {0, 5e-324},
                                       {1e-300, 2e-300}}) {
    Curve curve{"c", {}, y};
    for (size_t i = 0; i < y.size(); ++i) curve.x.push_back(static_cast<double>(i));
    for (bool log_y : {false, true})
      EXPECT_FALSE(plot_curves({"t", "x", {curve}, log_y}, {}).empty());
    EXPECT_FALSE(plot_histogram(histogram_of(y), {}).empty());
    std::vector<Bar> bars;
    for (double value : y) bars.push_back({"b", value});
    EXPECT_FALSE(plot_bars("t", bars, {}).empty());
  }
  EXPECT_FALSE(plot_histogram({.title = "t", .edges = {0, 1}, .counts = {NAN}}, {}).empty());
  EXPECT_FALSE(
      plot_histogram({.title = "t", .edges = {0, 1}, .counts = {5}, .lowest = 2, .largest = 3}, {})
          .empty());
}

TEST(AxisTicks, AreRound) {
  EXPECT_EQ(axis_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  EXPECT_EQ(short_number(12000), "12k");
  EXPECT_EQ(short_number(1e-5), "1e-05");
  EXPECT_EQ(short_number(-0.25), "-0.25");
}

TEST(TrainingPlot, ShowsLossAndAccuracyOfTrainingAndValidation) {
  const std::vector<double> steps{10, 20, 30};
  std::vector<Curve> curves{{"train_loss_step", {1, 2}, {9, 9}},
                            {"train_loss_epoch", steps, {1.0, 0.8, 0.7}},
                            {"val_loss_epoch", steps, {1.1, 0.9, 0.95}},
                            {"train_acc_epoch", steps, {0.5, 0.6, 0.7}},
                            {"val_acc_epoch", steps, {0.45, 0.55, 0.6}}};
  PlotStyle style;
  style.ascii = true;
  std::string text = plot_training(curves, style);
  EXPECT_EQ(text.find("loss\n"), 0u);
  EXPECT_NE(text.find("accuracy, %\n"), std::string::npos);
  EXPECT_NE(text.find("\n 70+"), std::string::npos) << text;
  const auto times = [&](const std::string& what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(times("train, epoch mean"), 2u);
  EXPECT_EQ(times("validation"), 2u);
  EXPECT_EQ(times("per step"), 0u);
  // Without means over all batches, what was logged is shown and says so.
  text = plot_training({{"train_loss_step", {1, 2}, {9, 8}}}, style);
  EXPECT_NE(text.find("loss"), std::string::npos);
  EXPECT_EQ(text.find("accuracy"), std::string::npos);
  EXPECT_EQ(plot_training({}, style), "");
}

TEST(TrainingPlot, IsWhatTrainDraws) {
  const test::RunResult result =
      test::ch({"train", "jsc-tiny", "jsc", "--sim-rows", "2000", "--max-epochs", "3", "--plot",
                "--ascii", "--project-dir", test::temporary_folder()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* words : {"\nloss\n", "\naccuracy, %\n", " validation\n", "train, "})
    EXPECT_NE(result.out.find(words), std::string::npos) << words << result.out;
}

TEST(Plot, LogarithmicTicksAreRound) {
  EXPECT_EQ(log_axis_ticks(-0.3, 1.2), (std::vector<double>{1, 2, 5, 10}));
  EXPECT_EQ(log_axis_ticks(-4, 0.1).size(), 5u);
}

}  // namespace
}  // namespace mase::plot_test
