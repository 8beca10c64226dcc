// SPDX-License-Identifier: Apache-2.0
// What a network keeps at few bits: number formats times methods in one table, each measured on
// rows that no method saw, with the bits of its weights and the time its method took.
//
//   CompressSpec spec = compress_spec(settings);
//   auto experiment = compress_experiment(settings, spec, observer);
//   const CompressResult result = compress(*experiment, spec, observer, folder);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mase/run/experiment.h"

namespace mase {

struct CompressSpec {
  std::vector<std::string> formats, methods;  // as compress_plan.h has them
  std::vector<std::string> leave = {};        // expressions of layers that keep their weights
  int64_t rows = 0;                           // measured on, the first of the split; 0: all
  int64_t calibration_rows = 0;               // that methods see; 0: as many as each wants
  // Of networks that predict the next token, in the place of data.
  std::string text = {}, calibration_text = {};  // files; texts or token numbers
  int64_t length = 512;                          // tokens of a window
  std::string keep = "front";                    // networks that are written: front, all, none
  std::string resume = {};                       // the folder of a run that was stopped
};

struct CompressRow {
  std::string format = {}, method = {};
  double bits = 32;       // per weight of the layers that get a format, scales and masks counted
  double bytes = 0;       // of all parameters, packed
  double value = 0;       // the figure
  double difference = 0;  // from the network as it was; its 95 % interval, on the same rows
  double low = 0, high = 0;
  double loss = 0;
  double seconds = 0;  // of the method
  bool front = false;  // no other has fewer bits and as good a figure, or as few and a better one
  std::string trouble = {};  // why there are no figures; then all of them are 0
  List passes = {};          // what each pass told: errors of layers before and after
  std::string network = {};  // its file, if it was kept
};

struct CompressResult {
  std::string figure;  // "accuracy", "loss", "perplexity"
  bool higher_is_better = true;
  std::string measured_on, calibrated_on;  // "10,000 test rows of mnist (..)"
  int64_t weights = 0, layers = 0;         // that get formats
  bool has_intervals = false;
  CompressRow original;
  std::vector<CompressRow> rows;          // format by format
  std::map<size_t, Graph> networks = {};  // by row: those kept, where nothing is written
  std::string folder = {};                // of the run; empty: nothing was written
  bool stopped = false;                   // before all were measured
  Value record() const;                   // compress.json
};

struct CompressCalls {
  std::function<void(const CompressRow& row, size_t done, size_t all)> finished = {};
};

std::vector<Field> compress_options();
CompressSpec compress_spec(const Settings& settings);
// With data, or for a text; prepared, and its own passes applied.
std::unique_ptr<Experiment> compress_experiment(const Settings& settings, const CompressSpec& spec,
                                                const Observer& observer,
                                                const InMemory& memory = {});
// The folder of `spec.resume`, if it is a run that these settings go on with; an Error if not.
RunFolder resumed_compress_folder(const CompressSpec& spec);

// Every mistake in formats and methods is told before anything is measured or `folder` is called
// (empty: nothing is written). What a method cannot do for a format is a row that says so. In the
// folder software/compress/ gets compress.json and compress.csv after every row, and the networks;
// rows that stand there already, of the same network, data and options, are not measured again.
CompressResult compress(Experiment& experiment, const CompressSpec& spec, const Observer& observer,
                        const std::function<RunFolder()>& folder = {},
                        const CompressCalls& calls = {});

std::string compress_table(const CompressResult& result);
std::string compress_csv(const CompressResult& result);

}  // namespace mase
