# Compiles every public header alone with COMPILER.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE headers ${SOURCE_DIR}/include/*.h)
foreach(header IN LISTS headers)
  execute_process(
    COMMAND ${COMPILER} -std=c++20 -fno-exceptions -fno-rtti -fsyntax-only
      -Wall -Wextra -Wpedantic -Werror -I${SOURCE_DIR}/include
      -include ${header} -x c++ /dev/null
    RESULT_VARIABLE result
    ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${header} does not compile alone:\n${errors}")
  endif()
endforeach()
