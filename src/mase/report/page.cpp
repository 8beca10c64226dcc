// SPDX-License-Identifier: Apache-2.0
#include "mase/report/page.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "mase/base/error.h"
#include "mase/base/text.h"
#include "mase/report/event_file.h"
#include "mase/report/html.h"

namespace mase {
namespace {

// Points of all curves on a page together: about 25 bytes each, and far more than a screen shows.
constexpr size_t most_points = 60000;
constexpr size_t most_points_of_a_curve = 4000;
constexpr size_t fewest_points_of_a_curve = 120;
constexpr size_t most_points_of_a_roc = 400;

Value numbers(const std::vector<double>& values) {
  List list;
  list.reserve(values.size());
  for (double value : values) {
    if (!std::isfinite(value)) {
      list.emplace_back(value);
      continue;
    }
    const auto whole = static_cast<int64_t>(std::clamp(value, -1e15, 1e15));
    if (static_cast<double>(whole) == value)
      list.emplace_back(whole);  // "500" is shorter than "500.0"
    else
      list.emplace_back(value);
  }
  return list;
}

Value curve_data(const Curve& curve, size_t most, bool& thinned) {
  const Curve shown = thin(curve, most);
  thinned = thinned || shown.x.size() < curve.x.size();
  return Dict{{"key", curve.name}, {"x", numbers(shown.x)}, {"y", numbers(shown.y)}};
}

void thin_roc(Value& evaluation) {
  if (!evaluation.is_dict() || !evaluation["roc"].is_list()) return;
  for (Value& one : evaluation["roc"].list()) {
    if (!one.is_dict() || !one["fpr"].is_list() || !one["tpr"].is_list()) continue;
    const List fpr = one["fpr"].as_list(), tpr = one["tpr"].as_list();
    if (fpr.size() != tpr.size() || fpr.size() <= most_points_of_a_roc) continue;
    List x, y;
    for (size_t i = 0; i <= most_points_of_a_roc; ++i) {
      const size_t at = i * (fpr.size() - 1) / most_points_of_a_roc;
      x.push_back(fpr[at]);
      y.push_back(tpr[at]);
    }
    one["fpr"] = std::move(x);
    one["tpr"] = std::move(y);
  }
}

Value evaluation_outline(const Value& evaluation) {
  return Dict{{"split", evaluation["split"]},
              {"accuracy", evaluation["accuracy"]},
              {"loss", evaluation["loss"]}};
}

Dict frame(const char* view, const PageOptions& options, const std::string& title) {
  Dict data{{"view", view}, {"title", title}, {"generator", options.generator}};
  if (!options.live_url.empty())
    data.set("live", Dict{{"url", options.live_url}, {"seconds", options.live_seconds}});
  if (!options.home.empty()) data.set("home", options.home);
  if (!options.folder.empty()) data.set("folder", options.folder);
  if (!options.sweep.is_null()) data.set("sweep", options.sweep);
  return data;
}

std::string sha256_base64(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  MASE_CHECK(EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr) == 1,
             "SHA-256 failed");
  unsigned char encoded[4 * EVP_MAX_MD_SIZE];
  const int length = EVP_EncodeBlock(encoded, digest, static_cast<int>(size));
  return {reinterpret_cast<const char*>(encoded), static_cast<size_t>(length)};
}

}  // namespace

Value run_outline(const Value& run, bool with_options) {
  Dict outline;
  for (const char* key : {"kind", "version", "status", "started", "finished", "seed", "model",
                          "dataset", "best", "speed"})
    if (const Value* found = run.as_dict().find(key)) outline.set(key, *found);
  if (with_options) {
    if (const Value* found = run.as_dict().find("options")) outline.set("options", *found);
  } else if (Value* data = outline.find("dataset"); data && data->is_dict()) {
    data->dict().erase("classes");  // may be thousands
  }
  const Value& evaluation = run["evaluation"];
  if (evaluation.is_dict()) outline.set("evaluation", evaluation_outline(evaluation));
  const Value& evaluations = run["evaluations"];
  if (evaluations.is_dict()) {
    Dict splits;
    for (const auto& [split, found] : evaluations.as_dict())
      if (found.is_dict()) splits.set(split, evaluation_outline(found));
    outline.set("evaluations", std::move(splits));
  }
  // A list shows what a transform did to the accuracy; the rest of its record would not fit.
  const Value& transform = run["transform"];
  if (transform.is_dict() && transform["accuracy"].is_dict())
    outline.set("transform", Dict{{"accuracy", transform["accuracy"]}});
  return outline;
}

