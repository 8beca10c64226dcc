// SPDX-License-Identifier: Apache-2.0
// The folder a run leaves behind, laid out as MASE's: <project-dir>/<project>/run.json and
// software/. A second run of the same name gets _2, _3, ...: nothing is ever overwritten.
#pragma once

#include <memory>
#include <string>

#include "mase/base/value.h"

namespace mase {

class RunFolder {
 public:
  // Creates <project_dir>/<project> (or with a number behind it) and writes the first run.json.
  static RunFolder create(const std::string& project_dir, const std::string& project, Value record);
  // Opens an existing run: the folder itself, or a path below it (a checkpoint, software/).
  static RunFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string software(const std::string& below = "") const;  // created if absent
  std::string checkpoint(const std::string& name) const;      // software/training_ckpts/NAME.ckpt
  std::string initial_graph() const;  // software/training_ckpts/initial.mz: before training
  void write(const std::string& below, const std::string& text) const;  // a file in the folder

  Value& record() { return record_; }
  const Value& record() const { return record_; }
  void save() const;  // run.json, atomically
  void finish(const std::string& status);
  // What `step` gives. If it throws, the record says that the run failed.
  template <class Step>
  auto guard(Step&& step) {
    try {
      return step();
    } catch (...) {
      note_failure();
      throw;
    }
  }
  std::string status() const;  // "running", "finished", "interrupted", "diverged", "failed"

  // Two processes must not write one run: the lock goes away with this object, and with the
  // process, however it ends. An error if another process holds it.
  void lock();

 private:
  void note_failure() noexcept;

  std::string path_;
  Value record_;
  std::shared_ptr<const void> lock_;
};

// Holds the folder's lock while the result lives; null if another process does.
std::shared_ptr<const void> try_lock_folder(const std::string& folder);

// "{model}_{task}_{dataset}_{YYYY-MM-DD}", with paths reduced to their stems.
std::string default_project(const std::string& model, const std::string& task,
                            const std::string& dataset);
std::string utc_now();   // ISO 8601
Value machine_record();  // {"cpu", "cores", "system"}

}  // namespace mase
