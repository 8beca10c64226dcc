// SPDX-License-Identifier: Apache-2.0
// What a search found, in MASE's forms and on rows that it did not see.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "mase/base/figure.h"
#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/data/token_rows.h"
#include "mase/passes/costs.h"
#include "mase/run/search/search_experiment.h"
#include "mase/train/metric.h"
#include "mase/train/paired.h"

namespace mase {
namespace {

using search::Point;
using search::Trial;

Value rounded(const Value& figures) {
  Dict shown;
  if (!figures.is_dict()) return shown;
  for (const auto& [name, value] : figures.as_dict())
    shown.set(name, value.is_double() ? Value(std::round(value.as_double() * 1000) / 1000) : value);
  return shown;
}

// As pandas writes times: milliseconds.
Value milliseconds(int64_t microseconds) {
  return microseconds ? Value(microseconds / 1000) : Value();
}

}  // namespace

Value SearchExperiment::best_record() const {
  Dict rows;
  size_t index = 0;
  for (const FrontMember& member : front_) {
    const Trial& trial = (*trials_)[static_cast<size_t>(member.place)];
    List values;
    for (const double value : trial.values) values.emplace_back(value);
    const auto attribute = [&](const char* name) {
      const Value* found = trial.user_attributes.find(name);
      return found ? *found : Value();
    };
    rows.set(std::to_string(index++),
             Dict{{"number", member.number},
                  {"same_network", Value::of(member.same)},
                  {"value", values.size() == 1 ? values[0] : Value(values)},
                  {"software_metrics", attribute("software_metrics")},
                  {"hardware_metrics", attribute("hardware_metrics")},
                  {"scaled_metrics", attribute("scaled_metrics")},
                  {"sampled_config", space_->sampled_config(trial.point)}});
  }
  return rows;
}

// Optuna's data frame of trials, one object per row.
Value SearchExperiment::log_row(const Trial& trial) const {
  Dict row{{"number", trial.shown()}};
  for (size_t k = 0; k < objectives_.size(); ++k)
    row.add(objectives_.size() == 1 ? "value" : fmt::format("values_{}", k),
            k < trial.values.size() ? Value(trial.values[k]) : Value());
  row.add("datetime_start", milliseconds(trial.started));
  row.add("datetime_complete", milliseconds(trial.ended));
  row.add("duration", milliseconds(trial.ended ? trial.ended - trial.started : 0));
  if (trial.in_space) {
    const Value parameters = search::point_to_value(trials_->space(), trial.point);
    for (const auto& [name, value] : parameters.as_dict()) row.add("params_" + name, value);
  }
  for (const auto& [name, value] : trial.user_attributes) row.add("user_attrs_" + name, value);
  if (trial.in_space && trials_->size() <= most_described)
    row.add("user_attrs_sampled_config", space_->sampled_config(trial.point));
  row.add("state", search::state_name(trial.state));
  return row;
}

void SearchExperiment::write_log(const std::string& path) const {
  write_file_atomically(path, [&](int fd) {
    std::string text = "{";
    for (const Trial& trial : *trials_) {
      text += fmt::format("{}\n \"{}\": {}", trial.number == 0 ? "" : ",", trial.number,
                          to_json(log_row(trial)));
      if (text.size() < size_t{1} << 20) continue;
      write_all(fd, text.data(), text.size(), path);
      text.clear();
    }
    text += "\n}\n";
    write_all(fd, text.data(), text.size(), path);
  });
}

std::string SearchExperiment::best_table() const {
  Table table({"", "number", "software_metrics", "hardware_metrics", "scaled_metrics"});
  size_t index = 0;
  for (const FrontMember& member : front_) {
    const Trial& trial = (*trials_)[static_cast<size_t>(member.place)];
    const auto shown = [&](const char* name) {
      const Value* found = trial.user_attributes.find(name);
      return found ? python_repr(rounded(*found)) : std::string();
    };
    table.add({std::to_string(index++), std::to_string(member.number), shown("software_metrics"),
               shown("hardware_metrics"), shown("scaled_metrics")});
  }
  return table.str(TableStyle::orgtbl);
}

Value SearchExperiment::configuration(int64_t place) const {
  const Trial& trial = (*trials_)[static_cast<size_t>(place)];
  List calls;
  if (!folded_.empty()) calls.emplace_back(Dict{{"name", "fuse_batch_norm"}});
  for (const Value& call : space_->passes(trial.point)) calls.push_back(call);
  Dict passes;
  bool once = true;
  for (const Value& call : calls) {
    Dict arguments = call.as_dict();
    const std::string name = arguments.at("name").as_string();
    arguments.erase("name");
    once = once && !passes.contains(name);
    passes.set(name, std::move(arguments));
  }
  if (!once) passes = Dict{{"run", calls}};
  Dict file;
  if (!passes.empty()) file.set("passes", std::move(passes));
  search::Candidate candidate;
  if (!spec_.train.is_null()) {
    const search::SpacePart& part = *space_->parts().back();
    part.apply(
        {trial.point.end() - static_cast<int64_t>(part.space().dimensions()), trial.point.end()},
        {}, candidate);
    for (const auto& [option, value] : spec_.train_changes) file.set(option, value);
    for (const auto& [option, value] : candidate.training) file.set(option, value);
  }
  // Keys at the top come before the tables.
  Dict ordered;
  for (const auto& [key, value] : file)
    if (!value.is_dict()) ordered.set(key, value);
  for (const auto& [key, value] : file)
    if (value.is_dict()) ordered.set(key, value);
  return ordered;
}

std::string SearchExperiment::test_table(const std::vector<TestScore>& scores) const {
  const std::string measured =
      rows() == split_rows() ? spec_.split : fmt::format("{} ({} rows)", spec_.split, rows());
  std::vector<std::string> header = {"number", measured + " accuracy"};
  std::vector<std::string> costs;
  for (const search::FigureRecord* record : all_figures_.wanted()) {
    if (record->is_software()) continue;
    costs.push_back(record->name);
    header.push_back(record->name);
  }
  for (const char* name :
       {"test accuracy", "95 % interval", "difference", "95 % interval", "test loss", "test rows"})
    header.emplace_back(name);
  Table table(header);
  std::map<int64_t, const Trial*> trials;
  for (const FrontMember& member : front_)
    trials[member.number] = &(*trials_)[static_cast<size_t>(member.place)];
  for (const TestScore& score : scores) {
    std::vector<std::string> row = {std::to_string(score.number), figure_text(score.searched)};
    const Value* hardware = trials.at(score.number)->user_attributes.find("hardware_metrics");
    for (const std::string& name : costs) {
      const Value* figure =
          hardware && hardware->is_dict() ? hardware->as_dict().find(name) : nullptr;
      row.push_back(figure && figure->is_number() ? fmt::format("{:.6g}", figure->as_double())
                                                  : "-");
    }
    for (std::string& cell : std::vector<std::string>{
             figure_text(score.accuracy),
             fmt::format("{} to {}", figure_text(score.low), figure_text(score.high)),
             score.is_reference ? "-" : signed_figure_text(score.difference),
             score.is_reference ? "-"
                                : fmt::format("{} to {}", signed_figure_text(score.difference_low),
                                              signed_figure_text(score.difference_high)),
             figure_text(score.loss), with_thousands(score.rows)})
      row.push_back(std::move(cell));
    table.add(row);
  }
  return table.str(TableStyle::orgtbl);
}

std::vector<TrainedBest> SearchExperiment::train_best(
    const std::function<bool(size_t index, size_t count)>& started) const {
  std::vector<TrainedBest> all;
  if (!trained_) return all;
  const size_t count = front_.size();
  for (size_t i = 0; i < count && started(i, count); ++i) {
    const Trial& trial = (*trials_)[static_cast<size_t>(front_[i].place)];
    TrainedBest one;
    one.number = front_[i].number;
    const Value* software = trial.user_attributes.find("software_metrics");
    if (software && software->is_dict()) one.before = software->as_dict();
    search::Evaluator::Calls calls;
    calls.cancelled = [&] { return !started(i, count); };
    search::Evaluator::Result result =
        std::move(trained_->session()->measure(std::span(&trial.point, 1), calls)[0]);
    using End = search::Evaluator::End;
    if (result.end == End::cancelled) break;
    if (result.end == End::failed) one.failure = result.failure;
    one.after = std::move(result.figures.software);
    one.network = std::move(result.network);
    all.push_back(std::move(one));
  }
  return all;
}

Value SearchExperiment::sensitivity(const Stop& stop) const {
  // As many as take some seconds.
  constexpr int64_t work = int64_t{1} << 39;  // multiply-adds
  const int64_t of_one =
      std::max<int64_t>(1, rows()) * std::max<int64_t>(1, network_cost(graph_, 1).total().macs);
  const auto most_measured = static_cast<size_t>(std::min<int64_t>(500, work / of_one));
  const bool classes = experiment_.dataset()->classification;
  const std::string figure = classes ? "accuracy" : "loss";
  const auto value_of = [&](const Score& score) {
    return classes ? score.accuracy() : score.loss();
  };
  const Trial* reference = nullptr;
  double best = 0;
  for (const Trial& trial : *trials_) {
    const Value* software = trial.user_attributes.find("software_metrics");
    if (trial.state != search::TrialState::complete || !trial.in_space || !software ||
        !(*software)[figure].is_number())
      continue;
    const double value = (*software)[figure].as_double();
    if (!reference || (classes ? value > best : value < best)) {
      reference = &trial;
      best = value;
    }
  }
  if (!evaluator_->shares_work() || !reference) return {};
  const std::vector<search::Parameter>& parameters = space().parameters();
  std::set<int> parents;  // changing one of these changes what exists
  for (const search::Parameter& parameter : parameters) parents.insert(parameter.parent);
  const std::unique_ptr<search::Evaluator::Session> session = evaluator_->session();
  List rows;
  size_t measured_so_far = 0;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const search::Distribution& values = parameters[p].distribution;
    if (parents.count(static_cast<int>(p)) || std::isnan(reference->point[p]) ||
        measured_so_far + static_cast<size_t>(values.count()) > most_measured)
      continue;
    if (stop && stop()) return {};
    List cells;
    for (double i = 0; i < values.count(); ++i, ++measured_so_far) {
      Point point = reference->point;
      point[p] = values.nth(i);
      cells.emplace_back(Dict{{"setting", values.external(point[p])},
                              {"value", value_of(session->scores(std::span(&point, 1))[0])}});
    }
    rows.emplace_back(Dict{{"parameter", parameters[p].name}, {"cells", std::move(cells)}});
  }
  return Dict{{"figure", figure}, {"trial", reference->shown()}, {"rows", std::move(rows)}};
}

