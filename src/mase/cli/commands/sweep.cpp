// SPDX-License-Identifier: Apache-2.0
// ch sweep: runs a grid of settings in parallel processes, remembers what is done, and ends with a
// comparison page, a CSV and a table. A failed run is one row; an interrupted sweep goes on where
// it was when the same command is given again.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "mase/base/figure.h"
#include "mase/base/file.h"
#include "mase/cli/arguments.h"
#include "mase/cli/child_process.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/models/model.h"
#include "mase/report/pages/run_page.h"
#include "mase/report/pages/sweep_grid.h"
#include "mase/run/experiment.h"

namespace mase::sweep_command {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> forwarded(const std::vector<std::string>& rest,
                                     const std::string& flag) {
  for (size_t i = 0; i < rest.size(); ++i) {
    if (starts_with(rest[i], flag + "=")) return rest[i].substr(flag.size() + 1);
    if (rest[i] == flag && i + 1 < rest.size()) return rest[i + 1];
  }
  return {};
}

// One run's words, judged as the run will judge them.
void check_run(const CommandRecord& command, const std::vector<std::string>& words) {
  Arguments arguments;
  std::string help;
  if (!parse_arguments(command, words, arguments, help)) return;
  Problems problems;
  const Settings settings = merge_settings(command.name, arguments, problems);
  problems.throw_if_any();
  ExperimentSpec spec = experiment_spec(settings);
  spec.data.needed = true;
  if (command.options.find("training_optimizer")) train_spec(settings);
  Experiment(std::move(spec)).check(problems);
  problems.throw_if_any();
}

std::vector<std::string> words_for(const Variation& variation, const std::string& value) {
  if (is_config_key(variation.option)) return {"--set", variation.option + "=" + value};
  return {"--" + replace_all(variation.option, "_", "-"), value};
}

// Mistakes are found here, once, not by every run: each value is tried with the first ones of the
// other variations.
void check_runs(const CommandRecord& command, const std::vector<std::string>& rest,
                const std::vector<Variation>& variations) {
  const auto known = [&](const Field& field, const std::string& name) {
    return field.name == name ||
           std::find(field.aliases.begin(), field.aliases.end(), name) != field.aliases.end();
  };
  for (const Variation& variation : variations) {
    if (is_config_key(variation.option)) {
      if (!command.options.find("set"))
        throw Error("--vary", fmt::format("ch {} reads no configuration to change '{}' in",
                                          command.name, printable(variation.option)));
      continue;
    }
    const std::vector<Field>& fields = command.options.fields;
    if (std::none_of(fields.begin(), fields.end(),
                     [&](const Field& field) { return known(field, variation.option); }))
      throw Error(
          "--vary",
          fmt::format("ch {} has no option '{}'", command.name, printable(variation.option)),
          suggestion(variation.option, command.options.names()));
  }
  for (size_t varied = 0; varied < std::max<size_t>(1, variations.size()); ++varied) {
    const size_t values = variations.empty() ? 1 : variations[varied].values.size();
    // The first values of all are tried once.
    for (size_t value = varied == 0 ? 0 : 1; value < values; ++value) {
      std::vector<std::string> words = rest;
      for (size_t i = 0; i < variations.size(); ++i)
        for (const std::string& word :
             words_for(variations[i], variations[i].values[i == varied ? value : 0]))
          words.push_back(word);
      check_run(command, words);
    }
  }
}

std::string default_name(const std::string& command, const std::vector<std::string>& rest) {
  std::vector<std::string> words = {"sweep", command};
  for (const std::string& word : rest) {
    if (starts_with(word, "-")) break;
    words.push_back(replace_all(fs::path(word).stem().string(), " ", "-"));
  }
  return join(words, "_");
}

// Nothing but folders and the beginning of its first state file: what a sweep leaves that is killed
// before it has written anything.
bool holds_no_file(const std::string& folder) {
  std::error_code failure;
  fs::recursive_directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure))
    if (!entry->is_directory(failure) &&
        !starts_with(entry->path().filename().string(), "sweep.json.tmp-"))
      return false;
  return !failure;
}

