# At installation: the manual page and the completion, as the program writes them, into `folder`.
file(MAKE_DIRECTORY ${folder})
foreach(pair "reference|--manual|ch.1" "completion|bash|ch.bash")
  string(REPLACE "|" ";" words ${pair})
  list(GET words 0 command)
  list(GET words 1 argument)
  list(GET words 2 file)
  execute_process(COMMAND ${program} ${command} ${argument} OUTPUT_FILE ${folder}/${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
