# The MPI module: a small library that ch loads only when mpirun started it. Without MPI it is
# simply not built.
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  add_library(mase_mpi MODULE ${CMAKE_SOURCE_DIR}/src/mase/train/mpi/mpi_communicator.cpp)
  target_link_libraries(mase_mpi PRIVATE mase MPI::MPI_CXX)
  # OpenMPI's C++ bindings are deprecated and not warning-free.
  target_compile_definitions(mase_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  add_dependencies(ch mase_mpi)
  install(TARGETS mase_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
