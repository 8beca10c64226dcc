# ch: the command line. One file per command (cli/commands), each registering itself.
file(GLOB_RECURSE MASE_CLI_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mase/cli/*.cpp)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mase/cli/about.cpp PROPERTIES COMPILE_DEFINITIONS
  "MASE_VERSION=\"${PROJECT_VERSION}\";MASE_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\"")
# Plug-ins in Python are run by the interpreter's library, which is looked for when one is named.
set(python_library "")
if(TARGET mase_native)
  set(python_library "libpython${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}.so.1.0")
endif()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mase/cli/plugin.cpp PROPERTIES
                            COMPILE_DEFINITIONS MASE_PYTHON_LIBRARY="${python_library}")
compile_in_units(MASE_CLI_UNITS ch ${MASE_CLI_SOURCES})
add_executable(ch ${MASE_CLI_UNITS})
target_link_libraries(ch PRIVATE mase Threads::Threads)
# The commit is asked for at every build, in a file of its own, so that nothing else is compiled anew.
set(MASE_COMMIT_SOURCE ${CMAKE_BINARY_DIR}/generated/commit.cpp)
add_custom_target(mase_commit BYPRODUCTS ${MASE_COMMIT_SOURCE}
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR} -D OUTPUT=${MASE_COMMIT_SOURCE}
          -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake VERBATIM)
target_sources(ch PRIVATE ${MASE_COMMIT_SOURCE})
add_dependencies(ch mase_commit)
target_link_libraries(ch PRIVATE ${CMAKE_DL_LIBS})
# For developers and under the sanitizers the library is optimised a little; what only calls it is compiled as it is,
# which takes half the time.
if(MASE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(ch PRIVATE -O0)
endif()
