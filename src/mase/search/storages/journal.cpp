// SPDX-License-Identifier: Apache-2.0
// Optuna's journal: one line of JSON per operation, only ever appended to, under a lock file that
// works on network disks too.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "mase/base/file.h"
#include "mase/search/storages/file_lock.h"
#include "mase/search/storages/python_json.h"
#include "mase/search/storages/storage.h"

namespace mase::journal_storage {
namespace {

using namespace search;

enum Operation {
  create_study = 0,
  study_system_attribute = 3,
  create_trial = 4,
  set_parameter = 5,
  set_state = 6,
  set_intermediate = 7,
  trial_user_attribute = 8,
  trial_system_attribute = 9,
};

// Optuna numbers states in this order too.
int64_t state_number(TrialState state) { return static_cast<int64_t>(state); }

class JournalStorage final : public Storage {
 public:
  explicit JournalStorage(std::string path) : path_(std::move(path)) {
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    if (!folder.empty()) make_directories(folder);
    std::random_device device;
    worker_ =
        fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:08x}{:04x}-{}", device(), device() & 0xffff,
                    device() & 0xfff, device() & 0xfff, device(), device() & 0xffff, ::getpid());
  }

  ~JournalStorage() override {
    try {
      flush();
    } catch (...) {  // nobody to tell
    }
  }

  void open_study(const StudyHeader& header) override {
    const FileLock lock(path_);
    read_news();
    const auto found = studies_.find(header.name);
    if (found == studies_.end()) {
      study_ = study_count_;
      List directions;
      for (const bool maximise : header.maximise) directions.emplace_back(maximise ? 2 : 1);
      std::vector<Value> lines = {Dict{{"op_code", create_study},
                                       {"worker_id", worker_},
                                       {"study_name", header.name},
                                       {"directions", std::move(directions)}}};
      if (!header.metric_names.empty())
        lines.emplace_back(
            Dict{{"op_code", study_system_attribute},
                 {"worker_id", worker_},
                 {"study_id", study_},
                 {"system_attr", Dict{{"study:metric_names", Value::of(header.metric_names)}}}});
      append(lines);
      read_news();
      return;
    }
    study_ = found->second.id;
    if (found->second.maximise != header.maximise)
      throw Error(path_, fmt::format("study '{}' has other directions", printable(header.name)),
                  "give another --study");
  }

  std::vector<std::string> studies() override {
    const FileLock lock(path_);
    read_news();
    std::vector<std::string> names(static_cast<size_t>(study_count_));
    for (const auto& [name, study] : studies_) names[static_cast<size_t>(study.id)] = name;
    return names;
  }

  StoredStudy stored_study(const std::string& name) override {
    const FileLock lock(path_);
    read_news();
    const Study& study = studies_.at(name);
    StoredStudy result{{name, study.maximise}, {}};
    const Value* metrics = attributes_[study.id].find("study:metric_names");
    if (metrics && metrics->is_list())
      result.header.metric_names = metrics->as_string_list("study:metric_names");
    for (const Stored& stored : trials_) {
      if (stored.study != study.id) continue;
      result.trials.push_back({stored.trial, stored.parameters});
      Trial& trial = result.trials.back().trial;
      trial.constraints = constraints_of(trial.system_attributes);
      trial.stored = static_cast<int64_t>(result.trials.size()) - 1;
    }
    return result;
  }

  Dict said_first(const Dict& attributes) override {
    const FileLock lock(path_);
    read_news();
    std::vector<Value> lines;  // Optuna reads one attribute of each
    for (const auto& [key, value] : attributes)
      if (!attributes_[study_].contains(key))
        lines.emplace_back(Dict{{"op_code", study_system_attribute},
                                {"worker_id", worker_},
                                {"study_id", study_},
                                {"system_attr", Dict{{key, value}}}});
    if (!lines.empty()) append(lines);
    read_news();
    return attributes_[study_];
  }

  std::vector<Trial> news(const Space& space) override {
    flush();
    {
      const FileLock lock(path_);
      read_news();
    }
    std::vector<Trial> all;
    there_.clear();
    for (size_t id = 0; id < trials_.size(); ++id) {
      const Stored& stored = trials_[id];
      if (stored.study != study_) continue;
      there_.push_back(static_cast<int64_t>(id));
      Trial trial = stored.trial;
      place_in_space(space, stored.parameters, trial);
      trial.constraints = constraints_of(trial.system_attributes);
      trial.stored = static_cast<int64_t>(all.size());
      all.push_back(std::move(trial));
    }
    count_ = static_cast<int64_t>(all.size());
    return all;
  }

  // A finished trial is one line; what runs is not written: nobody could continue it.
  bool begin(const Space&, Trial& trial) override {
    if (trial.stored < 0) trial.stored = count_++;
    return true;
  }
  void report(const Trial&, int64_t, double) override {}