std::vector<TestScore> SearchExperiment::test_best(const Stop& stop) const {
  const Dataset& dataset = *experiment_.dataset();
  std::vector<TestScore> scores;
  if (spec_.split == "test" || !dataset.classification || has_token_labels(dataset) ||
      dataset.test.rows() == 0)
    return scores;
  std::vector<std::vector<bool>> correct;
  size_t reference = 0;
  for (const FrontMember& member : front_) {
    if (stop && stop()) break;
    const std::optional<Graph> found = network(member.place, stop);
    if (!found) continue;
    const Graph& graph = *found;
    CompileOptions options;
    options.batch_size = rows_at_once(graph, std::clamp<int64_t>(dataset.test.rows(), 1, 1024));
    options.loss = loss_for(dataset);
    Program program = Program::compile(graph, options);
    Score score;
    correct.push_back(
        correct_rows(predict_rows(program, dataset.test, &score), dataset.test.labels));
    const double n = static_cast<double>(score.rows), p = score.accuracy(), z = interval_95;
    const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
    const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    TestScore entry;
    entry.number = member.number;
    const Dict& attributes = (*trials_)[static_cast<size_t>(member.place)].user_attributes;
    const Value* software = attributes.find("software_metrics");
    entry.searched = software && (*software)["accuracy"].is_number()
                         ? (*software)["accuracy"].as_double()
                         : std::nan("");
    entry.accuracy = p;
    entry.low = centre - half;
    entry.high = centre + half;
    entry.loss = score.loss();
    entry.rows = score.rows;
    if (!scores.empty() && entry.searched > scores[reference].searched) reference = scores.size();
    scores.push_back(entry);
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    TestScore& score = scores[i];
    const PairedDifference change = paired_difference(correct[reference], correct[i]);
    score.is_reference = i == reference;
    score.difference = change.mean;
    score.difference_low = change.low;
    score.difference_high = change.high;
  }
  return scores;
}

}  // namespace mase
