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
set_source_files_properties(${MASE_VECTOR_CODE} PROPERTIES COMPILE_DEFINITIONS
  "HWY_DISABLED_TARGETS=${MASE_SKIPPED_TARGETS}")
add_library(mase SHARED ${MASE_SOURCES})
target_compile_features(mase PUBLIC cxx_std_20)  # an outside project's compiler is told so too
target_include_directories(mase PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
                                       $<INSTALL_INTERFACE:include>)
target_link_libraries(mase PUBLIC fmt::fmt
                           PRIVATE nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX
                                   ZLIB::ZLIB PNG::PNG OpenSSL::Crypto PkgConfig::HWY
                                   PkgConfig::RE2 ${UTF8PROC_LINK_LIBRARIES} SQLite::SQLite3
                                   Threads::Threads ${CMAKE_DL_LIBS})
# Only these see Eigen and libpq, so that no other file is compiled again for them.
get_target_property(EIGEN_FOLDER Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
foreach(name cma gaussian_process niches)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mase/search/models/${name}.cpp
                              PROPERTIES COMPILE_OPTIONS "-isystem;${EIGEN_FOLDER}")
endforeach()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mase/search/storages/postgresql_pipeline.cpp
                            PROPERTIES COMPILE_OPTIONS "-isystem;${LIBPQ_INCLUDE_DIRS}")
set_target_properties(mase PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
compile_folders_together(mase ${MASE_SOURCES})
# Sanitizer builds are not optimised (a third of the time to compile) but for the folders whose loops
# the tests spend their time in.
if(MASE_SANITIZE)
  set(busy "^(base|engine(_primitives)?|formats|hardware_(graph|ops|optimize|prove|verify)|ir|ops|search_(models|study|measure)|train)$")
  foreach(source ${MASE_SOURCES})
    get_source_file_property(folder ${source} UNITY_GROUP)
    if(folder MATCHES "${busy}")
      list(APPEND busy_folders ${folder})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES busy_folders)
  foreach(folder ${busy_folders})
    set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/mase.dir/Unity/unity_${folder}_cxx.cxx
                 APPEND PROPERTY COMPILE_OPTIONS "-O1")
  endforeach()
endif()
set(MASE_EXPORTED ${CMAKE_SOURCE_DIR}/cmake/exported_symbols.map)
# Calls within the library go straight to their functions: nobody is to put others in their place.
target_link_options(mase PRIVATE LINKER:--version-script=${MASE_EXPORTED} LINKER:-Bsymbolic-functions)
set_target_properties(mase PROPERTIES LINK_DEPENDS ${MASE_EXPORTED})
