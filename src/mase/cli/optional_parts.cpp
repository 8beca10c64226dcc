// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/optional_parts.h"

#include "mase/train/communicator.h"

namespace mase {

std::vector<OptionalPart> optional_parts() {
  const std::string hardware = "./ch --install hardware, or apt-get install ";
  return {
      {PartKind::library, "libcurl", "libcurl.so.4", "ch data fetch", "apt-get install libcurl4"},
      {PartKind::library, "libpq", "libpq.so.5", "ch search --storage postgresql://...",
       "apt-get install libpq5"},
      {PartKind::library, "MPI", mpi_module(), "mpirun -n N ch train, ch search",
       "apt-get install libopenmpi-dev openmpi-bin, and build again"},
      {PartKind::program, "yosys", "yosys", "ch emit (proofs), ch synth", hardware + "yosys"},
      {PartKind::program, "iverilog", "iverilog", "ch simulate", hardware + "iverilog"},
      {PartKind::program, "verilator", "verilator", "ch simulate of large designs",
       hardware + "verilator"},
      {PartKind::program, "nextpnr", "nextpnr-ice40", "ch synth --place ice40",
       "./ch --install place, or apt-get install nextpnr-ice40"},
      {PartKind::program, "g++", "g++", "ch simulate --simulator cpp, and verilator",
       "apt-get install g++"},
      {PartKind::program, "python3", "python3", "ch python, ch notebook, plug-ins in Python",
       "apt-get install python3-dev python3-venv"},
      {PartKind::python, "numpy", "numpy", "import mase", "apt-get install python3-numpy"},
      {PartKind::python, "torch", "torch", "mase.from_torch, mase.to_torch, chop on torch modules",
       "pip install torch"},
      {PartKind::python, "pandas", "pandas", "to_dataframe()", "apt-get install python3-pandas"},
      {PartKind::python, "jupyter", "jupyter_core", "ch notebook",
       "apt-get install jupyter-notebook"},
  };
}

}  // namespace mase