Value page_data(const std::vector<RunData>& runs, const PageOptions& options) {
  size_t curve_count = 0;
  for (const RunData& run : runs) curve_count += run.curves.size();
  const size_t most = std::clamp(most_points / std::max<size_t>(1, curve_count),
                                 fewest_points_of_a_curve, most_points_of_a_curve);
  const bool comparing = runs.size() > 1;
  List list;
  for (const RunData& run : runs) {
    Dict entry{{"name", run.name}, {"folder", run.folder}};
    Value info = comparing ? run_outline(run.run, true) : run.run;
    if (!comparing && info.as_dict().contains("evaluation")) thin_roc(info["evaluation"]);
    entry.set("run", std::move(info));
    List curves;
    bool thinned = false;
    for (const Curve& curve : run.curves)
      if (!comparing || !ends_with(curve.name, "_step"))
        curves.push_back(curve_data(curve, most, thinned));
    entry.set("curves", std::move(curves));
    entry.set("rows", run.rows);
    entry.set("thinned", thinned);
    entry.set("marks", Dict{{"epoch", numbers(run.epochs)},
                            {"step", numbers(run.epoch_steps)},
                            {"seconds", numbers(run.epoch_seconds)}});
    if (!comparing && !run.results.is_null()) entry.set("results", run.results);
    if (!run.problem.empty()) entry.set("problem", run.problem);
    list.emplace_back(std::move(entry));
  }
  std::string title = options.title;
  if (title.empty()) title = runs.size() == 1 ? runs.front().name : "Comparison of runs";
  Dict data = frame("runs", options, title);
  data.set("runs", std::move(list));
  return data;
}

Value list_data(const std::vector<ListedRun>& runs, const PageOptions& options) {
  List list;
  for (const ListedRun& listed : runs) {
    Dict entry{
        {"id", listed.id}, {"name", listed.run.name}, {"run", run_outline(listed.run.run, false)}};
    if (!listed.run.problem.empty()) entry.set("problem", listed.run.problem);
    list.emplace_back(std::move(entry));
  }
  Dict data = frame("list", options, options.title.empty() ? "Runs" : options.title);
  data.set("runs", std::move(list));
  return data;
}

std::string page_json(Value data) {
  const std::string content = to_json(data);
  data.dict().set("digest", fmt::format("{:08x}-{}", crc32c(content), content.size()));
  return to_json(data);
}

std::string run_query(const std::vector<std::string>& ids) {
  std::string query;
  for (const std::string& id : ids) {
    query += query.empty() ? "run=" : "&run=";
    for (const unsigned char c : id)
      query += std::isalnum(c) || c == '-' || c == '_' || c == '.'
                   ? std::string(1, static_cast<char>(c))
                   : fmt::format("%{:02X}", c);
  }
  return query;
}

std::string document_html(const std::string& title, const std::string& policy,
                          const std::string& body) {
  std::string page;
  page.reserve(body.size() + page_style().size() + 2048);
  page += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n";
  page += "<title>" + escaped(title) + "</title>\n<style>";
  page += page_style();
  page += "</style>\n</head>\n<body>\n" + body + "\n</body>\n</html>\n";
  return page;
}

std::string page_html(const std::string& json, const std::string& title, bool live,
                      const std::string& plain) {
  // "<" never appears in the data block, so no text in it can end the block or open a comment.
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; img-src data:; "
      "connect-src {}; base-uri 'none'; form-action 'none'",
      sha256_base64(page_script()), live ? "'self'" : "'none'");
  std::string body = "<noscript><header class=\"top\"><h1>" + escaped(title) +
                     "</h1><p class=\"subtitle\">With JavaScript, which is switched off, this page "
                     "shows more.</p></header><main><section class=\"card\">";
  body += plain + "</section></main></noscript>\n";
  body += "<script type=\"application/json\" id=\"mase-data\">";
  body += replace_all(json, "<", "\\u003c");
  body += "</script>\n<script>";
  body += page_script();
  body += "</script>";
  return document_html(title, policy, body);
}

}  // namespace mase
