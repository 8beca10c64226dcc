// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/search_compare.h"

#include "mase/base/text.h"
#include "mase/cli/plot_option.h"
#include "mase/report/pages/search_page.h"

namespace mase::search_command {

namespace {

std::string sampler_names(const Settings& settings) {
  return settings.has("samplers") ? settings["samplers"].as_string() : "random,tpe";
}

// A name that nobody knows leaves no folder behind.
std::vector<const search::SamplerRecord*> compared(const Settings& settings) {
  std::vector<const search::SamplerRecord*> samplers;
  for (const std::string& name : split(sampler_names(settings), ','))
    samplers.push_back(&search::find_sampler(strip(name), "--samplers"));
  return samplers;
}

int compare_in(RunFolder& folder, const std::vector<const search::SamplerRecord*>& samplers,
               const PreparedSearch& prepared, const Logger& log) {
  const Settings& settings = prepared.settings;
  constexpr int64_t usual_seeds = 10;
  const int64_t seeds = settings.has("seeds") ? settings["seeds"].as_int() : usual_seeds;
  LiveLine live(log.shows_info());
  int64_t done = 0;
  search::StudyObserver observer;
  observer.stop_requested = interrupted;
  observer.finished = [&](const search::Trials& trials, const search::Trial&) {
    ++done;
    if (live.due())
      live.draw(fmt::format("{} trials  {}", with_thousands(done), trials.study_name()));
  };
  const Comparison comparison = prepared.search->compare(samplers, seeds, observer);
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
  Value record = search_record(*prepared.search, none, sampler_names(settings));
  record["comparison"] = comparison_record(comparison);
  record["total"] = done;
  const std::string results = folder.software("search_ckpts");
  write_search_record(results, record);
  log.info(fmt::format("{} (median over seeds; the best known: {:.6g})", comparison.measure,
                       comparison.best));
  log.text(comparison_table(comparison));
  if (settings["plot"].as_bool()) log.text(search_plots(record, plot_style(settings.values)));
  folder.finish("finished");
  log.info(fmt::format("Figure: ch report {}", printable(folder.path())));
  return 0;
}

}  // namespace

int compare_samplers(const PreparedSearch& prepared, const Logger& log,
                     const std::function<RunFolder()>& create_folder) {
  const std::vector<const search::SamplerRecord*> samplers = compared(prepared.settings);
  RunFolder folder = create_folder();
  return folder.guard([&] { return compare_in(folder, samplers, prepared, log); });
}

std::vector<Field> compare_options() {
  constexpr const char* group = "Search options";
  return {{.name = "samplers",
           .type = FieldType::text,
           .help = "compare: the samplers, as brute-force,random,nsgaii (default: random,tpe)",
           .group = group},
          {.name = "seeds",
           .type = FieldType::integer,
           .help = "compare: searches with each sampler (default: 10)",
           .minimum = 1,
           .maximum = 10000,
           .group = group}};
}

}  // namespace mase::search_command