  void finish(const Space& space, const Trial& trial) override {
    if (trial.shown() < static_cast<int64_t>(there_.size()))
      change_lines(space, trial, there_[static_cast<size_t>(trial.shown())]);
    else
      create_line(space, trial);
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - last_write_;
    if (past.count() >= 0.5) flush();
  }

  void flush() override {
    last_write_ = std::chrono::steady_clock::now();
    if (lines_.empty()) return;
    const FileLock lock(path_);
    append(lines_);
    lines_.clear();
  }

 private:
  struct Study {
    int64_t id;
    std::vector<bool> maximise;
  };
  struct Stored {
    int64_t study;
    Trial trial;
    std::vector<StoredParameter> parameters;
  };

  // One that waited in the file: taken up, and ended.
  void change_lines(const Space& space, const Trial& trial, int64_t id) {
    if (!trial.finished()) return;  // it goes on waiting
    const auto add = [&](Operation operation, Dict fields) {
      Dict line{{"op_code", operation}, {"worker_id", worker_}, {"trial_id", id}};
      for (auto& [key, value] : fields) line.set(key, value);
      lines_.emplace_back(std::move(line));
    };
    add(set_state, {{"state", state_number(TrialState::running)},
                    {"values", Value()},
                    {"datetime_start", iso_time(trial.started, 'T') + "+00:00"}});
    std::set<std::string> given;
    for (const StoredParameter& parameter : trials_[static_cast<size_t>(id)].parameters)
      given.insert(parameter.name);
    for (size_t i = 0; i < trial.point.size(); ++i) {
      const Parameter& parameter = space.parameters()[i];
      if (!std::isnan(trial.point[i]) && !given.count(parameter.name))
        add(set_parameter, {{"param_name", parameter.name},
                            {"param_value_internal", trial.point[i]},
                            {"distribution", distribution_to_json(parameter.distribution)}});
    }
    for (const auto& [step, value] : trial.intermediate)
      add(set_intermediate, {{"step", step}, {"intermediate_value", value}});
    for (const auto& [key, value] : trial.user_attributes)
      add(trial_user_attribute, {{"user_attr", Dict{{key, value}}}});
    for (const auto& [key, value] : stored_attributes(trial))
      add(trial_system_attribute, {{"system_attr", Dict{{key, value}}}});
    List values;
    for (const double value : trial.values) values.emplace_back(value);
    add(set_state, {{"state", state_number(trial.state)},
                    {"values", values.empty() ? Value() : Value(std::move(values))},
                    {"datetime_complete", iso_time(trial.ended, 'T') + "+00:00"}});
  }

  void create_line(const Space& space, const Trial& trial) {
    Dict distributions, parameters, intermediate;
    for (size_t i = 0; i < trial.point.size(); ++i)
      if (!std::isnan(trial.point[i])) {
        const Parameter& parameter = space.parameters()[i];
        distributions.set(parameter.name, distribution_to_json(parameter.distribution));
        parameters.set(parameter.name, trial.point[i]);
      }
    for (const auto& [step, value] : trial.intermediate)
      intermediate.set(std::to_string(step), value);
    List values;
    for (const double value : trial.values) values.emplace_back(value);
    const bool one = trial.values.size() == 1;
    lines_.emplace_back(
        Dict{{"op_code", create_trial},
             {"worker_id", worker_},
             {"study_id", study_},
             {"datetime_start", iso_time(trial.started, 'T') + "+00:00"},
             {"datetime_complete", iso_time(trial.ended, 'T') + "+00:00"},
             {"state", state_number(trial.state)},
             {"value", one ? Value(trial.values[0]) : Value()},
             {"values", one || trial.values.empty() ? Value() : Value(std::move(values))},
             {"distributions", std::move(distributions)},
             {"params", std::move(parameters)},
             {"user_attrs", trial.user_attributes},
             {"system_attrs", stored_attributes(trial)},
             {"intermediate_values", std::move(intermediate)}});
  }

