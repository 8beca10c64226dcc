// SPDX-License-Identifier: Apache-2.0
// The jet-substructure data set as MASE prepares it, or the simulated sample where there is no
// file.
#include "mase/data/jsc_sim.h"

namespace mase {
namespace {

Dataset load_jsc(const DatasetOptions& options) {
  Dataset dataset = load_simulated_jets(options);
  dataset.name = "jsc";
  if (options.notify)
    options.notify(
        "jsc: no data file found; using simulated jets (jsc-sim), whose figures are not comparable "
        "with published ones");
  return dataset;
}

const Register<DatasetRecord> registered{
    {.name = "jsc",
     .aliases = {"jet", "jet-substructure"},
     .summary = "Jet-substructure classification: 16 features, five classes (g, q, w, z, t)",
     .load = load_jsc}};

}  // namespace
}  // namespace mase
