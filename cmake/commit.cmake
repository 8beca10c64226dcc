# Writes OUTPUT, a C++ file that says which commit of SOURCE this is, where that changed.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "// Generated. Do not edit.
#include \"mase/cli/about.h\"

namespace mase {

const char* program_commit() { return \"${commit}\"; }

}  // namespace mase
")
