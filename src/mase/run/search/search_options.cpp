// SPDX-License-Identifier: Apache-2.0
// The options of a search alone, for the command and for notebooks.
#include "mase/run/search/search_spec.h"

namespace mase {

std::vector<Field> search_options() {
  constexpr const char* group = "Search options";
  return {
      {.name = "sampler",
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
       .help = "seconds after which no trial is started; the best are then written and tested for "
               "a quarter of them, two seconds at most",
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
       .help = "rows that a configuration is measured on, the first of the split (default: all)",
       .minimum = 1,
       .group = group},
      {.name = "storage",
       .type = FieldType::text,
       .help = "where trials are kept: sqlite:///FILE.db, postgresql://USER@HOST/DATABASE or "
               "journal:FILE (default: study.db in the run folder); a password is best in "
               "PGPASSWORD or ~/.pgpass",
       .group = group,
       .secret = true},
      {.name = "study",
       .type = FieldType::text,
       .help = "name of the study in the storage; one that is there goes on",
       .group = group},
      {.name = "accept_differences",
       .type = FieldType::boolean,
       .default_value = false,
       .help = "go on with a study whose trials were measured with another network, other rows "
               "or other settings",
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
       .group = group}};
}

}  // namespace mase
