// SPDX-License-Identifier: Apache-2.0
#include "mase/train/task.h"

#include "mase/data/token_rows.h"

namespace mase {

const TaskRecord& default_task(const Dataset& dataset) {
  for (const TaskRecord* task : Registry<TaskRecord>::instance().all())
    if (task->usual && task->classes == dataset.classification &&
        task->each_token == has_token_labels(dataset))
      return *task;
  MASE_CHECK(false, "no task for {}", dataset.name);
}

const TaskRecord& task_for(const Dataset& dataset, const std::string& name) {
  if (name.empty()) return default_task(dataset);
  const TaskRecord& task = Registry<TaskRecord>::instance().get(name, "--task");
  if (task.each_token != has_token_labels(dataset))
    throw Error("--task",
                task.each_token
                    ? fmt::format("{} wants texts, {} has rows", task.name, dataset.name)
                    : fmt::format("{} wants rows, {} has texts", task.name, dataset.name),
                "name another task, or leave it away");
  if (task.classes != dataset.classification)
    throw Error("--task",
                fmt::format("{} wants {}, {} has {}", task.name,
                            task.classes ? "classes" : "numbers to predict", dataset.name,
                            task.classes ? "numbers to predict" : "classes"),
                "name another task, or leave it away");
  return task;
}

}  // namespace mase
