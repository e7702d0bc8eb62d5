# Fails on a public header above 250 lines or a source above 500: over the limit
# means two ideas in one file.
cmake_minimum_required(VERSION 3.25)

function(check_size limit)
  foreach(file IN LISTS ARGN)
    file(READ ${file} text)
    string(REGEX REPLACE "[^\n]" "" newlines "${text}")
    string(LENGTH "${newlines}" lines)
    if(lines GREATER limit)
      message(SEND_ERROR "${file} has ${lines} lines, the limit is ${limit}")
    endif()
  endforeach()
endfunction()

file(GLOB_RECURSE headers ${SOURCE_DIR}/include/*.h)
file(GLOB_RECURSE sources
  ${SOURCE_DIR}/src/*.cc
  ${SOURCE_DIR}/tests/*.cc
  ${SOURCE_DIR}/bench/*.cc
  ${SOURCE_DIR}/examples/*.cc)
check_size(250 ${headers})
check_size(500 ${sources})
