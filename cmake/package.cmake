# `cpack -G DEB` in a build folder makes one Debian package: libraries, headers,
# CMake and pkg-config files, programs, and what operators get.
set(CPACK_PACKAGE_NAME vllm-metrics)
set(CPACK_PACKAGE_CONTACT
  "vllm_metrics maintainers <maintainers@vllm-metrics.invalid>")
set(CPACK_PACKAGE_DESCRIPTION "\
An embeddable C++20 library that gives an LLM serving engine the
observability of vLLM: the same Prometheus page, log lines and
extension point.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# What the headers include and a static library leaves to link; the programs'
# own needs are read from the binaries.
set(CPACK_DEBIAN_PACKAGE_DEPENDS libabsl-dev)
if(NOT BUILD_SHARED_LIBS)
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libfmt-dev")
  if(TARGET vllm_metrics_http)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libmicrohttpd-dev, zlib1g-dev")
  endif()
  if(TARGET vllm_metrics_otlp)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS
      ", libcurl4-openssl-dev, zlib1g-dev")
  endif()
endif()

install(FILES cmake/copyright
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/vllm-metrics)
install(DIRECTORY examples/observability
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/vllm-metrics
  USE_SOURCE_PERMISSIONS
  PATTERN __pycache__ EXCLUDE)

include(CPack)
