// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/search_setup.h"

#include <cmath>

#include "mase/base/text.h"
#include "mase/search/storage.h"

namespace mase::search_command {
namespace {

std::string count_text(double count) {
  if (std::isinf(count)) return "any number of";
  return count < 1e15 ? with_thousands(static_cast<int64_t>(count)) : human_count(count);
}

void tell_space(const SearchExperiment& search, const Logger& log) {
  const SearchSpec& spec = search.spec();
  const double size = search.space().size();
  log.info(
      fmt::format("Search space: {} parameters, {} configurations; sampler {}, measured on "
                  "{} {} rows",
                  search.space().dimensions(), count_text(size), spec.sampler->name,
                  with_thousands(search.rows()), spec.split));
  for (const std::string& told : search.unused_seeds()) log.info(told);
  if (search.space().empty())
    log.warning("there is one configuration only: it is measured, and nothing is searched");
  const bool exhaustive = spec.sampler->name == "brute-force" || spec.sampler->name == "grid";
  if (!exhaustive && size > 1 && spec.study.trials > 0 &&
      size <= static_cast<double>(spec.study.trials))
    log.info(
        "n_trials covers the whole space: sampler = \"brute-force\" does the same without "
        "sampling");
  if (exhaustive || !(size > static_cast<double>(spec.study.trials))) return;
  const std::optional<SearchExperiment::Pace> pace = search.pace();
  const double asked = pace ? pace->one * static_cast<double>(spec.study.trials) : 0;
  if (!pace || pace->all >= asked) return;
  const double jobs = spec.study.jobs;
  log.info(fmt::format(
      "All {} configurations would take about {:.2g} s with sampler = \"brute-force\", "
      "{} trials one by one about {:.2g} s",
      count_text(size), pace->all / jobs, with_thousands(spec.study.trials), asked / jobs));
}

// [passes] of the file is for other commands. A key that nobody reads is a mistake here too; what
// only does not fit this network is none.
void check_passes(ExperimentSpec parts) {
  parts.data = {};
  Problems found, mistyped, missing;
  Experiment(std::move(parts)).check(found);
  for (const Error& problem : found.errors())
    for (const Error& error : problem.parts()) {  // one may stand for many
      if (error.mistake() == Mistake::unknown_key) mistyped.add(error);
      if (error.mistake() == Mistake::missing_key) missing.add(error);
    }
  mistyped.throw_if_any();
  missing.throw_if_any();
}

}  // namespace

Prepared::Prepared(Settings read, SearchSpec spec, bool speaks)
    : settings(std::move(read)), log(settings, speaks) {
  log.text(settings_table(settings, settings["show_options"].as_bool()));
  for (const std::string& warning : settings.warnings) log.warning(warning);
  for (const std::string& notice : spec.notices) log.warning(notice);
  ExperimentSpec parts = experiment_spec(settings);
  if (!parts.passes.calls.empty()) check_passes(parts);
  parts.data.needed = true;
  parts.passes = {};
  experiment = std::make_unique<Experiment>(std::move(parts), log.observer());
  experiment->prepare();
  if (!experiment->network().loaded && !spec.trained)
    log.warning("no --load: the network has its initial random weights");
  search = std::make_unique<SearchExperiment>(*experiment, std::move(spec));
  tell_space(*search, log);
}

RunFolder Prepared::create_folder(const Arguments& arguments) const {
  OutputSpec output = output_spec(settings);
  output.record["version"] = program_version();
  std::vector<std::string> words;
  for (const std::string& word : arguments.command_line)
    words.push_back(search::without_password(word));
  output.record["command"] = Value::of(words);
  return experiment->create_folder(output, "search");
}

std::string study_name(const Settings& settings) {
  return settings.has("study") ? settings["study"].as_string() : "search";
}

std::vector<Field> search_options() {
  constexpr const char* group = "Search options";
  return {{.name = "sampler",
           .type = FieldType::text,
           .help = "what proposes configurations: brute-force, tpe, nsgaii, random, ... (default: "
                   "brute-force where all of up to a million are tried, otherwise tpe)",
           .group = group},
          {.name = "n_trials",
           .type = FieldType::integer,
           .help = "configurations to try",
           .minimum = 1,
           .group = group},
          {.name = "n_jobs",
           .type = FieldType::integer,
           .help = "trials at a time",
           .minimum = 1,
           .maximum = 1024,
           .group = group},
          {.name = "timeout",
           .type = FieldType::number,
           .help = "seconds after which no trial is started",
           .minimum = 0,
           .group = group},
          {.name = "space",
           .type = FieldType::text,
           .help = "without a file: widths of every linear layer and convolution, as bits=2..8",
           .group = group},
          {.name = "objective",
           .type = FieldType::text,
           .help = "without a file: figures to search for, as accuracy,bitops",
           .group = group},
          {.name = "rows",
           .type = FieldType::integer,
           .help = "rows that a configuration is measured on, the first of the split",
           .minimum = 1,
           .group = group},
          {.name = "storage",
           .type = FieldType::text,
           .help = "where trials are kept: sqlite:///FILE.db, postgresql://USER@HOST/DATABASE or "
                   "journal:FILE (default: study.db in the run folder)",
           .group = group,
           .secret = true},
          {.name = "study",
           .type = FieldType::text,
           .help = "name of the study in the storage; one that is there goes on",
           .group = group},
          {.name = "worker",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "work along: take trials of the study in --storage until none is left; results "
                   "are written by a search without this",
           .group = group},
          {.name = "window",
           .type = FieldType::integer,
           .help = "a suggestion sees the results of trials so far back: as many can run at a time "
                   "(default: n_jobs; 16 for several processes)",
           .minimum = 1,
           .group = group},
          {.name = "heartbeat",
           .type = FieldType::number,
           .default_value = 10.0,
           .help = "seconds between a process's signs of life; silent for two of them, its trials "
                   "are taken over",
           .minimum = 0.5,
           .maximum = 86400,
           .group = group},
          {.name = "samplers",
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
