# The front-end bundle (web/dist, checked in) as string constants of libmase. Building it needs no
# npm; web/README.md says how to make a new one.
set(MASE_BUNDLE_SOURCE ${CMAKE_BINARY_DIR}/generated/bundle.cpp)
add_custom_command(
  OUTPUT ${MASE_BUNDLE_SOURCE}
  COMMAND ${CMAKE_COMMAND} -D SCRIPT=${CMAKE_SOURCE_DIR}/web/dist/mase.js
          -D STYLE=${CMAKE_SOURCE_DIR}/web/dist/mase.css -D OUTPUT=${MASE_BUNDLE_SOURCE}
          -P ${CMAKE_SOURCE_DIR}/cmake/embed_bundle.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/web/dist/mase.js ${CMAKE_SOURCE_DIR}/web/dist/mase.css
          ${CMAKE_SOURCE_DIR}/cmake/embed_bundle.cmake
  COMMENT "Embedding the pages' front-end" VERBATIM)
target_sources(mase PRIVATE ${MASE_BUNDLE_SOURCE})
set_source_files_properties(${MASE_BUNDLE_SOURCE} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
