# Numbered lessons in C++: examples/NAME.cpp becomes build/.../bin/NAME. The tests run them.
file(GLOB MASE_EXAMPLES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.cpp)
foreach(source ${MASE_EXAMPLES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE mase)
endforeach()
