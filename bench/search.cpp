// SPDX-License-Identifier: Apache-2.0
// Benchmarks of the search.
//   bench_search quality FOLDER [SEEDS [SAMPLER KEY=VALUE ...]]
//     what samplers reach on tables (FOLDER/tables.json, *.csv.gz) and on ZDT1-3 and DTLZ2, medians
//     (and means) over seeds; one sampler with these options; problem=TEXT: those with it in their
//     names, objectives=N: those with so many
//   bench_search coco PYTHON SCRIPT [SEEDS [SAMPLER KEY=VALUE ...]]
//     the same on functions of COCO, which SCRIPT (bench/search_coco.py) computes
//   bench_search overhead [SAMPLER [OBJECTIVES]]
//     milliseconds of processor time for one more trial with n trials in the study
//   bench_search ptq [ROWS [CHECKPOINT]]
//     configurations/s of an exhaustive search over number formats of jsc-10x (with its initial
//     weights, unless a checkpoint is given), beside the same
//     configurations made and measured one by one by the passes of ch transform
//   bench_search storage ADDRESS PROCESSES TRIALS [SAMPLER [MICROSECONDS]]
//     trials/s that so many processes make in one study of ten parameters, measuring nothing, or
//     waiting so long in each trial
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <thread>
#include <unordered_map>

#include "mase/base/text.h"
#include "mase/run/search/search_experiment.h"
#include "mase/search/storages/storage.h"
#include "mase/search/study/pareto.h"
#include "mase/search/study/study.h"

