// SPDX-License-Identifier: Apache-2.0
#include "mase/report/charts/charts.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "mase/report/pages/html.h"
#include "mase/report/pages/page.h"
#include "support/support.h"

namespace mase::charts_test {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

const std::string hostile = "</title></svg><script>alert(1)</script>\"'><img src=x>";

void expect_harmless(const std::string& html) {
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("\"'>"), std::string::npos);
}

TEST(Axis, TicksAreRoundWholeOrDecades) {
  const Axis plain({}, {0.313, 0.587}, 0, 400);
  for (const double tick : plain.ticks()) EXPECT_NEAR(tick * 20, std::round(tick * 20), 1e-9);
  EXPECT_FALSE(plain.logarithmic());
  const Axis epochs({"epoch", AxisKind::linear, NumberText::whole}, {1, 2, 3}, 0, 900);
  EXPECT_EQ(epochs.ticks(), (std::vector<double>{1, 2, 3}));
  const Axis rates({}, {1e-5, 1e-3, 0.1}, 0, 400);
  EXPECT_TRUE(rates.logarithmic());
  EXPECT_EQ(rates.ticks(), (std::vector<double>{1e-5, 1e-4, 1e-3, 1e-2, 1e-1}));
  EXPECT_LT(rates.place(1e-4) - rates.place(1e-5), 120);
  // A value without a logarithm makes the axis linear, whatever was asked for.
  EXPECT_FALSE(Axis({"", AxisKind::logarithmic}, {0, 1}, 0, 1).logarithmic());
  EXPECT_EQ(axis_text(0.725, NumberText::percent), "72.5 %");
  for (const std::vector<double>& odd :
       {std::vector<double>{}, {5.0}, {0.0}, {NAN, INFINITY}, {-1e300, 1e300}}) {
    const Axis axis({}, odd, 0, 100);
    for (const double value : odd)
      EXPECT_TRUE(!axis.drawable(value) || std::isfinite(axis.place(value)));
  }
}

TEST(Front, IsWhatNoOtherPointBeats) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<ScatterPoint> points(1 + random() % 30);
    for (ScatterPoint& point : points) {
      point.x = static_cast<double>(random() % 8);
      point.y = random() % 20 == 0 ? NAN : static_cast<double>(random() % 8);
    }
    for (const Better bx : {Better::lower, Better::higher})
      for (const Better by : {Better::lower, Better::higher}) {
        const std::vector<size_t> front = pareto_front(points, bx, by);
        for (size_t i = 0; i < points.size(); ++i) {
          bool beaten = !std::isfinite(points[i].y);
          for (const ScatterPoint& other : points) {
            const double dx = (other.x - points[i].x) * (bx == Better::lower ? -1 : 1);
            const double dy = (other.y - points[i].y) * (by == Better::lower ? -1 : 1);
            beaten = beaten || (dx >= 0 && dy >= 0 && dx + dy > 0);
          }
          EXPECT_EQ(std::count(front.begin(), front.end(), i), beaten ? 0 : 1);
        }
      }
  }
}

TEST(Scatter, PointsAreLinksWithTextsAndNothingElse) {
  ScatterChart chart{"Trials", {"EBOPs"},     {"accuracy", AxisKind::linear, NumberText::percent},
                     {},       Better::lower, Better::higher};
  chart.points = {{1e3, 0.5, "a", {"first", "", "run?run=1"}},
                  {1e6, 0.7, hostile, {hostile, hostile, "javascript:alert(1)"}},
                  {1e5, 0.4, "a", {}},
                  {NAN, 0.4, "a", {}}};
  const std::string html = scatter_chart(chart);
  EXPECT_EQ(count(html, "<circle"), 3u);
  EXPECT_EQ(count(html, "<a href=\"run?run=1\">"), 1u);
  EXPECT_EQ(count(html, "javascript:"), 0u);
  EXPECT_EQ(count(html, "class=\"dot behind\""), 1u);
  EXPECT_EQ(count(html, "class=\"front\""), 1u);
  EXPECT_NE(html.find("EBOPs (log)"), std::string::npos);
  EXPECT_NE(html.find("first: EBOPs 1,000, accuracy 50.00 %"), std::string::npos) << html;
  EXPECT_NE(html.find("1 points without finite values"), std::string::npos);
  expect_harmless(html);
  EXPECT_NE(scatter_chart({"none", {}, {}, {}}).find("Nothing to draw"), std::string::npos);
}

