# The pages' script and style (src/mase/report/pages/page.js, page.css) as string constants of libmase.
set(MASE_PAGE_SOURCE ${CMAKE_BINARY_DIR}/generated/page_files.cpp)
set(MASE_PAGE_FILES ${CMAKE_SOURCE_DIR}/src/mase/report/pages/page.js ${CMAKE_SOURCE_DIR}/src/mase/report/pages/page.css)
add_custom_command(
  OUTPUT ${MASE_PAGE_SOURCE}
  COMMAND ${CMAKE_COMMAND} -D FOLDER=${CMAKE_SOURCE_DIR}/src/mase/report/pages -D OUTPUT=${MASE_PAGE_SOURCE}
          -P ${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${MASE_PAGE_FILES} ${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake
  COMMENT "Embedding the pages' script and style" VERBATIM)
target_sources(mase PRIVATE ${MASE_PAGE_SOURCE})
set_source_files_properties(${MASE_PAGE_SOURCE} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
