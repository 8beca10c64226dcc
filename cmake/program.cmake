# ch: the command line. One file per command, each registering itself.
file(GLOB MASE_CLI_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mase/cli/*.cpp)
add_executable(ch ${MASE_CLI_SOURCES})
target_link_libraries(ch PRIVATE mase Threads::Threads)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/mase/cli/main.cpp PROPERTIES
                            COMPILE_DEFINITIONS MASE_VERSION="${PROJECT_VERSION}")
compile_folders_together(ch ${MASE_CLI_SOURCES})
# For developers and under the sanitizers the library is optimised a little; what only calls it is compiled as it is,
# which takes half the time.
if(MASE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(ch PRIVATE -O0)
endif()
