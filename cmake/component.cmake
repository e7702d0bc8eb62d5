# A component is a target vllm_metrics::<component>, built from one or more
# rooms: include/vllm_metrics/<room>/*.h and src/<room>/*.cc.

function(vllm_metrics_add_component component)
  set(target vllm_metrics_${component})
  foreach(room IN LISTS ARGN)
    file(GLOB room_headers CONFIGURE_DEPENDS
      ${PROJECT_SOURCE_DIR}/include/vllm_metrics/${room}/*.h)
    file(GLOB room_sources CONFIGURE_DEPENDS
      ${PROJECT_SOURCE_DIR}/src/${room}/*.cc)
    list(APPEND headers ${room_headers})
    list(APPEND sources ${room_sources})
  endforeach()

  add_library(${target} ${sources})
  add_library(vllm_metrics::${component} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/include
    FILES ${headers})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  vllm_metrics_enable_warnings(${target})

  # 0.x versions break the ABI with the minor number. Position independent even
  # when static: engines are often shared libraries, loaded from Python.
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${component}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)

  if(BUILD_SHARED_LIBS)
    set(exports_map ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    target_link_options(${target} PRIVATE LINKER:--version-script=${exports_map})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${exports_map})
  else()
    target_compile_definitions(${target} PUBLIC VLLM_METRICS_STATIC)
  endif()
endfunction()

# Headers that need nothing but the standard library: nothing to link.
function(vllm_metrics_add_header_component component)
  set(target vllm_metrics_${component})
  file(GLOB headers CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/include/vllm_metrics/${component}/*.h)
  add_library(${target} INTERFACE)
  add_library(vllm_metrics::${component} ALIAS ${target})
  target_sources(${target} INTERFACE FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/include
    FILES ${headers})
  target_compile_features(${target} INTERFACE cxx_std_20)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${component})
endfunction()
