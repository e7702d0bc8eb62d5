# One case: COMPILER, INCLUDE_DIR and CASE, the file.
cmake_minimum_required(VERSION 3.25)

set(ENV{LC_ALL} C)  # plain quotes and English in the messages

function(compile)
  execute_process(
    COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE_DIR} ${ARGN} ${CASE}
    RESULT_VARIABLE result
    ERROR_VARIABLE errors)
  set(result "${result}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

file(STRINGS ${CASE} reason REGEX "^// Error: ")
string(REPLACE "// Error: " "" reason "${reason}")
if(NOT reason)
  message(FATAL_ERROR "${CASE} has no line \"// Error: <regex>\"")
endif()

compile()
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the valid half does not compile:\n${errors}")
endif()

compile(-DMUST_NOT_COMPILE)
if(result EQUAL 0)
  message(FATAL_ERROR "it compiles; \"${reason}\" was to be the error")
endif()
if(NOT errors MATCHES "${reason}")
  message(FATAL_ERROR "no \"${reason}\" among the errors:\n${errors}")
endif()
