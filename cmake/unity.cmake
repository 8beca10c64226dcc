# Most of a file's compile time goes into the headers and templates it shares with its neighbours, so
# a folder compiled as one unit takes a quarter of the time. A file that registers something keeps its
# names in a namespace of its own for this reason. Kernels stay by themselves: Highway compiles such
# a file once per instruction set by including it again.
function(compile_folders_together target)
  if(NOT MASE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/src/mase ${folder})
    if(NOT folder MATCHES "kernels$")
      string(REPLACE "/" "_" folder ${folder})
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
endfunction()
