# Most of a file's compile time goes into the headers and templates it shares with its neighbours, so
# files are compiled together: a folder with its neighbours below the same one, as many as make a unit
# of some size. A file that registers something keeps its names in a namespace of its own for this
# reason. Kernels stay by themselves: Highway compiles such a file once per instruction set by
# including it again; so does a file that has flags of its own.
#
# What users wait for is optimised; the rest (commands, readers, pages, ...) only a little, which takes
# a third less to compile (docs/rationale/building.md has the measurements).
set(MASE_BUSY_FOLDERS "^(base|data|engine|engine/primitives|formats|ir|ops|train|text(/.*)?|io/(tables|numpy|zip)\
|hardware/(graph|ops|lower|optimize|prove|verify|carry)|passes(/(transform|statistics|criteria))?\
|search/(models|samplers|study|measure))$")
set(MASE_UNIT_BYTES 250000)

# The flags of a folder that is not a busy one, and of a busy one.
set(MASE_IDLE_FLAGS "")
set(MASE_BUSY_FLAGS "")
if(MASE_SANITIZE)  # not optimised at all but for the folders whose loops the tests spend their time in
  set(MASE_BUSY_FLAGS "-O1")
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(MASE_IDLE_FLAGS "-O1")
endif()
# g++ collects its garbage when there is some, not from the first 128 MB on: a tenth of its time.
if(MASE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND MASE_IDLE_FLAGS "--param=ggc-min-heapsize=700000")
  list(APPEND MASE_BUSY_FLAGS "--param=ggc-min-heapsize=700000")
endif()

# What TARGET compiles instead of the given sources, the largest first: nothing long is left for the end.
function(compile_in_units result target)
  set(alone "")
  set(units "")
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/src/mase ${folder})
    get_source_file_property(flags ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    file(SIZE ${source} bytes)
    if(NOT MASE_UNITY OR definitions OR folder MATCHES "^\\.\\.|kernels$")
      list(APPEND alone ${source})
      set(bytes_of_${source} ${bytes})
      set_level(${source} "${folder}")
      continue()
    endif()
    if(flags)  # with those of its folder that have the same
      string(MAKE_C_IDENTIFIER "${flags}" suffix)
      set(folder ${folder}@${suffix})
      set(flags_of_${folder} ${flags})
    endif()
    list(APPEND folders ${folder})
    list(APPEND in_${folder} ${source})
    math(EXPR size_of_${folder} "0${size_of_${folder}} + ${bytes}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    # Its neighbours are those below the same folder that are optimised alike.
    string(REGEX REPLACE "/.*" "" neighbours ${folder})
    if(folder MATCHES "${MASE_BUSY_FOLDERS}")
      string(APPEND neighbours "_busy")
    endif()
    if(flags_of_${folder})
      set(neighbours ${folder})
    endif()
    set(unit ${unit_of_${neighbours}})
    math(EXPR bytes "0${bytes_of_${unit}} + ${size_of_${folder}}")
    if(NOT unit OR bytes GREATER MASE_UNIT_BYTES)
      string(MAKE_C_IDENTIFIER ${folder} unit)
      set(unit ${CMAKE_BINARY_DIR}/units/${target}/${unit}.cpp)
      set(unit_of_${neighbours} ${unit})
      set(bytes ${size_of_${folder}})
      list(APPEND units ${unit})
      set_property(SOURCE ${unit} PROPERTY COMPILE_OPTIONS ${flags_of_${folder}})
      set_level(${unit} ${folder})
    endif()
    set(bytes_of_${unit} ${bytes})
    foreach(source ${in_${folder}})
      string(APPEND text_of_${unit} "#include \"${source}\"\n")
    endforeach()
  endforeach()
  foreach(unit ${units})
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text_of_${unit}}" @ONLY)
  endforeach()
  set(sized "")
  foreach(unit ${units} ${alone})
    math(EXPR size "10000000 + ${bytes_of_${unit}}")
    list(APPEND sized "${size}:${unit}")
  endforeach()
  list(SORT sized ORDER DESCENDING)
  list(TRANSFORM sized REPLACE "^[0-9]+:" "")
  set(${result} ${sized} PARENT_SCOPE)
endfunction()

function(set_level source folder)
  string(REGEX REPLACE "@.*" "" folder "${folder}")
  if(folder MATCHES "${MASE_BUSY_FOLDERS}")
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS "${MASE_BUSY_FLAGS}")
  elseif(NOT folder MATCHES "kernels$")
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS "${MASE_IDLE_FLAGS}")
  endif()
endfunction()
