# The page in a real browser. playwright-core drives Debian's chromium; it is
# installed into the build folder before the first of these tests.
# These and the effects are about the simulator's figures: a sanitizer would only
# be slow.
set_tests_properties(sandbox.effects PROPERTIES LABELS source)

find_program(VLLM_METRICS_CHROMIUM chromium)
if(NOT VLLM_METRICS_CHROMIUM)
  message(STATUS "no browser tests: chromium is missing")
  return()
endif()
set(driver ${CMAKE_CURRENT_BINARY_DIR}/sandbox)
file(MAKE_DIRECTORY ${driver})
configure_file(sandbox/package.json ${driver}/package.json COPYONLY)
configure_file(sandbox/package-lock.json ${driver}/package-lock.json COPYONLY)
add_test(NAME sandbox.driver
  COMMAND ${VLLM_METRICS_NPM} ci --ignore-scripts --no-audit --no-fund
  WORKING_DIRECTORY ${driver})
set_tests_properties(sandbox.driver PROPERTIES
  FIXTURES_SETUP sandbox_driver LABELS source)
add_test(NAME sandbox.browser
  COMMAND ${VLLM_METRICS_NODE}
    ${CMAKE_CURRENT_SOURCE_DIR}/sandbox/browser_test.mjs
    $<TARGET_FILE:vllm-metrics-sim> ${driver} ${VLLM_METRICS_CHROMIUM})
set_tests_properties(sandbox.browser PROPERTIES
  FIXTURES_REQUIRED sandbox_driver LABELS source TIMEOUT 240)

# `./dev soak` runs it.
add_test(NAME sandbox.soak CONFIGURATIONS soak
  COMMAND ${VLLM_METRICS_NODE}
    ${CMAKE_CURRENT_SOURCE_DIR}/sandbox/browser_soak.mjs
    $<TARGET_FILE:vllm-metrics-sim> ${driver} ${VLLM_METRICS_CHROMIUM})
set_tests_properties(sandbox.soak PROPERTIES
  FIXTURES_REQUIRED sandbox_driver LABELS source TIMEOUT 900)
