// SPDX-License-Identifier: Apache-2.0
// The jet-substructure data set as MASE prepares it, or the simulated sample where there is no
// file.
#include "mase/data/jets.h"
#include "mase/data/jsc_sim.h"

namespace mase::jsc_dataset {
namespace {

Dataset load_jsc(const DatasetOptions& options) {
  const std::string folder = data_folder(options);
  const std::string path = find_jet_file(folder);
  if (!path.empty()) return load_jet_file(path, options);
  if (options.notify)
    options.notify(fmt::format(
        "jsc: no jet file in {}; using simulated jets (jsc-sim), whose figures are not comparable "
        "with published ones ('ch data fetch jsc' downloads the real ones)",
        folder));
  Dataset dataset = load_simulated_jets(options);
  dataset.name = "jsc";
  return dataset;
}

const Register<DatasetRecord> registered{
    {.name = "jsc",
     .summary = "Jet-substructure classification: 16 features, five classes (g, q, w, z, t)",
     .help =
         "Prepared as MASE does: duplicates dropped, 20 % test rows (the same as scikit-learn's "
         "train_test_split with seed 42), standardised by the training rows. Validation is 10 % of "
         "the training rows (--val-split). Looks for the file in --data-dir, MASE_DATA, then "
         "~/.cache/mase; without one, the simulated jets of jsc-sim take its place.",
     .options = simulation_options(),  // read where the simulation takes its place
     .files = jet_files(),
     .where = [](const DatasetOptions& options) { return find_jet_file(data_folder(options)); },
     .load = load_jsc}};

}  // namespace
}  // namespace mase::jsc_dataset
