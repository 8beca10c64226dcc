// SPDX-License-Identifier: Apache-2.0
#include "mase/report/charts/chart_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/report/pages/html.h"
#include "mase/report/text/utf8.h"

namespace mase {

std::string series_colour(size_t i) {
  constexpr size_t chosen = 8;  // named in the style sheet, for light and dark pages
  if (i < chosen) return fmt::format("var(--series-{})", i + 1);
  // A golden angle apart, three lightnesses in turn: no two are the same.
  return fmt::format("hsl({:.1f} 55% {}%)", std::fmod(static_cast<double>(i) * 137.508 + 20, 360.0),
                     40 + 8 * (i % 3));
}

std::string cut_text(const std::string& text, size_t letters) {
  const std::string valid = valid_utf8(text);
  size_t at = 0, count = 0;
  while (at < valid.size()) {
    if (++count > letters) return valid.substr(0, at) + "…";
    at += utf8_length(std::string_view(valid).substr(at));
  }
  return valid;
}

std::string drawn_axes(const ChartArea& area, const Axis& x, const Axis& y,
                       const std::string& x_label, const std::string& y_label) {
  std::string svg = "<g class=\"axes\">";
  for (const double tick : y.ticks()) {
    const double at = y.place(tick);
    svg += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid-line\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" class=\"tick\">{}</text>",
        area.left, area.inner_right(), at, at, area.left - 7, at + 4, escaped(y.text(tick)));
  }
  for (const double tick : x.ticks()) {
    const double at = x.place(tick);
    svg += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid-line\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"tick\">{}</text>",
        at, at, area.top, area.inner_bottom(), at, area.inner_bottom() + 17, escaped(x.text(tick)));
  }
  svg += "</g>";
  const auto label = [](const std::string& name, const Axis& axis) {
    return escaped(cut_text(name, 34)) + (axis.logarithmic() && !name.empty() ? " (log)" : "");
  };
  const double middle = (area.top + area.inner_bottom()) / 2;
  svg += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"tick\">{}</text>"
      "<text x=\"12\" y=\"{:.1f}\" text-anchor=\"middle\" class=\"tick\" "
      "transform=\"rotate(-90 12 {:.1f})\">{}</text>",
      (area.left + area.inner_right()) / 2, area.height - 8, label(x_label, x), middle, middle,
      label(y_label, y));
  return svg;
}

std::string zoom_axes(const Axis& x, const Axis& y) {
  return " data-x=\"" + x.described() + "\" data-y=\"" + y.described() + "\"";
}

std::string drawn_marks(const std::string& marks) { return "<g class=\"marks\">" + marks + "</g>"; }

std::string chart_figure(const std::string& title, const ChartArea& area, const std::string& spoken,
                         const std::string& content, const std::string& below,
                         const std::string& axes, const std::string& id) {
  // A group, not an image: what can be clicked inside stays within reach of the keyboard.
  return fmt::format(
      "<figure class=\"drawn\"{}><figcaption>{}</figcaption><div class=\"scroll\"><svg viewBox=\"0 "
      "0 "
      "{:.0f} {:.0f}\" role=\"group\" aria-label=\"{}\"{} "
      "style=\"min-width:{:.0f}px;max-width:{:.0f}px\">{}</svg></div>{}</figure>",
      id.empty() ? "" : " id=\"" + escaped(id) + "\"", escaped(title), area.width, area.height,
      escaped(title + ". " + spoken), axes, area.width * 0.8, area.width * 1.6, content, below);
}

std::string no_chart(const std::string& title) {
  return "<figure class=\"drawn\"><figcaption>" + escaped(title) +
         "</figcaption><p class=\"note\">Nothing to draw.</p></figure>";
}

std::string marked(const std::string& element_without_end, const std::string& element_name,
                   const ChartText& text, const std::string& hover) {
  const std::string link = safe_link(text.link);
  const std::string shown = text.hover.empty() ? hover : text.hover;
  const std::string element =
      element_without_end + "><title>" + escaped(shown) + "</title></" + element_name + ">";
  return link.empty() ? element : "<a href=\"" + link + "\">" + element + "</a>";
}

std::string end_names(std::vector<EndName> names, double x, double top, double bottom) {
  constexpr double gap = 13;
  std::stable_sort(names.begin(), names.end(),
                   [](const EndName& a, const EndName& b) { return a.y < b.y; });
  for (size_t i = 0; i < names.size(); ++i)
    names[i].y = std::max(names[i].y, i == 0 ? top : names[i - 1].y + gap);
  for (size_t i = names.size(); i-- > 0;)
    names[i].y = std::min(names[i].y, i + 1 == names.size() ? bottom : names[i + 1].y - gap);
  std::string svg;
  for (const EndName& name : names)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tick\" style=\"fill:{}\">{}</text>",
                       x, name.y + 4, name.colour, escaped(cut_text(name.text, 18)));
  return svg;
}

}  // namespace mase
