// SPDX-License-Identifier: Apache-2.0
// Layers after Sugiyama et al. (1981): a box's layer is the longest path from an input, the order
// within a layer the mean place of the neighbours, a few sweeps. An edge over several layers has a
// lane of its own in each, so that no line runs behind a box.
#include "mase/report/charts/graph_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "mase/report/charts/chart_frame.h"
#include "mase/report/pages/html.h"

namespace mase {
namespace {

constexpr double box_width = 236, box_height = 66, gap_x = 34, gap_y = 34, lane = 18;

struct Place {
  size_t layer = 0;
  bool box = false;
  double x = 0;  // of its middle
  std::vector<Place*> before, after;
  double width() const { return box ? box_width : lane; }
  double top() const { return 20 + static_cast<double>(layer) * (box_height + gap_y); }
  double bottom() const { return top() + box_height; }
};

struct Edge {
  size_t from, to;
  std::vector<Place*> way;
};

// Packed in their order; the boxes among them are centred on zero.
void pack(std::vector<Place*>& layer) {
  double at = 0, middle = 0, boxes = 0;
  for (Place* place : layer) {
    const double space = place->box ? gap_x : 6;
    place->x = at + place->width() / 2 + space / 2;
    at += place->width() + space;
    if (place->box) {
      middle += place->x;
      ++boxes;
    }
  }
  for (Place* place : layer) place->x -= boxes > 0 ? middle / boxes : at / 2;
}

void settle(std::vector<Place*>& layer, std::vector<Place*> Place::*side) {
  std::map<Place*, double> wish;
  for (Place* place : layer) {
    double sum = 0;
    for (const Place* one : place->*side) sum += one->x;
    wish[place] =
        (place->*side).empty() ? place->x : sum / static_cast<double>((place->*side).size());
  }
  std::stable_sort(layer.begin(), layer.end(),
                   [&](Place* a, Place* b) { return wish[a] < wish[b]; });
  pack(layer);
}

std::string box_svg(const GraphBox& box, const Place& place) {
  const std::string css =
      box.kind == "placeholder" || box.kind == "output" || box.kind == "get_attr" ? box.kind
                                                                                  : "call";
  std::string svg = fmt::format(
      "<g class=\"node {}{}\" data-node=\"{}\" transform=\"translate({:.1f} {:.1f})\"><rect "
      "width=\"{}\" height=\"{}\" rx=\"9\" class=\"body\"/><rect width=\"5\" height=\"{}\" x=\"8\" "
      "y=\"9\" rx=\"2.5\" class=\"stripe\"/><text x=\"22\" y=\"21\" class=\"name\">{}</text><text "
      "x=\"22\" y=\"38\" class=\"type\">{}</text><text x=\"22\" y=\"55\" class=\"shape\">{}</text>",
      css, box.format.empty() ? "" : " quantised", escaped(box.name), place.x - box_width / 2,
      place.top(), box_width, box_height, box_height - 18, escaped(cut_text(box.name, 26)),
      escaped(cut_text(box.type, 28)), escaped(cut_text(box.shape, box.format.empty() ? 28 : 12)));
  if (!box.format.empty())
    svg += fmt::format("<text x=\"{}\" y=\"55\" text-anchor=\"end\" class=\"format\">{}</text>",
                       box_width - 10, escaped(cut_text(box.format, 20)));
  svg += "<title>" + escaped(box.name + " " + box.type + " " + box.shape + " " + box.format) +
         "</title></g>";
  const std::string link = safe_link(box.link);
  return link.empty() ? svg : "<a href=\"" + link + "\">" + svg + "</a>";
}

std::string edge_svg(const Edge& edge, const std::vector<GraphBox>& boxes, double right) {
  const Place& first = *edge.way.front();
  std::string path = fmt::format("M{:.1f} {:.1f}", first.x, first.bottom());
  for (size_t k = 1; k < edge.way.size(); ++k) {
    const Place &from = *edge.way[k - 1], &to = *edge.way[k];
    const bool last = k + 1 == edge.way.size();
    const double end = to.top() - (last ? 5 : 0), middle = (from.bottom() + to.top()) / 2;
    if (to.layer <= from.layer)  // backwards, which no verified graph has: around the right side
      path += fmt::format("V{0:.1f}H{1:.1f}V{2:.1f}H{3:.1f}V{4:.1f}", from.bottom() + 12, right,
                          to.top() - 12, to.x, end);
    else if (from.x == to.x)
      path += fmt::format("L{:.1f} {:.1f}", to.x, end);
    else
      path += fmt::format("C{0:.1f} {1:.1f} {2:.1f} {1:.1f} {2:.1f} {3:.1f}", from.x, middle, to.x,
                          end);
    if (!last) path += fmt::format("L{:.1f} {:.1f}", to.x, to.bottom());
  }
  return fmt::format(
      "<path d=\"{}\" class=\"edge\" data-from=\"{}\" data-to=\"{}\" marker-end=\"url(#arrow)\"/>",
      path, escaped(boxes[edge.from].name), escaped(boxes[edge.to].name));
}

}  // namespace

std::string graph_chart(const std::vector<GraphBox>& boxes) {
  if (boxes.empty()) return "";
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < boxes.size(); ++i) index.emplace(boxes[i].name, i);
  std::deque<Place> places(boxes.size());  // grows without moving what is there
  std::vector<Edge> edges;
  for (size_t i = 0; i < boxes.size(); ++i) {
    places[i].box = true;
    std::set<size_t> seen;
    for (const std::string& name : boxes[i].inputs) {
      const auto found = index.find(name);
      if (found == index.end() || !seen.insert(found->second).second) continue;
      edges.push_back({found->second, i, {}});
      if (found->second < i)
        places[i].layer = std::max(places[i].layer, places[found->second].layer + 1);
    }
  }
  std::vector<std::vector<Place*>> layers;
  const auto put = [&](Place& place) {
    if (layers.size() <= place.layer) layers.resize(place.layer + 1);
    layers[place.layer].push_back(&place);
  };
  for (size_t i = 0; i < boxes.size(); ++i) put(places[i]);
  for (Edge& edge : edges) {
    Place &from = places[edge.from], &to = places[edge.to];
    edge.way = {&from};
    for (size_t layer = from.layer + 1; layer < to.layer; ++layer) {
      places.emplace_back();
      places.back().layer = layer;
      edge.way.push_back(&places.back());
      put(places.back());
    }
    edge.way.push_back(&to);
    if (to.layer <= from.layer) continue;
    for (size_t k = 1; k < edge.way.size(); ++k) {
      edge.way[k]->before.push_back(edge.way[k - 1]);
      edge.way[k - 1]->after.push_back(edge.way[k]);
    }
  }
  for (auto& layer : layers) pack(layer);
  for (int sweep = 0; sweep < 4; ++sweep) {
    for (auto& layer : layers) settle(layer, &Place::before);
    for (size_t l = layers.size(); l-- > 0;) settle(layers[l], &Place::after);
  }
  double left = 0, right = 0, bottom = 0;
  for (const Place& place : places) {
    left = std::min(left, place.x - place.width() / 2);
    right = std::max(right, place.x + place.width() / 2);
    bottom = std::max(bottom, place.bottom());
  }
  for (Place& place : places) place.x += 24 - left;
  ChartArea area;
  area.width = right - left + 56;
  area.height = bottom + 20;
  std::string content =
      "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" "
      "class=\"arrow\"/></marker></defs>";
  for (const Edge& edge : edges) content += edge_svg(edge, boxes, area.width - 10);
  for (size_t i = 0; i < boxes.size(); ++i) content += box_svg(boxes[i], places[i]);
  return fmt::format(
      "<figure class=\"drawn graph-box\"><div class=\"scroll\"><svg class=\"graph\" viewBox=\"0 0 "
      "{0:.0f} {1:.0f}\" style=\"width:{0:.0f}px\" role=\"group\" aria-label=\"Graph of {2} "
      "nodes\">{3}</svg></div></figure>",
      area.width, area.height, boxes.size(), content);
}

}  // namespace mase
