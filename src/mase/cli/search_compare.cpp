// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/search_compare.h"

#include "mase/base/text.h"
#include "mase/cli/plot_option.h"
#include "mase/cli/search_progress.h"
#include "mase/report/search_page.h"

namespace mase::search_command {

int compare_samplers(const Arguments& arguments, const Prepared& prepared) {
  const Settings& settings = prepared.settings;
  const Logger& log = prepared.log;
  std::vector<const search::SamplerRecord*> samplers;
  const std::string names =
      settings.has("samplers") ? settings["samplers"].as_string() : "random,tpe";
  for (const std::string& name : split(names, ','))
    samplers.push_back(&search::find_sampler(strip(name), "--samplers"));
  constexpr int64_t usual_seeds = 10;
  const int64_t seeds = settings.has("seeds") ? settings["seeds"].as_int() : usual_seeds;
  RunFolder folder = prepared.create_folder(arguments);
  LiveLine live(log.shows_info());
  int64_t done = 0;
  search::StudyObserver observer;
  observer.stop_requested = interrupted;
  observer.finished = [&](const search::Trials& trials, const search::Trial&) {
    ++done;
    if (live.due())
      live.draw(fmt::format("{} trials  {}", with_thousands(done), trials.study_name()));
  };
  Comparison comparison;
  try {
    comparison = prepared.search->compare(samplers, seeds, observer);
  } catch (const std::exception&) {
    folder.finish("failed");
    throw;
  }
  live.finish(fmt::format("{} trials of {} samplers with {} seeds; {} configurations measured",
                          with_thousands(done), samplers.size(), seeds,
                          with_thousands(comparison.configurations)));
  if (interrupted()) {
    folder.finish("interrupted");
    log.info("Interrupted: a comparison is not kept.");
    return 130;
  }
  for (const std::string& reason : comparison.left_out) log.warning(reason);
  const search::Trials none(prepared.search->space(), prepared.search->maximise(), "comparison");
  Value record = search_record(*prepared.search, none, names);
  record["comparison"] = comparison_record(comparison);
  record["total"] = done;
  const std::string results = folder.software("search_ckpts");
  write_record(results, record);
  log.info(fmt::format("{} (median over seeds; the best known: {:.6g})", comparison.measure,
                       comparison.best));
  log.text(comparison_table(comparison));
  if (settings["plot"].as_bool()) log.text(search_plots(record, plot_style(settings.values)));
  folder.finish("finished");
  log.info(fmt::format("Figure: ch report {}", printable(folder.path())));
  return 0;
}

}  // namespace mase::search_command
