# SPDX-License-Identifier: Apache-2.0
# One interface target carries what every source of ringbus is compiled with.
add_library(ringbus_flags INTERFACE)
target_include_directories(ringbus_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(ringbus_flags INTERFACE _GNU_SOURCE)
target_compile_options(
    ringbus_flags
    INTERFACE -Wall
              -Wextra
              -Wpedantic
              -Wconversion
              -Wshadow
              -Wstrict-prototypes
              -Wmissing-prototypes
              -Wvla
              -Wundef
              -Wcast-qual
              -Wcast-align
              -Wwrite-strings
              -Wformat=2
              -Wswitch-enum
              -Wimplicit-fallthrough
              -fno-omit-frame-pointer
              $<$<C_COMPILER_ID:Clang>:-Wdocumentation>
              $<$<BOOL:${RINGBUS_WERROR}>:-Werror>)
if(RINGBUS_SANITIZE)
    target_compile_options(ringbus_flags INTERFACE -fsanitize=${RINGBUS_SANITIZE}
                                                   -fno-sanitize-recover=all -g)
    target_link_options(ringbus_flags INTERFACE -fsanitize=${RINGBUS_SANITIZE})
else()
    target_compile_options(ringbus_flags INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-fstack-protector-strong>)
    target_compile_definitions(ringbus_flags INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:_FORTIFY_SOURCE=2>)
endif()
if(RINGBUS_FUZZ)
    target_compile_options(ringbus_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_compile_definitions(ringbus_flags INTERFACE $<$<CONFIG:Debug>:RBI_DEBUG=1>)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT RINGBUS_SANITIZE)
    include(CheckIPOSupported)
    check_ipo_supported(RESULT ringbus_ipo LANGUAGES C OUTPUT ringbus_ipo_why)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${ringbus_ipo})
    # With machine code beside it, so that tests link in no time (ringbus_quick_link()).
    if(ringbus_ipo AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        target_compile_options(ringbus_flags INTERFACE -ffat-lto-objects)
    endif()
endif()

# ringbus_quick_link(TARGET): a program that is run by tests alone, and is not optimised as a whole:
# each of some two hundred would take seconds for that.
function(ringbus_quick_link target)
    set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
    if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        target_link_options(${target} PRIVATE -fno-lto)
    endif()
endfunction()
