// SPDX-License-Identifier: Apache-2.0
// The processes that train together. One process alone needs nothing; under mpirun the module in
// mpi/ is loaded at run time, so that the program itself does not depend on MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mase {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  virtual void sum(std::span<double>) {}  // over all processes, in place
  virtual void sum(std::span<float>) {}
  virtual void broadcast(void* /*data*/, size_t /*bytes*/) {}  // from rank 0
  virtual void abort(int /*code*/) {}                          // ends all processes; alone: nothing
  bool leads() const { return rank() == 0; }
};

// The processes this one was started with: by mpirun if its environment says so, else alone. An
// error if it was but the module is not installed.
std::shared_ptr<Communicator> communicator();
std::string mpi_module();  // where that module has to be: beside the library

}  // namespace mase