// The sweep's folder: the first of NAME, NAME_2, ... that is free or holds this very sweep.
std::string sweep_folder(const std::string& parent, const std::string& name,
                         const std::vector<std::string>& base) {
  for (int number = 1;; ++number) {
    const std::string folder =
        parent + "/" + name + (number == 1 ? "" : fmt::format("_{}", number));
    const std::string state = folder + "/sweep.json";
    if (!fs::exists(folder) || holds_no_file(folder)) return folder;
    if (fs::exists(state) && read_json(state)["base"] == Value::of(base)) return folder;
  }
}

std::string last_line(const std::string& path) {
  std::error_code failure;
  if (!fs::exists(path, failure)) return "";
  std::string last;
  for (const std::string& line : split(read_text_file(path), '\n'))
    if (!strip(line).empty()) last = strip(line);
  return printable(last).substr(0, 300);
}

struct Sweep {
  std::string folder, runs_folder;
  std::vector<std::string> base;
  std::vector<SweepRun> runs;
  size_t jobs = 1;

  std::string log_of(const SweepRun& run) const { return folder + "/logs/" + run.name + ".log"; }
  std::string folder_of(const SweepRun& run) const { return runs_folder + "/" + run.name; }
  void save() const {
    write_file_atomically(folder + "/sweep.json", to_json(sweep_state(runs, base), 1) + "\n");
  }
};

void note_end(Sweep& sweep, const ChildProcesses::End& end, bool stopping) {
  SweepRun& run = sweep.runs[end.key];
  run.seconds = end.seconds;
  const std::string folder = sweep.folder_of(run);
  const bool is_own = is_run_folder(folder) && is_of_command(read_run_outline(folder), run.words);
  const RunData data = is_own ? read_run_outline(folder) : RunData();
  const Value& status = data.run["status"];
  const std::string said = status.is_string() ? status.as_string() : "";
  // A diverged run is a result like any other.
  if (said == "diverged" || (end.exit_code == 0 && said == "finished")) {
    run.status = "finished";
    run.cause.clear();
  } else if (stopping || said == "interrupted") {
    run.status = "interrupted";
  } else {
    run.status = "failed";
    const std::string last = last_line(sweep.log_of(run));
    run.cause =
        end.exit_code == 0
            ? fmt::format("its folder says '{}'", said.empty() ? "nothing" : said)
            : fmt::format("exit code {}{}{}", end.exit_code, last.empty() ? "" : ": ", last);
  }
  size_t done = 0;
  for (const SweepRun& one : sweep.runs) done += one.status == "finished" || one.status == "failed";
  std::string result = run.status == "finished" ? "" : run.status;
  const Value& best = data.run["best"];
  if (run.status == "finished" && best.is_dict() && best["val_acc_epoch"].is_number())
    result = "val_acc " + figure_text(best["val_acc_epoch"].as_double());
  if (run.status == "finished" && data.run["test_acc_epoch"].is_number())
    result += fmt::format("{}test_acc {}", result.empty() ? "" : "  ",
                          figure_text(data.run["test_acc_epoch"].as_double()));
  if (said == "diverged") result = "diverged";
  if (run.status == "failed") result += ": " + run.cause;
  fmt::print("[{}/{}] {}  {}  {:.1f} s\n", done, sweep.runs.size(), run.name, result, run.seconds);
  std::fflush(stdout);
}

