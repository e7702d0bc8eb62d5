# The warnings this project is clean under, on GCC and Clang. PRIVATE always:
# what a user compiles with is the user's choice. They become errors through
# CMAKE_COMPILE_WARNING_AS_ERROR, which only the presets set.
#
# Off are -Wnull-dereference and -Wrestrict: GCC 12 reports both inside
# std::string when it optimises.
function(vllm_metrics_enable_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic
    -Wcast-align -Wcast-qual
    -Wconversion -Wsign-conversion -Wdouble-promotion
    -Wextra-semi -Wformat=2 -Wimplicit-fallthrough
    -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
    -Wshadow -Wundef -Wunused
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-branches -Wduplicated-cond
      -Wlogical-op -Wno-restrict -Wuseless-cast>
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wthread-safety-beta
      -Wunreachable-code>)
endfunction()
