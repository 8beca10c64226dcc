// SPDX-License-Identifier: Apache-2.0
// Where the trials of a study are kept so that they outlive the process and others see them: in
// Optuna's formats, so that its dashboard opens them and its samplers continue them. A storage is
// one file in storages/ that registers one record.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mase/base/registry.h"
#include "mase/search/study/trial.h"

namespace mase::search {

struct StudyHeader {
  std::string name;
  std::vector<bool> maximise;
  std::vector<std::string> metric_names = {};
};

// A trial of a study that others may have made. Parameters are in their own spaces.
struct StoredParameter {
  std::string name;
  double value;
  Distribution distribution;
};
struct StoredTrial {
  Trial trial;  // without a point
  std::vector<StoredParameter> parameters;
};
// A study as it is kept, whatever was searched: to be looked at.
struct StoredStudy {
  StudyHeader header;
  std::vector<StoredTrial> trials;
};

class Storage {
 public:
  virtual ~Storage() = default;
  virtual std::vector<std::string> studies() = 0;  // names, the oldest first
  virtual StoredStudy stored_study(const std::string& name) = 0;
  // Makes the study if it is not there; an error if it is there with other directions.
  virtual void open_study(const StudyHeader& header) = 0;
  // Trials that are new or changed since the last call, of this process alone excepted, in the
  // order of their numbers here (`stored`), points by the names of the space.
  virtual std::vector<Trial> news(const Space& space) = 0;

  // Several processes may work on one study.
  virtual bool shared() const { return false; }
  // Runs `change` while no other process begins trials of this study. What it writes is seen by
  // others as a whole, with everything that was finished before. It says whether there is now
  // something to do for others: those that wait are told.
  virtual void exclusively(const std::function<bool()>& change) { change(); }
  // Whether others may have written since the last news. Asks nobody: looks at what came.
  virtual bool changed() { return false; }
  // Until something may have come, or so long. Other threads may use the storage meanwhile.
  virtual void wait(std::chrono::milliseconds longest) { std::this_thread::sleep_for(longest); }
  // Inside of `exclusively`: running trials whose process is gone, or was silent for so many
  // seconds, fail, and are waiting again under new numbers; the next news have them. Whether there
  // were any.
  virtual bool retry_lost(double /*seconds*/) { return false; }
  // From now on a sign of life of every trial that this process runs, every so many seconds.
  virtual void beat(double /*seconds*/) {}

  // A trial that runs now: a new one gets its number (`stored`), one that waited is taken up; a
  // value on its way; its end. False if another process took it up before. Ends reach the disk with
  // flush(), with the next `exclusively`, and at least every half second while trials go on.
  virtual bool begin(const Space& space, Trial& trial) = 0;
  virtual void report(const Trial& trial, int64_t step, double value) = 0;
  virtual void finish(const Space& space, const Trial& trial) = 0;
  virtual void flush() = 0;

  // Attributes of the study: what nobody has said yet is said now; those that it has then.
  virtual Dict said_first(const Dict& attributes) { return attributes; }
  // A number that all processes of a study agree on: the largest that any of them said.
  virtual int64_t agreed(const std::string& /*name*/, int64_t proposed) { return proposed; }
};

struct StorageRecord {
  static constexpr const char* kind = "storage";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  bool many_machines = false;  // meant for studies that several machines work on
  // The file behind an address; null: a server.
  std::function<std::string(const std::string& address)> file = {};
  std::function<bool(const std::string& address)> takes;
  std::function<std::unique_ptr<Storage>(const std::string& address)> open;
};

std::unique_ptr<Storage> open_storage(const std::string& address);
// Whether a word is the address of a storage; of one that is there already, an Error if it is not.
bool is_storage_address(const std::string& word);
std::unique_ptr<Storage> open_existing_storage(const std::string& address);
bool is_for_many_machines(const std::string& address);

// A trial for our space: parameters by name. A parameter that is missing, unknown or outside of its
// range makes it a trial of another space.
void place_in_space(const Space& space, const std::vector<StoredParameter>& parameters,
                    Trial& trial);
// The constraints that the attributes hold, in either of Optuna's forms.
std::vector<double> constraints_of(const Dict& system_attributes);
// The system attributes of a trial with its constraints in both forms: Optuna 5 reads the one, its
// dashboard the other.
Dict stored_attributes(const Trial& trial);

std::string iso_time(int64_t microseconds,
                     char separator = ' ');  // UTC, "2026-01-31 12:00:00.000000"
int64_t parse_iso_time(const std::string& text);

}  // namespace mase::search
