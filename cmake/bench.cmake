# bench/NAME.cpp becomes bin/bench_NAME (option MASE_BENCH).
#
# Debian's CMake package of oneDNN asks for OpenCL headers, which its CPU interface does not need.
# Without oneDNN the benchmark that compares with it is left out.
find_path(DNNL_INCLUDE_DIR dnnl.h)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
else()
  message(STATUS "oneDNN was not found: bench_dense is left out")
endif()

file(GLOB MASE_BENCH_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*.cpp)
foreach(source ${MASE_BENCH_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  if(name STREQUAL "dense" AND NOT TARGET DNNL::dnnl)
    continue()
  endif()
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE mase fmt::fmt OpenMP::OpenMP_CXX z
                        $<$<STREQUAL:${name},dense>:DNNL::dnnl>)
endforeach()
