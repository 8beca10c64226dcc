// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/search_results.h"

#include <algorithm>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/base/text.h"

namespace mase::search_command {

std::string test_table(const std::vector<TestScore>& scores, const std::string& split) {
  Table table({"number", split + " accuracy", "test accuracy", "95 % interval", "difference",
               "95 % interval", "test loss", "test rows"});
  for (const TestScore& score : scores) {
    table.add({std::to_string(score.number), fmt::format("{:.4f}", score.searched),
               fmt::format("{:.4f}", score.accuracy),
               fmt::format("{:.4f} to {:.4f}", score.low, score.high),
               score.is_reference ? "-" : fmt::format("{:+.4f}", score.difference),
               score.is_reference
                   ? "-"
                   : fmt::format("{:+.4f} to {:+.4f}", score.difference_low, score.difference_high),
               fmt::format("{:.4f}", score.loss), with_thousands(score.rows)});
  }
  return table.str(TableStyle::orgtbl);
}

void save_best(const SearchExperiment& search, const Experiment& experiment,
               const std::string& folder, const Logger& log) {
  constexpr size_t most = 20;
  const std::vector<int64_t> best = search.best();
  for (size_t i = 0; i < std::min(best.size(), most); ++i) {
    const std::string name =
        fmt::format("{}/best_{}", folder, search.trials()[static_cast<size_t>(best[i])].shown());
    write_file_atomically(name + ".toml", to_toml(search.configuration(best[i])));
    save_mz(name + ".mz", search.network(best[i]), experiment.file_contents());
  }
  if (best.size() > most)
    log.info(fmt::format("{} best trials; networks of the first {} are saved", best.size(), most));
}

void train_best(const SearchExperiment& search, const Experiment& experiment,
                const std::string& folder, const Logger& log) {
  LiveLine live(log.shows_info());
  const std::vector<TrainedBest> all = search.train_best([&](size_t index, size_t count) {
    if (live.due()) live.draw(fmt::format("Training {} of {} best trials", index + 1, count));
    return !interrupted();
  });
  if (all.empty()) return;
  live.finish(fmt::format("{} best trials were trained on", all.size()));
  const auto figure = [](const Dict& figures, const char* name) {
    const Value* value = figures.find(name);
    return value && value->is_number() ? fmt::format("{:.4f}", value->as_double()) : "-";
  };
  Table table({"number", "accuracy", "after training", "loss", "after training"});
  List records;
  for (const TrainedBest& one : all) {
    if (!one.failure.empty()) log.warning(fmt::format("trial {}: {}", one.shown, one.failure));
    table.add({std::to_string(one.shown), figure(one.before, "accuracy"),
               figure(one.after, "accuracy"), figure(one.before, "loss"),
               figure(one.after, "loss")});
    records.emplace_back(Dict{{"number", one.shown}, {"before", one.before}, {"after", one.after}});
    if (one.failure.empty())
      save_mz(fmt::format("{}/best_{}_trained.mz", folder, one.shown), one.network,
              experiment.file_contents());
  }
  write_file_atomically(folder + "/trained.json", to_json(Value(std::move(records)), 1) + "\n");
  log.info(fmt::format("The best, trained with their formats ({} rows):", search.spec().split));
  log.text(table.str(TableStyle::orgtbl));
}

}  // namespace mase::search_command