  void append(const std::vector<Value>& lines) {
    std::string text;
    for (const Value& line : lines) text += write_python_json(line) + "\n";
    const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) throw Error(path_, std::strerror(errno));
    try {
      write_all(fd, text.data(), text.size(), path_);
      if (::fsync(fd) != 0) throw Error(path_, std::strerror(errno));
    } catch (...) {
      ::close(fd);
      throw;
    }
    ::close(fd);
  }

  void read_news() {
    std::error_code none;
    if (!std::filesystem::exists(path_, none)) return;
    const std::string text = read_text_file(path_);
    while (read_ < text.size()) {
      const size_t end = text.find('\n', read_);
      if (end == std::string::npos) return;  // a line that is being written
      const std::string line = text.substr(read_, end - read_);
      read_ = end + 1;
      ++line_number_;
      if (!line.empty()) apply(parse_python_json(line, fmt::format("{}:{}", path_, line_number_)));
    }
  }

  void apply(const Value& line) {
    const int64_t operation = line["op_code"].as_int("op_code");
    if (operation == create_study) {
      std::vector<bool> maximise;
      for (const Value& direction : line["directions"].as_list())
        maximise.push_back(direction.as_int() == 2);
      studies_[line["study_name"].as_string()] = {study_count_++, std::move(maximise)};
    } else if (operation == study_system_attribute) {
      Dict& said = attributes_[line["study_id"].as_int("study_id")];
      for (const auto& [key, value] : line["system_attr"].as_dict("system_attr"))
        said.set(key, value);
    } else if (operation == create_trial) {
      make_trial(line);
    } else if (operation >= set_parameter && operation <= trial_system_attribute) {
      const auto key = static_cast<size_t>(line["trial_id"].as_int("trial_id"));
      // Nothing changes a finished trial; attributes of one that is not there are nobody's.
      if (key < trials_.size() && !trials_[key].trial.finished())
        change_trial(operation, line, trials_[key]);
    }
  }

  void make_trial(const Value& line) {
    Stored stored{line["study_id"].as_int("study_id"), {}, {}};
    Trial& trial = stored.trial;
    if (line["state"].is_int()) trial.state = state(line["state"]);
    if (line["value"].is_number()) trial.values = {line["value"].as_double()};
    if (line["values"].is_list())
      for (const Value& value : line["values"].as_list()) trial.values.push_back(value.as_double());
    if (line["datetime_start"].is_string())
      trial.started = parse_iso_time(line["datetime_start"].as_string());
    if (line["datetime_complete"].is_string())
      trial.ended = parse_iso_time(line["datetime_complete"].as_string());
    if (line["params"].is_dict())
      for (const auto& [name, value] : line["params"].as_dict())
        stored.parameters.push_back(
            {name, value.as_double(),
             distribution_from_json(line["distributions"][name].as_string(), path_)});
    if (line["user_attrs"].is_dict()) trial.user_attributes = line["user_attrs"].as_dict();
    if (line["system_attrs"].is_dict()) trial.system_attributes = line["system_attrs"].as_dict();
    if (line["intermediate_values"].is_dict())
      for (const auto& [step, value] : line["intermediate_values"].as_dict())
        trial.intermediate[parse_integer(step).value_or(0)] = value.as_double();
    trials_.push_back(std::move(stored));
  }

  void change_trial(int64_t operation, const Value& line, Stored& stored) const {
    Trial& trial = stored.trial;
    if (operation == set_parameter) {
      stored.parameters.push_back(
          {line["param_name"].as_string(), line["param_value_internal"].as_double(),
           distribution_from_json(line["distribution"].as_string(), path_)});
    } else if (operation == set_state) {
      trial.state = state(line["state"]);
      if (line["values"].is_list()) {
        trial.values.clear();
        for (const Value& value : line["values"].as_list())
          trial.values.push_back(value.as_double());
      }
      if (line["datetime_complete"].is_string())
        trial.ended = parse_iso_time(line["datetime_complete"].as_string());
    } else if (operation == set_intermediate) {
      trial.intermediate[line["step"].as_int()] = line["intermediate_value"].as_double();
    } else {
      const bool of_user = operation == trial_user_attribute;
      Dict& attributes = of_user ? trial.user_attributes : trial.system_attributes;
      for (const auto& [name, value] : line[of_user ? "user_attr" : "system_attr"].as_dict())
        attributes.set(name, value);
    }
  }

  TrialState state(const Value& number) const {
    const int64_t index = number.as_int("state");
    if (index < 0 || index > state_number(TrialState::waiting))
      throw Error(path_, fmt::format("has a trial in the unknown state {}", index));
    return static_cast<TrialState>(index);
  }

  std::string path_, worker_;
  size_t read_ = 0;
  int64_t line_number_ = 0, study_count_ = 0, study_ = 0;
  std::map<std::string, Study> studies_;
  std::map<int64_t, Dict> attributes_;  // of studies, by id
  std::vector<Stored> trials_;
  std::vector<int64_t> there_;  // ids of this study's trials in the file, by number
  int64_t count_ = 0;           // of this study's trials, those of this process too
  std::vector<Value> lines_;
  std::chrono::steady_clock::time_point last_write_ = std::chrono::steady_clock::now();
};

std::string file_of(const std::string& address) {
  return starts_with(address, "journal:") ? address.substr(8) : address;
}

const Register<StorageRecord> registered{{
    .name = "journal",
    .summary = "journal:FILE",
    .file = file_of,
    .takes =
        [](const std::string& address) {
          return starts_with(address, "journal:") || ends_with(address, ".log");
        },
    .open = [](const std::string& address) -> std::unique_ptr<Storage> {
      return std::make_unique<JournalStorage>(file_of(address));
    },
}};

}  // namespace
}  // namespace mase::journal_storage
