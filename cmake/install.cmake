# Installs the components, each with its own export set, so that a user needs
# only the dependencies of what the user asks for.
include(CMakePackageConfigHelpers)

set(components primitives core testing)
if(TARGET vllm_metrics_http)
  list(APPEND components http)
endif()
if(TARGET vllm_metrics_shm)
  list(APPEND components shm)
endif()
if(TARGET vllm_metrics_model_config)
  list(APPEND components model_config)
endif()
if(TARGET vllm_metrics_protobuf)
  list(APPEND components protobuf)
endif()
if(TARGET vllm_metrics_otlp)
  list(APPEND components otlp)
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vllm_metrics)

foreach(component IN LISTS components)
  install(TARGETS vllm_metrics_${component}
    EXPORT vllm_metrics-${component}
    FILE_SET HEADERS)
  install(EXPORT vllm_metrics-${component}
    FILE vllm_metrics-${component}.cmake
    NAMESPACE vllm_metrics::
    DESTINATION ${package_dir})
endforeach()

configure_package_config_file(cmake/vllm_metrics-config.cmake.in
  vllm_metrics-config.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(vllm_metrics-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/vllm_metrics-config.cmake
  ${PROJECT_BINARY_DIR}/vllm_metrics-config-version.cmake
  DESTINATION ${package_dir})

# pkg-config: what a static library needs, its users link. A shared library
# brings that itself, and asks of its users only what its headers include.
function(vllm_metrics_install_pkgconfig component description)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "PUBLIC;PRIVATE")
  set(requires ${arg_PUBLIC})
  if(NOT BUILD_SHARED_LIBS)
    list(APPEND requires ${arg_PRIVATE})
    set(cflags -DVLLM_METRICS_STATIC)
    set(libs -pthread -l${CMAKE_DL_LIBS})
  endif()
  list(JOIN requires ", " requires)
  list(JOIN libs " " libs)
  file(RELATIVE_PATH path_to_prefix
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  configure_file(cmake/vllm_metrics.pc.in vllm_metrics-${component}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/vllm_metrics-${component}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

vllm_metrics_install_pkgconfig(core "${PROJECT_DESCRIPTION}"
  PUBLIC absl_status absl_statusor
  PRIVATE absl_strings fmt)
vllm_metrics_install_pkgconfig(testing "For tests of metrics of your own"
  PUBLIC vllm_metrics-core)
if(TARGET vllm_metrics_http)
  vllm_metrics_install_pkgconfig(http "Serves vllm_metrics over HTTP"
    PUBLIC vllm_metrics-core
    PRIVATE libmicrohttpd zlib fmt)
endif()
if(TARGET vllm_metrics_shm)
  vllm_metrics_install_pkgconfig(shm
    "Shares vllm_metrics between processes"
    PUBLIC vllm_metrics-core
    PRIVATE fmt)
endif()
if(TARGET vllm_metrics_model_config)
  vllm_metrics_install_pkgconfig(model_config
    "Reads a model's shape for vllm_metrics from its config.json"
    PUBLIC vllm_metrics-core
    PRIVATE absl_strings)
endif()
if(TARGET vllm_metrics_protobuf)
  vllm_metrics_install_pkgconfig(protobuf "Writes vllm_metrics as protobuf"
    PUBLIC vllm_metrics-core)
endif()
if(TARGET vllm_metrics_otlp)
  vllm_metrics_install_pkgconfig(otlp "Pushes vllm_metrics to OpenTelemetry"
    PUBLIC vllm_metrics-core
    PRIVATE libcurl zlib absl_strings fmt)
endif()
