# The files tests/FOLDER/NAME_test.cpp are one program, test_FOLDER, which CTest runs once for each of
# them, as the test FOLDER/NAME. A new file needs no line here. Programs find the tree and the binary
# through MASE_SOURCE and MASE_CH (tests/support).
find_package(GTest REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
pkg_check_modules(ZIP REQUIRED IMPORTED_TARGET libzip)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
add_library(test_support STATIC ${CMAKE_SOURCE_DIR}/tests/support/support.cpp
            ${CMAKE_SOURCE_DIR}/tests/support/main.cpp)
target_link_libraries(test_support PUBLIC mase GTest::gtest GTest::gmock
                      ${RAPIDCHECK_LIBRARY} Threads::Threads)
target_include_directories(test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
# Tests write files with the libraries everybody uses; the readers are our own.
target_link_libraries(test_support PUBLIC ${HDF5_C_LIBRARIES} PkgConfig::ZIP PkgConfig::HWY)
target_include_directories(test_support SYSTEM PUBLIC ${HDF5_C_INCLUDE_DIRS})
# Tests spend their time in the library: unoptimised they compile in two thirds of the time.
target_compile_options(test_support PUBLIC -O0)
# GoogleTest's headers are a third of what is left; they are read once for all programs.
target_precompile_headers(test_support PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm>
                          <filesystem> <fstream> <functional> <map> <set> <string> <vector>)
# So are the library's own that many tests read, where each folder is compiled as a whole anyway.
if(MASE_UNITY)
  target_precompile_headers(test_support PRIVATE <cmath> <limits> <mase/base/file.h> <mase/base/random.h>
    <mase/base/text.h> <mase/engine/program.h> <mase/io/networks/checkpoint.h> <mase/ir/evaluate.h> <mase/models/model.h>
    <mase/passes/pass.h> <mase/train/loss.h> <support/support.h>)
endif()
# They link in a fifth of the time where LLVM's linker is installed, as CI does.
find_program(LLD ld.lld)
if(LLD)
  target_link_options(test_support PUBLIC -fuse-ld=lld)
endif()

set(MASE_TEST_ENVIRONMENT "MASE_SOURCE=${CMAKE_SOURCE_DIR};MASE_CH=$<TARGET_FILE:ch>;MASE_BUILD=${CMAKE_BINARY_DIR};RC_PARAMS=seed=1;LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/foreign_leaks.txt:print_suppressions=0;XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/test-cache")
file(GLOB_RECURSE MASE_TESTS_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cpp)
foreach(source ${MASE_TESTS_SOURCES})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${source})
  get_filename_component(folder ${name} DIRECTORY)
  get_filename_component(file ${name} NAME)
  string(REGEX REPLACE "_test\\.cpp$" "" name ${name})
  set(target test_${folder})
  if(NOT TARGET ${target})
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE test_support)
    target_precompile_headers(${target} REUSE_FROM test_support)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    if(MASE_UNITY)  # some at a time: a change of one of them does not compile the whole folder
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    endif()
    add_dependencies(${target} ch)
  else()
    target_sources(${target} PRIVATE ${source})
  endif()
  add_test(NAME ${name} COMMAND ${target} --file=${file})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${MASE_TEST_ENVIRONMENT}")
endforeach()

# Scripts that are tests of their own (Python or shell): tests/FOLDER/NAME_test.{py,sh}.
file(GLOB_RECURSE MASE_TEST_SCRIPTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.py
     ${CMAKE_SOURCE_DIR}/tests/*_test.sh)
if(MASE_SANITIZE)
  set(runtime asan)
  if(MASE_SANITIZE MATCHES "thread")
    set(runtime tsan)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.${runtime}-x86_64.so
                  OUTPUT_VARIABLE MASE_SANITIZER_LIBRARY OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
foreach(script ${MASE_TEST_SCRIPTS})
  file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR}/tests ${script})
  string(REGEX REPLACE "_test\\.(py|sh)$" "" name ${name})
  if(script MATCHES "\\.py$")
    set(interpreter /usr/bin/python3)
  else()
    set(interpreter bash)
  endif()
  # NAME_long_test: minutes of work, run by `ctest -C long -L long` only (make test-long).
  set(label short)
  set(limit 900)
  set(configuration "")
  if(name MATCHES "_long$")
    set(label long)
    set(limit 14400)
    set(configuration CONFIGURATIONS long)
  endif()
  # Python itself is built without sanitizers: their library is loaded before it, and takes the place of
  # its allocator, which would hide what is written beyond a small object.
  set(environment "")
  if(MASE_SANITIZE AND name MATCHES "^python/")
    set(environment "ASAN_OPTIONS=detect_leaks=0;PYTHONMALLOC=malloc;MASE_SANITIZE=${MASE_SANITIZE}")
    if(NOT MASE_SANITIZE MATCHES "thread")  # whose library cannot be loaded into a foreign program
      string(APPEND environment ";LD_PRELOAD=${MASE_SANITIZER_LIBRARY}")
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${interpreter} ${script} ${configuration})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit} SKIP_RETURN_CODE 77 LABELS ${label}
    ENVIRONMENT "${MASE_TEST_ENVIRONMENT};${environment}")
endforeach()