TEST(Heat, SaysCountsAndLeavesOutWhatHasNoValue) {
  HeatMap map{"Accuracy",        "batch", hostile, {"64", "256"},
              {"1e-3", hostile}, {},      true,    NumberText::percent};
  map.cells = {{{0.7, 0.01, 3}, {0.6, 0.02, 1}},
               {{std::nullopt, std::nullopt, 2, {"unbalanced", hostile}}, {0.5, std::nullopt, 3}}};
  const std::string html = heat_map(map);
  EXPECT_NE(html.find("70.00 %<small>± 1.00 %, n = 3</small>"), std::string::npos) << html;
  EXPECT_NE(html.find("60.00 %<small>n = 1</small>"), std::string::npos);  // one run has no spread
  EXPECT_NE(html.find("–<small>n = 2, unbalanced</small>"), std::string::npos);
  EXPECT_EQ(count(html, "winner"), 1u);
  expect_harmless(html);
}

TEST(Parallel, ALineForEachTrialBestLast) {
  ParallelChart chart{"Trials", {}, {}, true};
  chart.axes = {{{"width", AxisKind::linear}}, {{hostile}, {"integer", hostile}}, {{"accuracy"}}};
  chart.lines = {{{8, 0, 0.7}, {"good", "", "#good"}},
                 {{4, 1, 0.5}, {hostile, "", ""}},
                 {{2, 1, NAN}, {"failed", "", ""}}};
  const std::string html = parallel_chart(chart);
  EXPECT_EQ(count(html, "class=\"trial\""), 3u);
  EXPECT_LT(html.find("--good:0.000"), html.find("--good:1.000"));
  EXPECT_LT(html.find("--good:0.500"), html.find("href=\"#good\""));
  EXPECT_NE(html.find("good, width 8,"), std::string::npos);
  expect_harmless(html);
  EXPECT_NE(parallel_chart({"none", {}, {}}).find("Nothing to draw"), std::string::npos);
}

TEST(Bands, DrawsLinesWithGapsAndNamesThem) {
  BandChart chart{"Best so far", {"trial", AxisKind::linear, NumberText::whole}, {"accuracy"}, {}};
  chart.series = {
      {"random", {1, 2, 3, 4}, {0.1, NAN, 0.3, 0.4}, {0.05, NAN, 0.2, 0.3}, {0.2, NAN, 0.4, 0.5}},
      {hostile, {1, 2, 3, 4}, {0.2, 0.3, 0.4, 0.5}}};
  const std::string html = band_chart(chart);
  EXPECT_EQ(count(html, "class=\"line\""), 2u);
  EXPECT_EQ(count(html, "class=\"band\""), 1u);
  const std::string band = html.substr(html.find("<path d=\"M") + 9, 200);
  EXPECT_EQ(count(band.substr(0, band.find('"')), "Z"),
            2u);  // interrupted where a value is missing
  EXPECT_NE(html.find(">random</text>"), std::string::npos);
  expect_harmless(html);
}

TEST(Bands, StaircasesAndWordsAndValues) {
  BandChart chart{"Rate", {}, {"rate", AxisKind::linear}, {}};
  chart.x.words = {"small", "large"};
  chart.series = {{"rate", {0, 1}, {1, 2}}};
  chart.series[0].steps = true;
  const std::string html = band_chart(chart);
  EXPECT_NE(html.find(">small</text>"), std::string::npos);
  EXPECT_NE(html.find("data-x=\"0 1 1\" data-y=\"1 1 2\""), std::string::npos) << html;
  chart.most_points = 20;  // an outline: its points are not all there, and none is given as a value
  EXPECT_EQ(band_chart(chart).find("data-y=\"1"), std::string::npos);
}

TEST(Palette, DoesNotRepeat) {
  std::set<std::string> seen;
  for (size_t i = 0; i < 100; ++i) seen.insert(series_colour(i));
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Links, LeadOnlyWithinTheServerOrToTheWeb) {
  for (const char* good : {"run?run=a", "#part", "/list", "https://example.org/a?b=c", "a/b:c"})
    EXPECT_NE(safe_link(good), "") << good;
  for (const char* bad : {"", "javascript:alert(1)", "JavaScript:x", "data:text/html,x",
                          "//evil.example", "java\nscript:x", " javascript:x", "vbscript:x"})
    EXPECT_EQ(safe_link(bad), "") << bad;
}

TEST(PageOfParts, IsSelfContainedAndRunsItsOwnScriptAlone) {
  PageFrame frame;
  frame.title = frame.subtitle = frame.measured = frame.status = hostile;
  const std::string page = page_html(
      frame, {{"a", hostile, scatter_chart({"t", {}, {}, {{1, 2}, {3, 4}}})}, {"b", "B", ""}});
  EXPECT_EQ(count(page, "<script"), 1u);
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find(" src="), page.find(" src=x"));
  EXPECT_NE(page.find("<section class=\"card\" id=\"a\">"), std::string::npos);
}

}  // namespace
}  // namespace mase::charts_test
