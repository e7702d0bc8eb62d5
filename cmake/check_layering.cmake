# Fails on an #include against the table of rooms:
#   cmake -DSOURCE_DIR=$PWD -P cmake/check_layering.cmake
cmake_minimum_required(VERSION 3.25)

# What a room may include besides itself and the system's headers.
set(primitives_includes "")
set(stats_includes "")
set(registry_includes primitives absl)
set(catalogue_includes stats registry absl)
set(exposition_includes registry absl)
set(loggers_includes primitives stats catalogue registry absl)
set(testing_includes exposition catalogue registry absl)
set(http_includes exposition catalogue registry absl)
set(shm_includes primitives registry catalogue exposition loggers absl)
set(model_config_includes stats absl)
set(protobuf_includes exposition registry)
set(otlp_includes primitives stats registry catalogue loggers absl)

# What only the sources of a room may include, never its public headers.
foreach(room IN ITEMS registry catalogue exposition loggers http shm otlp)
  set(${room}_sources_include fmt)
endforeach()
list(APPEND http_sources_include microhttpd.h zlib.h)
set(model_config_sources_include nlohmann)
list(APPEND otlp_sources_include protozero curl zlib.h)
set(protobuf_sources_include protozero)

set(third_party absl curl fmt nlohmann protozero microhttpd.h zlib.h)

# Sets `owner` to the room or library an include belongs to, to nothing when
# any file may have it.
function(find_owner include)
  set(owner "")
  if(include MATCHES "^[<\"](vllm_metrics|src)/([a-z_]+)/")
    set(owner ${CMAKE_MATCH_2})
  elseif(include MATCHES "^\"vllm_metrics/(export|version)\\.h\"")
  elseif(include MATCHES "^[<\"]([^/\">]+)")
    set(root ${CMAKE_MATCH_1})
    if(root IN_LIST third_party OR include MATCHES "^\"")
      set(owner ${root})
    endif()
  endif()
  set(owner "${owner}" PARENT_SCOPE)
endfunction()

function(check_room_file file room allowed)
  file(STRINGS ${SOURCE_DIR}/${file} includes REGEX "^ *# *include ")
  list(TRANSFORM includes REPLACE "^ *# *include " "")
  foreach(include IN LISTS includes)
    find_owner("${include}")
    if(file MATCHES "^include/" AND include MATCHES "^\"src/")
      message(SEND_ERROR "${file}: public header includes private ${include}")
    elseif(owner AND NOT owner STREQUAL room AND NOT owner IN_LIST allowed)
      message(SEND_ERROR "${file}: ${room} may not include ${include}")
    endif()
  endforeach()
endfunction()

# Programs and benchmarks stand where a user stands: any public header, nobody's
# private one, but for the parts of another program.
function(check_program_file file)
  cmake_path(GET file PARENT_PATH folder)
  file(STRINGS ${SOURCE_DIR}/${file} includes REGEX "^ *# *include \"src/")
  list(FILTER includes EXCLUDE REGEX "\"${folder}/")
  if(file MATCHES "^(src/tools|bench)/")
    list(FILTER includes EXCLUDE REGEX "\"src/tools/")
  endif()
  if(includes)
    message(SEND_ERROR "${file}: only public headers here, not ${includes}")
  endif()
endfunction()

file(GLOB_RECURSE files RELATIVE ${SOURCE_DIR}
  ${SOURCE_DIR}/include/*.h ${SOURCE_DIR}/src/*.h ${SOURCE_DIR}/src/*.cc
  ${SOURCE_DIR}/examples/*.cc ${SOURCE_DIR}/bench/*.cc)
if(NOT files)
  message(FATAL_ERROR "no sources under SOURCE_DIR, \"${SOURCE_DIR}\"")
endif()
foreach(file IN LISTS files)
  if(file MATCHES "^(src/tools|examples|bench)/"
      OR file MATCHES "^include/vllm_metrics/testing/")
    check_program_file(${file})
  elseif(file MATCHES "^(include/vllm_metrics|src)/([a-z_]+)/")
    set(room ${CMAKE_MATCH_2})
    if(NOT DEFINED ${room}_includes)
      message(SEND_ERROR "${file}: room ${room} has no row in the table")
    endif()
    set(allowed ${${room}_includes})
    if(file MATCHES "^src/")
      list(APPEND allowed ${${room}_sources_include})
    endif()
    check_room_file(${file} ${room} "${allowed}")
  endif()
endforeach()
