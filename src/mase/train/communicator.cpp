// SPDX-License-Identifier: Apache-2.0
#include "mase/train/communicator.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {
namespace {

// The number of processes the launcher started, by the environment of OpenMPI, PMIx and MPICH.
int64_t launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* text = std::getenv(name)) return parse_integer(text).value_or(1);
  return 1;
}

}  // namespace

std::string mpi_module() {
  Dl_info info{};
  ::dladdr(reinterpret_cast<const void*>(&launched_processes), &info);
  const std::filesystem::path library = info.dli_fname ? info.dli_fname : "";
  return (library.parent_path() / "libmase_mpi.so").string();
}

std::shared_ptr<Communicator> communicator() {
  if (launched_processes() <= 1) return std::make_shared<Communicator>();
  const std::string path = mpi_module();
  // Global symbols: OpenMPI's own plug-ins look for them.
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!module)
    throw Error(
        path,
        fmt::format("started by mpirun, but the MPI module cannot be loaded: {}", ::dlerror()),
        "install libopenmpi-dev and build again, or run without mpirun");
  using Open = Communicator* (*)();
  // POSIX wants this cast; the language has no better one.
  const auto open = reinterpret_cast<Open>(::dlsym(module, "mase_open_communicator"));
  if (!open) throw Error(path, "is not the MPI module of this program", "build again");
  return std::shared_ptr<Communicator>(open());
}

}  // namespace mase
