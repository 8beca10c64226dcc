# libmase: every source below src/mase except the command line. Open sets register themselves, so
# a new file needs no line here; a shared library keeps every registration.
include(CheckCXXSourceRuns)
file(GLOB_RECURSE MASE_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mase/*.cpp)
list(FILTER MASE_SOURCES EXCLUDE REGEX "/src/mase/cli/")
list(FILTER MASE_SOURCES EXCLUDE REGEX "/src/mase/train/mpi/")
# Kernels keep their accumulators in registers only if the compiler unrolls the tile loops; loops
# that begin at a fetch block keep their speed when code before them grows.
file(GLOB_RECURSE MASE_KERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mase/engine/kernels/*.cpp)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT MASE_SANITIZE)
  set_source_files_properties(${MASE_KERNELS} PROPERTIES COMPILE_OPTIONS
                              "-O3;-falign-functions=64;-falign-loops=32")
endif()
if(MASE_FUZZ)  # nothing foreign reaches them, and they take longest to build with sanitizers
  set_source_files_properties(${MASE_KERNELS} PROPERTIES COMPILE_OPTIONS "-fno-sanitize=all")
endif()
# Highway compiles a kernel once for each instruction set. Left out are those that no machine of note
# has as its best; with sanitizers also those that show what AVX2 shows, and where the machine has that
# the one that every machine has (SSE2, which takes three times as long to compile).
file(GLOB_RECURSE MASE_VECTOR_CODE CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mase/*/kernels/*.cpp)
set(MASE_SKIPPED_TARGETS "HWY_AVX3_DL|HWY_SSSE3")
if(HWY_VERSION VERSION_GREATER_EQUAL 1.1)
  string(APPEND MASE_SKIPPED_TARGETS "|HWY_AVX3_ZEN4|HWY_AVX3_SPR")
endif()
if(MASE_SANITIZE)
  set_property(SOURCE ${MASE_VECTOR_CODE} APPEND PROPERTY COMPILE_OPTIONS "-O1")
  string(APPEND MASE_SKIPPED_TARGETS "|HWY_AVX3|HWY_SSE4")
  check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") &&
    __builtin_cpu_supports(\"bmi2\") ? 0 : 1; }" MASE_RUNS_AVX2)
  if(MASE_RUNS_AVX2)
    set_property(SOURCE ${MASE_VECTOR_CODE} APPEND PROPERTY COMPILE_OPTIONS
                 "-mavx2;-mfma;-mf16c;-mbmi;-mbmi2;-maes;-mpclmul")
  endif()
endif()
set(MASE_VECTOR_DEFINITIONS "HWY_DISABLED_TARGETS=${MASE_SKIPPED_TARGETS}")
if(NOT MASE_INSTRUCTION_SETS STREQUAL "all")
  list(TRANSFORM MASE_INSTRUCTION_SETS PREPEND "HWY_" OUTPUT_VARIABLE targets)
  list(GET targets 0 least)
  list(JOIN targets "|" targets)
  set(MASE_VECTOR_DEFINITIONS "HWY_DISABLED_TARGETS=~(${targets})" "HWY_BASELINE_TARGETS=${least}")
endif()
set_source_files_properties(${MASE_VECTOR_CODE} PROPERTIES COMPILE_DEFINITIONS "${MASE_VECTOR_DEFINITIONS}")
# Only these see Eigen and libpq, so that no other file is compiled again for them.
get_target_property(EIGEN_FOLDER Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
foreach(name cma gaussian_process niches)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mase/search/models/${name}.cpp
                              PROPERTIES COMPILE_OPTIONS "-isystem;${EIGEN_FOLDER}")
endforeach()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mase/search/storages/postgresql_pipeline.cpp
                            PROPERTIES COMPILE_OPTIONS "-isystem;${LIBPQ_INCLUDE_DIRS}")
compile_in_units(MASE_UNITS mase ${MASE_SOURCES})
add_library(mase SHARED ${MASE_UNITS})
target_compile_features(mase PUBLIC cxx_std_20)  # an outside project's compiler is told so too
target_include_directories(mase PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
                                       $<INSTALL_INTERFACE:include>)
target_link_libraries(mase PUBLIC fmt::fmt
                           PRIVATE nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX
                                   ZLIB::ZLIB PNG::PNG OpenSSL::Crypto PkgConfig::HWY
                                   PkgConfig::RE2 ${UTF8PROC_LINK_LIBRARIES} SQLite::SQLite3
                                   Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(mase PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set(MASE_EXPORTED ${CMAKE_SOURCE_DIR}/cmake/exported_symbols.map)
# Calls within the library go straight to their functions: nobody is to put others in their place.
target_link_options(mase PRIVATE LINKER:--version-script=${MASE_EXPORTED} LINKER:-Bsymbolic-functions)
set_target_properties(mase PROPERTIES LINK_DEPENDS ${MASE_EXPORTED})