// True if everything was run, false if the user asked to stop.
bool run_all(Sweep& sweep) {
  catch_interrupts();
  ChildProcesses children;
  size_t next = 0;
  bool stopping = false, waiting = false;
  while (true) {
    if (interrupted() && !stopping) {
      stopping = true;
      children.interrupt();
      fmt::print("Stopping {} runs; Ctrl-C again ends at once.\n", children.running());
      std::fflush(stdout);
    }
    while (!stopping && children.running() < sweep.jobs && next < sweep.runs.size()) {
      SweepRun& run = sweep.runs[next];
      if (run.status != "finished") {
        const bool started = children.start(next, run.words, sweep.log_of(run), [&] {
          std::error_code ignored;
          fs::remove_all(sweep.folder_of(run), ignored);  // what an earlier attempt left
        });
        if (!started) {  // a child of a sweep that was killed is still writing
          if (!waiting)
            fmt::print("Waiting for {}, which an earlier sweep left running\n", run.name);
          std::fflush(stdout);
          waiting = true;
          break;
        }
        waiting = false;
      }
      ++next;
    }
    ChildProcesses::End end;
    if (children.ended(end)) {
      note_end(sweep, end, stopping);
      sweep.save();
      continue;
    }
    if (children.running() == 0 && (stopping || next == sweep.runs.size())) return !stopping;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Options of which no value made a difference to any run, to the last digit.
std::vector<std::string> options_without_effect(const std::vector<SweepResult>& results) {
  const auto figures = [](const RunData& data) {
    std::vector<std::string> found;
    const Value& best = data.run["best"];
    if (best.is_dict())
      for (const auto& [name, value] : best.as_dict()) found.push_back(name + to_json(value));
    found.push_back(to_json(data.run["test_acc_epoch"]) + to_json(data.run["test_loss_epoch"]));
    return join(found, " ");
  };
  std::vector<std::string> without;
  if (results.empty()) return without;
  for (size_t option = 0; option < results[0].run->settings.size(); ++option) {
    std::map<std::vector<std::string>, std::set<std::string>> by_others;
    bool compared = false;
    std::map<std::vector<std::string>, std::set<std::string>> values;
    for (const SweepResult& result : results) {
      if (!result.data) continue;
      std::vector<std::string> others;
      for (size_t i = 0; i < result.run->settings.size(); ++i)
        if (i != option) others.push_back(result.run->settings[i].second);
      by_others[others].insert(figures(*result.data));
      values[others].insert(result.run->settings[option].second);
      compared = compared || values[others].size() > 1;
    }
    const bool differs = std::any_of(by_others.begin(), by_others.end(),
                                     [](const auto& one) { return one.second.size() > 1; });
    if (compared && !differs) without.push_back(results[0].run->settings[option].first);
  }
  return without;
}

void conclude(const Sweep& sweep, const std::string& title) {
  std::vector<SweepResult> results;
  std::vector<RunData> finished;
  FailedRuns failed;
  for (const SweepRun& run : sweep.runs) {
    SweepResult result{&run, {}};
    if (run.status == "finished" && is_run_folder(sweep.folder_of(run))) {
      result.data = read_run_leniently(sweep.folder_of(run));
      finished.push_back(*result.data);
    } else {
      failed.emplace_back(run.name, run.cause.empty() ? run.status : run.cause);
    }
    results.push_back(std::move(result));
  }
  write_file_atomically(sweep.folder + "/results.csv", sweep_csv(results));
  fmt::print("\n{}Accuracies and losses are those of each run's best epoch.\n\n",
             sweep_table(results));
  for (const std::string& name : options_without_effect(results))
    fmt::print(
        "{}: its values give the same results to the last digit: it changes nothing here\n\n",
        printable(name));
  fmt::print("{}\n", printable(sweep.folder + "/results.csv"));
  if (finished.empty()) return;
  PageContent content = runs_content(finished, failed);
  content.frame.generator = fmt::format("ch {}", program_version());
  content.frame.title = title;
  const std::string page = page_html(content.frame, content.parts);
  write_file_atomically(sweep.folder + "/comparison.html", page);
  fmt::print("{}\n", printable(sweep.folder + "/comparison.html"));
}

int run(const Arguments& arguments) {
  if (arguments["command"].is_null())
    throw Error("ch sweep", "there is no command to run",
                "name it and what to vary: ch sweep train jsc-tiny jsc --vary "
                "learning_rate=1e-2,1e-3");
  const std::string name = arguments["command"].as_string();
  const bool network =
      Registry<ModelRecord>::instance().find(name) || std::filesystem::exists(name);
  if (!Registry<CommandRecord>::instance().find(name) && network)
    throw Error("ch sweep", fmt::format("'{}' is a network, not a command", printable(name)),
                fmt::format("name the command first: ch sweep train {} ...", printable(name)));
  const CommandRecord& command = Registry<CommandRecord>::instance().get(name);
  if (!command.options.find("project") || !command.options.find("project_dir"))
    throw Error("ch sweep", fmt::format("ch {} leaves no run folder to compare", name),
                "sweep over ch train");
  std::vector<Variation> variations;
  if (!arguments["vary"].is_null())
    for (const std::string& text : arguments["vary"].as_string_list())
      variations.push_back(parse_variation(text));
  for (size_t i = 0; i < variations.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (variations[i].option == variations[j].option)
        throw Error("--vary", fmt::format("'{}' is given twice", variations[i].option));
  std::optional<int64_t> seeds;
  if (arguments["seeds"].is_int()) seeds = arguments["seeds"].as_int();
  for (const Variation& variation : variations)
    if (variation.option == "seed" && seeds)
      throw Error("--seeds", "the seed is varied already",
                  "give --seeds or --vary seed=..., not both");
  if (variations.empty() && !seeds)
    throw Error("ch sweep", "nothing is varied, so there is nothing to compare",
                "add --vary, such as --vary learning_rate=1e-2,1e-3, or --seeds 3");
  check_runs(command, arguments.rest, variations);

  Sweep sweep;
  sweep.base = {name};
  sweep.base.insert(sweep.base.end(), arguments.rest.begin(), arguments.rest.end());
  const std::string project = arguments["project"].is_string() ? arguments["project"].as_string()
                                                               : default_name(name, arguments.rest);
  sweep.folder = sweep_folder(arguments["project_dir"].as_string(), project, sweep.base);
  sweep.runs_folder = sweep.folder + "/runs";
  make_directories(sweep.runs_folder);
  make_directories(sweep.folder + "/logs");
  // Two sweeps at once in one folder would start every run twice.
  const std::shared_ptr<const void> lock = try_lock_folder(sweep.folder);
  if (!lock)
    throw Error(sweep.folder, "another sweep is running here",
                "wait for it, or give another --project");
  sweep.runs =
      sweep_grid(sweep.base, variations, seeds,
                 parse_integer(forwarded(arguments.rest, "--seed").value_or("0")).value_or(0),
                 sweep.runs_folder);
  const std::string state = sweep.folder + "/sweep.json";
  if (fs::exists(state)) take_over_state(sweep.runs, read_json(state), sweep.runs_folder);
  sweep.jobs = std::max(1u, std::thread::hardware_concurrency());
  if (arguments["jobs"].is_int()) sweep.jobs = static_cast<size_t>(arguments["jobs"].as_int());
  sweep.save();

  const auto done = static_cast<size_t>(
      std::count_if(sweep.runs.begin(), sweep.runs.end(),
                    [](const SweepRun& one) { return one.status == "finished"; }));
  fmt::print("{} runs in {}{}, {} at a time\n", sweep.runs.size(), printable(sweep.folder),
             done ? fmt::format(" ({} of them done before)", done) : "", sweep.jobs);
  std::fflush(stdout);
  if (!run_all(sweep)) {
    fmt::print("Interrupted. The same command goes on with the runs that are left.\n");
    return 130;
  }
  conclude(sweep, project);
  return std::any_of(sweep.runs.begin(), sweep.runs.end(),
                     [](const SweepRun& one) { return one.status == "failed"; })
             ? 1
             : 0;
}

const Register<CommandRecord> registered{{
    .name = "sweep",
    .group = CommandGroup::train,
    .summary = "run a grid of settings and compare the results",
    .help =
        "Everything ch sweep does not know goes to the command that is swept over. Runs go on in "
        "parallel, one thread each; finished ones are not run again when the same sweep is started "
        "again or extended. A key with dots is one of the configuration: passes.quantize.... At "
        "the "
        "end there are a table, results.csv and comparison.html; figures are named by their rows: "
        "val_ of validation, test_ of test rows.",
    .positionals = {{.name = "command", .help = "the command to run: train", .required = false}},
    .options =
        {{{.name = "vary",
           .type = FieldType::list,
           .help = "option=value,value,...; may be repeated, every combination is run"},
          {.name = "seeds",
           .type = FieldType::integer,
           .help = "run every setting with so many seeds",
           .minimum = 1,
           .maximum = 10000},
          {.name = "jobs",
           .type = FieldType::integer,
           .help = "runs at a time (default: one per core)",
           .minimum = 1,
           .maximum = 1024},
          {.name = "project_dir",
           .type = FieldType::text,
           .default_value = "mase_output",
           .help = "where the sweep's folder goes"},
          {.name = "project", .type = FieldType::text, .help = "name of the sweep's folder"}}},
    .examples = {"ch sweep train jsc-tiny jsc --vary learning_rate=1e-2,1e-3",
                 "ch sweep train jsc-toy jsc --vary batch_size=64,256,1024 "
                 "--vary learning_rate=1e-2,1e-3,1e-5 --seeds 3 --max-epochs 10",
                 "ch sweep train --config configs/examples/jsc_toy_by_type.toml "
                 "--vary passes.quantize.linear.config.weight_width=4,6,8 --max-epochs 2"},
    .forwards = true,
    .run = run,
}};

}  // namespace
}  // namespace mase::sweep_command
