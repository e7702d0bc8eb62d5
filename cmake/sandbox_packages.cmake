# Fetches what the simulator's page is made of, and turns VLLM_METRICS_SANDBOX from
# AUTO into ON or OFF. Now and not in the build: without a registry, AUTO is a
# simulator without its page, not a build that fails.
set(sandbox_packages ${CMAKE_BINARY_DIR}/sandbox_packages)

# Sets `failure` to why there are no packages, or to nothing.
function(vllm_metrics_fetch_sandbox_packages failure)
  set(${failure} "" PARENT_SCOPE)
  if(NOT VLLM_METRICS_TOOLS OR NOT VLLM_METRICS_HTTP)
    set(${failure} "it needs VLLM_METRICS_TOOLS and VLLM_METRICS_HTTP"
      PARENT_SCOPE)
    return()
  endif()
  find_program(VLLM_METRICS_NODE node)
  find_program(VLLM_METRICS_NPM npm)
  if(NOT VLLM_METRICS_NODE OR NOT VLLM_METRICS_NPM)
    set(${failure} "it needs node and npm (Debian: nodejs, npm)" PARENT_SCOPE)
    return()
  endif()

  set(web ${PROJECT_SOURCE_DIR}/src/tools/sandbox/web)
  set(complete ${sandbox_packages}/complete)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${web}/package.json ${web}/package-lock.json)
  # IS_NEWER_THAN is true where a file is missing.
  if(NOT ${web}/package-lock.json IS_NEWER_THAN ${complete} AND
      NOT ${web}/package.json IS_NEWER_THAN ${complete})
    return()
  endif()
  file(COPY ${web}/package.json ${web}/package-lock.json
    DESTINATION ${sandbox_packages})
  message(STATUS "Fetching the packages of the simulator's page")
  # Only what the lock file names; none of it runs a script.
  execute_process(
    COMMAND ${VLLM_METRICS_NPM} ci --ignore-scripts --no-audit --no-fund
      --loglevel=error --fetch-retries=1
    WORKING_DIRECTORY ${sandbox_packages}
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE said)
  if(result EQUAL 0)
    file(TOUCH ${complete})
  else()
    if(said MATCHES "request to [^\n]*")
      set(said "${CMAKE_MATCH_0}")
    endif()
    string(STRIP "${said}" said)
    set(${failure} "npm could not fetch its packages: ${said}" PARENT_SCOPE)
  endif()
endfunction()

if(VLLM_METRICS_SANDBOX)
  vllm_metrics_fetch_sandbox_packages(why_no_sandbox)
  if(why_no_sandbox STREQUAL "")
    set(VLLM_METRICS_SANDBOX ON)
  elseif(VLLM_METRICS_SANDBOX STREQUAL AUTO)
    if(VLLM_METRICS_TOOLS AND VLLM_METRICS_HTTP)
      message(STATUS "vllm-metrics-sim has no page: ${why_no_sandbox}")
    endif()
    set(VLLM_METRICS_SANDBOX OFF)
  else()
    message(FATAL_ERROR "VLLM_METRICS_SANDBOX: ${why_no_sandbox}\n"
      "Set -DVLLM_METRICS_SANDBOX=OFF to do without.")
  endif()
endif()
