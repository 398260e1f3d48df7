# SPDX-License-Identifier: Apache-2.0
# ringbus_test(NAME LABEL [LIBRARIES lib...] [TIMEOUT s] [SERIAL] [ARGS arg...] SOURCES file...)
# Exit code 77 means skipped.
function(ringbus_test name label)
    if(NOT BUILD_TESTING)
        return()
    endif()
    cmake_parse_arguments(T "SERIAL" "TIMEOUT" "SOURCES;LIBRARIES;ARGS" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE ringbus_flags ${T_LIBRARIES})
    ringbus_quick_link(${name})
    ringbus_add_test(${name} ${label} TIMEOUT "${T_TIMEOUT}" COMMAND $<TARGET_FILE:${name}> ${T_ARGS})
    if(T_SERIAL)
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

# ringbus_add_test(NAME LABEL [TIMEOUT s] COMMAND cmd...)
function(ringbus_add_test name label)
    cmake_parse_arguments(T "" "TIMEOUT" "COMMAND" ${ARGN})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 60)
    endif()
    add_test(NAME ${name} COMMAND ${T_COMMAND} COMMAND_EXPAND_LISTS)
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77)
    if(RINGBUS_SANITIZE)
        set_tests_properties(
            ${name}
            PROPERTIES ENVIRONMENT
                       "ASAN_OPTIONS=detect_leaks=1:abort_on_error=0;UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=halt_on_error=1")
    endif()
endfunction()

# ringbus_full_test(NAME LABEL SECONDS [SANITIZED]): the same program with the numbers that its
# scenario names, as NAME_full; only `ctest -C full` runs it, with sanitizers if it says so.
function(ringbus_full_test name label seconds)
    if(BUILD_TESTING AND (NOT RINGBUS_SANITIZE OR "SANITIZED" IN_LIST ARGN))
        add_test(NAME ${name}_full CONFIGURATIONS full COMMAND $<TARGET_FILE:${name}>)
        set_tests_properties(
            ${name}_full
            PROPERTIES LABELS "${label};full" TIMEOUT ${seconds} SKIP_RETURN_CODE 77 RUN_SERIAL ON ENVIRONMENT
                       "RINGBUS_TEST_FULL=1")
    endif()
endfunction()
