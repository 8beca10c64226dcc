# The Python package: python/mase and python/chop beside the extension module mase._native, which is
# nanobind over libmase. nanobind comes from PyPI (scripts/python_tools.sh fetches it into
# build/python-tools); without it, or without Python's headers, the package is not built and its
# tests skip. The tree build/.../python is what the tests and `ch python` use; a wheel (pip install .)
# is the same files with libmase beside them.
set(MASE_PYTHON AUTO CACHE STRING "Build the Python package: ON, OFF, or AUTO (if nanobind is there)")
if(NOT MASE_PYTHON)
  return()
endif()
# Debian's Python is the one that has Debian's NumPy and PyTorch; pip names its own.
if(NOT SKBUILD AND NOT DEFINED Python_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
set(nanobind_folder "")
foreach(python ${CMAKE_SOURCE_DIR}/build/python-tools/bin/python ${Python_EXECUTABLE})
  if(nanobind_folder STREQUAL "" AND EXISTS ${python} AND Python_Development.Module_FOUND)
    execute_process(COMMAND ${python} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_folder
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endforeach()
if(nanobind_folder STREQUAL "")
  if(MASE_PYTHON STREQUAL "AUTO" AND NOT SKBUILD)
    message(STATUS "Python package: not built (needs Python's headers and nanobind: make python)")
    return()
  endif()
  message(FATAL_ERROR "The Python package needs python3-dev and nanobind (pip install nanobind)")
endif()
find_package(nanobind CONFIG REQUIRED PATHS ${nanobind_folder} NO_DEFAULT_PATH)

file(GLOB MASE_PYTHON_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.cpp)
nanobind_add_module(mase_native STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE
                    ${MASE_PYTHON_SOURCES})
get_target_property(libraries mase_native LINK_LIBRARIES)
foreach(library ${libraries})  # nanobind's own sources
  target_compile_options(${library} PRIVATE -w)
endforeach()
target_link_libraries(mase_native PRIVATE mase)
target_compile_options(mase_native PRIVATE -Wno-attributes)  # nanobind's types are hidden, ours are not
target_compile_definitions(mase_native PRIVATE MASE_VERSION="${PROJECT_VERSION}")
if(MASE_UNITY)  # one unit: most of the time goes into nanobind's headers
  set_target_properties(mase_native PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()
if(MASE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")  # as ch (program.cmake)
  target_compile_options(mase_native PRIVATE -O0)
endif()
set(MASE_PYTHON_TREE ${CMAKE_BINARY_DIR}/python)
# The registries are one with the library's, so their symbols must be visible to both.
set_target_properties(mase_native PROPERTIES OUTPUT_NAME _native CXX_VISIBILITY_PRESET default
                      LIBRARY_OUTPUT_DIRECTORY ${MASE_PYTHON_TREE}/mase
                      BUILD_RPATH "$ORIGIN/../../lib" INSTALL_RPATH "$ORIGIN/lib")

# Always copied: looking which of a few dozen small files changed takes as long.
add_custom_target(mase_python ALL
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${CMAKE_SOURCE_DIR}/python/mase ${MASE_PYTHON_TREE}/mase
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${CMAKE_SOURCE_DIR}/python/chop ${MASE_PYTHON_TREE}/chop
  VERBATIM)
add_dependencies(mase_python mase_native)
if(NOT MASE_SANITIZE)  # a module with sanitizers is not imported without their library
  nanobind_add_stub(mase_stub MODULE _native OUTPUT ${MASE_PYTHON_TREE}/mase/_native.pyi
                    PYTHON_PATH ${MASE_PYTHON_TREE}/mase DEPENDS mase_native
                    PATTERN_FILE ${CMAKE_SOURCE_DIR}/python/src/native_stub.txt)
  add_dependencies(mase_python mase_stub)
endif()

# A wheel has the program too: mase/bin/ch beside mase/lib, a script that starts it (python/ch), its
# manual page and completion, which the program itself writes.
if(SKBUILD)
  set(library ${MASE_PREBUILT}/lib/libmase.so.${PROJECT_VERSION})
  set(program ${MASE_PREBUILT}/bin/ch)
  if(NOT MASE_PREBUILT)
    include(cmake/program.cmake)
    set(library $<TARGET_FILE:mase>)
    set(program $<TARGET_FILE:ch>)
  endif()
  install(TARGETS mase_native LIBRARY DESTINATION mase COMPONENT python)
  install(FILES ${MASE_PYTHON_TREE}/mase/_native.pyi DESTINATION mase COMPONENT python)
  install(FILES ${library} DESTINATION mase/lib COMPONENT python  # a wheel would hold a link as a second copy
          RENAME libmase.so.${PROJECT_VERSION_MAJOR})
  install(PROGRAMS ${program} DESTINATION mase/bin COMPONENT python)
  install(PROGRAMS python/ch DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  install(CODE "set(program ${program})\nset(folder ${CMAKE_BINARY_DIR}/generated)" COMPONENT python)
  install(SCRIPT cmake/write_manual.cmake COMPONENT python)
  install(FILES ${CMAKE_BINARY_DIR}/generated/ch.1 DESTINATION ${SKBUILD_DATA_DIR}/share/man/man1 COMPONENT python)
  install(FILES ${CMAKE_BINARY_DIR}/generated/ch.bash RENAME ch COMPONENT python
          DESTINATION ${SKBUILD_DATA_DIR}/share/bash-completion/completions)
endif()
