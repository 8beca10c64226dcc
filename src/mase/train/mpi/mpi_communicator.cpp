// SPDX-License-Identifier: Apache-2.0
// The communicator on MPI, a module of its own (libmase_mpi.so): only this file knows MPI, and only
// a process started by mpirun loads it.
#include <mpi.h>

#include <climits>

#include "mase/base/error.h"
#include "mase/train/communicator.h"

namespace mase {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    int already = 0;
    MPI_Initialized(&already);
    if (!already && MPI_Init(nullptr, nullptr) != MPI_SUCCESS)
      throw Error("mpirun", "MPI cannot be started");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  ~MpiCommunicator() override {
    int done = 0;
    MPI_Finalized(&done);
    if (!done) MPI_Finalize();
  }

  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void sum(std::span<double> values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
  }

  void sum(std::span<float> values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }

  void broadcast(void* data, size_t bytes) override {
    MPI_Bcast(data, count(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  }

 private:
  static int count(size_t size) {
    MASE_CHECK(size <= INT_MAX, "{} items in one message", size);
    return static_cast<int>(size);
  }
  int rank_ = 0, size_ = 1;
};

}  // namespace
}  // namespace mase

extern "C" mase::Communicator* mase_open_communicator() { return new mase::MpiCommunicator; }
