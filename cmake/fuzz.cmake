# tests/fuzz/NAME_fuzz.cpp defines LLVMFuzzerTestOneInput. In every build it becomes a test, fuzz/NAME,
# that replays the files of tests/fuzz/corpus/NAME. With MASE_FUZZ=ON (preset fuzz, clang) it also
# becomes bin/fuzz_NAME, a libFuzzer program with the address and undefined sanitizers:
#
#   build/fuzz/bin/fuzz_pickle -max_total_time=600 tests/fuzz/corpus/pickle
#
# The target fuzz_targets builds all of them and nothing else; `make fuzz` runs them.
file(GLOB MASE_FUZZ_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp)
if(MASE_FUZZ)
  add_custom_target(fuzz_targets)
endif()
foreach(source ${MASE_FUZZ_SOURCES})
  get_filename_component(name ${source} NAME)
  string(REGEX REPLACE "_fuzz\\.cpp$" "" name ${name})
  if(MASE_FUZZ)
    add_executable(fuzz_${name} ${source})
    target_link_libraries(fuzz_${name} PRIVATE mase ZLIB::ZLIB)
    target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_targets fuzz_${name})
  else()
    set(target test_fuzz_${name})
    add_executable(${target} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cpp)
    target_link_libraries(${target} PRIVATE mase ZLIB::ZLIB)
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME fuzz/${name} COMMAND ${target} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz/${name} PROPERTIES TIMEOUT 300)
  endif()
endforeach()