namespace mase::search {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of all threads of this process: a busy machine changes it little.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Losses, less is better.
struct Problem {
  std::string name;
  Space space;
  size_t objectives = 1;
  Losses reference = {};
  std::vector<int64_t> budgets;
  std::function<Losses(const Point& point)> losses;
};

std::string unpacked(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw Error(path, "cannot be opened");
  std::string text;
  char buffer[65536];
  for (int got = 0; (got = gzread(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  gzclose(file);
  return text;
}

// Lists of numbers with more than two entries are whole numbers 0..k-1, others choices.
std::vector<Problem> table_problems(const std::string& folder) {
  std::vector<Problem> problems;
  const Value tables = read_json(folder + "/tables.json");
  for (const auto& [name, table] : tables.as_dict()) {
    Space space;
    for (const auto& [parameter, values] : table["parameters"].as_dict()) {
      const List& list = values.as_list();
      const bool ordinal = list.size() > 2 && list[0].is_number();
      const auto last = static_cast<double>(list.size()) - 1;
      List indices;
      for (size_t i = 0; i < list.size(); ++i) indices.emplace_back(i);
      space.add({parameter, ordinal ? Distribution::integer(0, last)
                                    : Distribution::categorical(indices, parameter)});
    }
    const size_t dimensions = space.dimensions();
    const auto rows = std::make_shared<std::map<Point, std::vector<double>>>();
    const std::vector<std::string> lines = split(unpacked(folder + "/" + name + ".csv.gz"), '\n');
    const std::vector<std::string> header = split(lines[0], ',');
    for (size_t i = 1; i < lines.size(); ++i) {
      if (strip(lines[i]).empty()) continue;
      std::vector<double> numbers;
      for (const std::string& cell : split(lines[i], ','))
        numbers.push_back(parse_number(strip(cell)).value_or(std::nan("")));
      const auto middle = numbers.begin() + static_cast<int64_t>(dimensions);
      (*rows)[Point(numbers.begin(), middle)] = std::vector<double>(middle, numbers.end());
    }
    const auto column = [&, header = header](const std::string& metric) {
      const std::string plain = starts_with(metric, "-") ? metric.substr(1) : metric;
      for (size_t c = dimensions; c < header.size(); ++c)
        if (strip(header[c]) == plain) return c - dimensions;
      throw Error(folder, fmt::format("no column '{}'", plain));
    };
    const std::string main = table["main"].as_string();
    const bool maximise = table["direction"].as_string() == "maximize";
    const size_t at = column(main);
    problems.push_back(
        {name, space, 1, {}, {50, 100, 200}, [rows, at, maximise](const Point& point) -> Losses {
           const double value = rows->at(point)[at];
           return {maximise ? -value : value};
         }});
    const Value& pareto = table["pareto"];
    if (!pareto.is_dict()) continue;
    std::vector<std::pair<size_t, double>> columns;
    for (const Value& one : pareto["minimised"].as_list())
      columns.emplace_back(column(one.as_string()), starts_with(one.as_string(), "-") ? -1 : 1);
    Losses reference;
    for (const char* key : {"reference", "reference_point", "ref"})
      if (pareto[key].is_list())
        for (const Value& one : pareto[key].as_list()) reference.push_back(one.as_double());
    problems.push_back({name + "_2obj",
                        space,
                        2,
                        reference,
                        {50, 100, 150, 200, 300, 500, 1000},
                        [rows, columns](const Point& point) {
                          Losses losses;
                          for (const auto& [c, sign] : columns)
                            losses.push_back(sign * rows->at(point)[c]);
                          return losses;
                        }});
  }
  return problems;
}

Space unit_cube(int dimensions) {
  Space space;
  for (int i = 0; i < dimensions; ++i) space.add({fmt::format("x{}", i), Distribution::real(0, 1)});
  return space;
}

std::vector<Problem> function_problems() {
  std::vector<Problem> problems;
  const auto zdt = [](int kind) {
    return [kind](const Point& x) -> Losses {
      double sum = 0;
      for (size_t i = 1; i < x.size(); ++i) sum += x[i];
      const double g = 1 + 9 * sum / static_cast<double>(x.size() - 1), f = x[0];
      double h = 1 - std::sqrt(f / g);
      if (kind == 2) h = 1 - f / g * (f / g);
      if (kind == 3) h -= f / g * std::sin(10 * std::numbers::pi * f);
      return {f, g * h};
    };
  };
  for (const int kind : {1, 2, 3})
    problems.push_back({fmt::format("zdt{}_d10", kind),
                        unit_cube(10),
                        2,
                        {11, 11},
                        {50, 100, 150, 200, 300, 500, 1000},
                        zdt(kind)});
  problems.push_back({"dtlz2_d7_m3",
                      unit_cube(7),
                      3,
                      {2.5, 2.5, 2.5},
                      {50, 100, 150, 200, 300, 500, 1000},
                      [](const Point& x) -> Losses {
                        double g = 0;
                        for (size_t i = 2; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
                        const double a = x[0] * std::numbers::pi / 2,
                                     b = x[1] * std::numbers::pi / 2;
                        return {(1 + g) * std::cos(a) * std::cos(b),
                                (1 + g) * std::cos(a) * std::sin(b), (1 + g) * std::sin(a)};
                      }});
  return problems;
}

std::unique_ptr<Sampler> sampler_of(const SamplerRecord& record, const SamplerSetup& setup,
                                    const Value& options = Dict{}) {
  if (record.refuses && record.refuses(setup)) return {};
  return record.make(validate(options, record.schema, record.name), setup);
}

// What is reached at each budget with one seed.
std::vector<double> reached(const Problem& problem, const SamplerRecord& record,
                            const Value& sampler_options, uint64_t seed,
                            const std::vector<int64_t>& budgets) {
  StudyOptions options;
  options.seed = seed;
  options.trials = budgets.back();
  const Space space = problem.space;
  Study study(Trials(problem.space, std::vector<bool>(problem.objectives, false)),
              sampler_of(record, {&space, problem.objectives, options.trials}, sampler_options),
              nullptr, nullptr, options);
  study.run({Objective([&](const Point& point, const Report&) {
    Measurement result;
    result.values = problem.losses(point);
    return result;
  })});
  std::vector<double> figures;
  std::vector<Losses> front;
  double best = std::numeric_limits<double>::infinity();
  size_t next = 0;
  for (size_t i = 0; i < study.trials().size(); ++i) {
    const Losses& losses = study.trials()[i].values;
    best = std::min(best, losses[0]);
    front.push_back(losses);
    if (next < budgets.size() && static_cast<int64_t>(i) + 1 == budgets[next]) {
      ++next;
      figures.push_back(problem.objectives == 1 ? best : hypervolume(front, problem.reference));
    }
  }
  figures.resize(budgets.size(),
                 figures.empty() ? best : figures.back());  // the space is exhausted
  return figures;
}

// Another program that answers a line with a line.
class Companion {
 public:
  Companion(const char* program, const char* script) {
    int there[2], back[2];
    if (::pipe(there) != 0 || ::pipe(back) != 0) throw Error(program, "no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(there[0], 0);
      ::dup2(back[1], 1);
      for (const int end : {there[0], there[1], back[0], back[1]}) ::close(end);
      ::execl(program, program, script, nullptr);
      std::_Exit(127);
    }
    ::close(there[0]);
    ::close(back[1]);
    to_ = ::fdopen(there[1], "w");
    from_ = ::fdopen(back[0], "r");
  }
  ~Companion() {
    std::fclose(to_);
    std::fclose(from_);
    ::waitpid(child_, nullptr, 0);
  }
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  std::vector<double> ask(const std::string& line) {
    std::fputs((line + "\n").c_str(), to_);
    std::fflush(to_);
    char answer[4096];
    if (!std::fgets(answer, sizeof answer, from_)) throw Error("coco", "does not answer");
    std::vector<double> numbers;
    for (const std::string& word : split(strip(answer), ' '))
      numbers.push_back(parse_number(word).value_or(std::nan("")));
    return numbers;
  }

 private:
  pid_t child_ = 0;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

std::vector<Problem> coco_problems(const std::shared_ptr<Companion>& coco) {
  std::vector<Problem> problems;
  for (const auto& [suite, dimensions, functions] :
       {std::tuple("bbob", 5, std::vector<int>{1, 8, 15, 21}),
        std::tuple("bbob-mixint", 10, std::vector<int>{1, 8, 15})})
    for (const int function : functions) {
      const std::string name = fmt::format("{} {} {}", suite, function, dimensions);
      Space space;
      const std::vector<double> ranges = coco->ask(name);
      for (size_t i = 0; i + 2 < ranges.size(); i += 3)
        space.add({fmt::format("x{}", i / 3), ranges[i + 2] > 0
                                                  ? Distribution::integer(ranges[i], ranges[i + 1])
                                                  : Distribution::real(ranges[i], ranges[i + 1])});
      problems.push_back({fmt::format("{}_f{}_d{}", suite, function, dimensions),
                          space,
                          1,
                          {},
                          {50, 100, 200},
                          [coco, name](const Point& point) -> Losses {
                            // One function at a time: the first question after another's says
                            // which.
                            static std::string current;
                            if (current != name) coco->ask(current = name);
                            std::string line;
                            for (const double x : point) line += fmt::format("{} ", x);
                            return coco->ask(line);
                          }});
    }
  return problems;
}

void quality(std::vector<Problem> problems, int seeds, const std::string& only, Dict options) {
  const Value* named = options.find("problem");
  const std::string part = named ? named->as_string() : "";
  options.erase("problem");
  const Value* wanted = options.find("objectives");
  const size_t objectives = wanted ? static_cast<size_t>(wanted->as_int()) : 0;
  options.erase("objectives");
  for (const Problem& problem : problems) {
    if (problem.name.find(part) == std::string::npos) continue;
    if (objectives > 0 && problem.objectives != objectives) continue;
    for (const char* name : {"random", "qmc", "tpe", "gp", "cmaes", "nsgaii", "nsgaiii"}) {
      const std::string sampler = name;
      const bool genetic = sampler == "nsgaii" || sampler == "nsgaiii";
      if (!only.empty() && sampler != only) continue;
      if (problem.objectives == 1 ? genetic : sampler == "qmc" || sampler == "cmaes") continue;
      std::vector<int64_t> budgets = problem.budgets;
      int runs = seeds;
      if ((sampler == "tpe" || sampler == "gp") && problem.objectives > 1)
        budgets = {50, 100, 150, 200, 300};
      const SamplerRecord& record = find_sampler(sampler, "");
      if (!sampler_of(record, {&problem.space, problem.objectives, budgets.back()})) continue;
      const Clock::time_point start = Clock::now();
      std::vector<std::vector<double>> all(budgets.size());
      for (int seed = 0; seed < runs; ++seed) {
        const std::vector<double> figures =
            reached(problem, record, options, static_cast<uint64_t>(seed), budgets);
        for (size_t b = 0; b < budgets.size(); ++b) all[b].push_back(figures[b]);
      }
      fmt::print("{:<30} {:<8} seeds {:>2} ", problem.name, sampler, runs);
      for (size_t b = 0; b < budgets.size(); ++b)
        fmt::print(" {}: {:.6g} ({:.6g})", budgets[b], median(all[b]), mean(all[b]));
      fmt::print("   {:.1f} s\n", seconds_since(start));
      std::fflush(stdout);
    }
  }
}

void overhead(const std::string& only, size_t only_objectives) {
  for (const int dimensions : {10, 50})
    for (const auto& [name, objectives] :
         {std::pair("random", size_t{1}), std::pair("tpe", size_t{1}), std::pair("tpe", size_t{2}),
          std::pair("nsgaii", size_t{2})}) {
      if (!only.empty() && (name != only || objectives != only_objectives)) continue;
      Space space;
      for (int i = 0; i < dimensions; ++i)
        space.add({fmt::format("x{}", i), Distribution::real(0, 1)});
      const SamplerSetup setup{&space, objectives, 10100};
      const SamplerRecord& record = find_sampler(name, "");
      const auto sampler = sampler_of(record, setup);
      Trials trials(space, std::vector<bool>(objectives, false));
      std::vector<double> spent;
      fmt::print("{:<8} {} objective(s) {:>2} parameters:", name, objectives, dimensions);
      for (int64_t n = 0; n < 10100; ++n) {
        const double start = processor_seconds();
        Suggestion suggestion =
            sampler->suggest(trials, {.seed = 1, .number = n, .visible = static_cast<size_t>(n)});
        Trial trial;
        trial.point = std::move(suggestion.point);
        trial.system_attributes = std::move(suggestion.system_attributes);
        trial.state = TrialState::complete;
        double sum = 0, other = 0;
        for (size_t i = 0; i < trial.point.size(); ++i) {
          sum += (trial.point[i] - 0.3) * (trial.point[i] - 0.3);
          other += (trial.point[i] - 0.7) * (trial.point[i] - 0.7);
        }
        trial.values = {sum};
        if (objectives > 1) trial.values.push_back(other);
        trials.add(std::move(trial));
        spent.push_back(1e3 * (processor_seconds() - start));
        for (const int64_t mark : {100, 1000, 10000})
          if (n == mark + 99)
            fmt::print("  n = {}: {:.4f} ms", mark, median({spent.end() - 100, spent.end()}));
      }
      fmt::print("\n");
      std::fflush(stdout);
    }
}

// Of the first rows, by the network alone.
double plain_accuracy(const Graph& network, const Dataset& dataset, int64_t rows) {
  CompileOptions options;
  options.batch_size = 1000;
  options.loss = loss_for(dataset);
  Program program = Program::compile(network, options);
  const Tensor logits = predict_rows(program, dataset.validation);
  const int64_t classes = logits.shape().back();
  const float* values = logits.data<float>();
  const int32_t* labels = dataset.validation.labels.data<int32_t>();
  int64_t right = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = values + i * classes;
    right += std::max_element(row, row + classes) - row == labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(rows);
}

void ptq(int64_t rows, const std::string& checkpoint) {
  Dict given{{"model", "jsc-10x"}, {"dataset", "jsc-sim"}, {"val_split", "0.25"}, {"seed", 0}};
  if (!checkpoint.empty()) given.set("load", checkpoint);
  const Settings settings = experiment_settings(Value(given));
  Experiment experiment(experiment_spec(settings));
  experiment.prepare();
  List widths;
  for (int w = 1; w <= 8; ++w) widths.emplace_back(w);
  const List half = {Value("NA")};
  SearchSpec spec;
  spec.space = Registry<SpaceRecord>::instance().find("graph/quantize/mixed_precision_ptq");
  spec.by = "type";
  spec.seed = Dict{{"default", Dict{{"config", Dict{{"name", List{Value("NA")}}}}}},
                   {"linear", Dict{{"config", Dict{{"name", List{Value("integer")}},
                                                   {"data_in_width", widths},
                                                   {"data_in_frac_width", half},
                                                   {"weight_width", widths},
                                                   {"weight_frac_width", half},
                                                   {"bias_width", List{Value(8)}},
                                                   {"bias_frac_width", half}}}}}};
  SearchMetric accuracy, bitops;
  accuracy.name = "accuracy";
  accuracy.maximise = true;
  bitops.name = "bitops";
  bitops.maximise = false;
  spec.metrics = {accuracy, bitops};
  spec.sampler = &find_sampler("brute-force", "");
  spec.rows = rows;
  spec.study.jobs = 2;
  SearchExperiment search(experiment, spec);
  const Clock::time_point start = Clock::now();
  const double spent_before = processor_seconds();
  search.run(nullptr, "ptq", {});
  const double seconds = seconds_since(start), spent = processor_seconds() - spent_before;
  const auto count = static_cast<double>(search.trials().size());
  fmt::print(
      "{:.0f} configurations on {} rows, {} threads: {:.1f} s, {:.0f} configurations/s; {:.1f} s "
      "of "
      "processor time\n",
      count, search.rows(), spec.study.jobs, seconds, count / seconds, spent);
  std::fflush(stdout);
  constexpr int repeats = 64;
  double slow = 0, slow_spent = 0;
  int equal = 0;
  for (int i = 0; i < repeats; ++i) {
    ExperimentSpec one = experiment_spec(settings);
    const auto number = static_cast<int64_t>(count) / repeats * i;
    equal += plain_accuracy(*search.network(number), *experiment.dataset(), search.rows()) ==
             search.trials()[static_cast<size_t>(number)].values[0];
    const Value file = search.configuration(number);
    one.passes.calls = pass_calls(file["passes"], "passes");
    Experiment transformed(std::move(one));
    transformed.prepare();  // data come from the cache
    const Clock::time_point begin = Clock::now();
    const double before = processor_seconds();
    const Value record = transformed.transform().record;
    slow += seconds_since(begin);
    slow_spent += processor_seconds() - before;
  }
  fmt::print(
      "ch transform in process: {:.2f} ms a configuration, {:.2f} ms of processor time; {:.0f} "
      "times "
      "by the clock, {:.0f} times by processor time\n",
      1e3 * slow / repeats, 1e3 * slow_spent / repeats, slow / repeats * count / seconds,
      slow_spent / repeats * count / spent);
  fmt::print(
      "{} of these {} networks, run row by row, have the accuracy of the search to the bit\n",
      equal, repeats);
}

// KEY=VALUE, numbers and true or false as such.
Dict options_of(int count, char** words, int first) {
  Dict options;
  for (int i = first; i < count; ++i) {
    const std::string word = words[i], value = word.substr(word.find('=') + 1);
    const auto whole = parse_integer(value);
    const auto number = parse_number(value);
    options.set(word.substr(0, word.find('=')), whole             ? Value(*whole)
                                                : number          ? Value(*number)
                                                : value == "true" ? Value(true)
                                                                  : Value(value));
  }
  return options;
}

void storage(const std::string& address, int processes, int64_t trials, const std::string& name,
             std::chrono::microseconds pause) {
  Space space;
  for (int i = 0; i < 10; ++i) space.add({fmt::format("x{}", i), Distribution::real(0, 1)});
  const SamplerRecord& record = find_sampler(name, "");
  const std::string study =
      fmt::format("bench {} {} {}", name, processes, Clock::now().time_since_epoch().count());
  open_storage(address)->open_study({study, {false}, {}});
  const Clock::time_point start = Clock::now();
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::unique_ptr<Storage> own = open_storage(address);
      own->open_study({study, {false}, {}});
      StudyOptions options;
      options.trials = trials;
      options.window = processes > 1 ? 16 : 1;
      options.independent = record.independent;
      Study loop(Trials(space, {false}, study), sampler_of(record, {&space, 1, trials}), nullptr,
                 own.get(), options);
      loop.run({Objective([pause](const Point& point, const Report&) {
        if (pause.count() > 0) std::this_thread::sleep_for(pause);
        Measurement result;
        double sum = 0;
        for (const double x : point) sum += (x - 0.3) * (x - 0.3);
        result.values = {sum};
        return result;
      })});
      std::_Exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  const double seconds = seconds_since(start);
  const std::unique_ptr<Storage> reader = open_storage(address);
  reader->open_study({study, {false}, {}});
  const size_t count = reader->news(space).size();
  fmt::print("{} processes, {}: {} trials in {:.2f} s, {:.0f} trials/s\n", processes, name, count,
             seconds, static_cast<double>(count) / seconds);
}

}  // namespace
}  // namespace mase::search

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  try {
    if (mode == "quality" && count > 2) {
      std::vector<mase::search::Problem> problems = mase::search::function_problems();
      if (std::string(words[2]) != "-")
        for (mase::search::Problem& one : mase::search::table_problems(words[2]))
          problems.push_back(std::move(one));
      mase::search::quality(std::move(problems), count > 3 ? std::stoi(words[3]) : 30,
                            count > 4 ? words[4] : "", mase::search::options_of(count, words, 5));
    } else if (mode == "coco" && count > 3) {
      mase::search::quality(mase::search::coco_problems(
                                std::make_shared<mase::search::Companion>(words[2], words[3])),
                            count > 4 ? std::stoi(words[4]) : 30, count > 5 ? words[5] : "",
                            mase::search::options_of(count, words, 6));
    } else if (mode == "overhead")
      mase::search::overhead(count > 2 ? words[2] : "", count > 3 ? std::stoul(words[3]) : 1);
    else if (mode == "storage" && count > 4)
      mase::search::storage(words[2], std::stoi(words[3]), std::stoll(words[4]),
                            count > 5 ? words[5] : "tpe",
                            std::chrono::microseconds(count > 6 ? std::stoll(words[6]) : 0));
    else if (mode == "ptq")
      mase::search::ptq(count > 2 ? std::stoll(words[2]) : 20000, count > 3 ? words[3] : "");
    else
      fmt::print(
          "usage: bench_search quality FOLDER [SEEDS [SAMPLER KEY=VALUE ...]] | coco PYTHON SCRIPT "
          "[SEEDS [SAMPLER KEY=VALUE ...]] | overhead [SAMPLER [OBJECTIVES]] | ptq [ROWS "
          "[CHECKPOINT]] | "
          "storage ADDRESS PROCESSES TRIALS [SAMPLER [MICROSECONDS]]\n");
  } catch (const std::exception& error) {
    fmt::print("bench_search: {}\n", error.what());
    return 1;
  }
  return 0;
}
