# SPDX-License-Identifier: Apache-2.0
# What a user of libringbus finds after `cmake --install`: libraries, header, pkg-config
# and CMake package files.
include(CMakePackageConfigHelpers)

install(
    TARGETS ringbus
    EXPORT ringbus-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ringbus_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/libclient/include/ringbus
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(FILES ${PROJECT_SOURCE_DIR}/docs/man/ringbus.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
# Relative to the file itself, so that `cmake --install --prefix` may put it anywhere.
file(RELATIVE_PATH ringbus_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" ringbus_pc_up "${ringbus_pc_up}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/ringbus.pc.in ${CMAKE_CURRENT_BINARY_DIR}/ringbus.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ringbus.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(
    EXPORT ringbus-targets
    NAMESPACE ringbus::
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ringbus)
configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/ringbusConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ringbusConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ringbus)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ringbusConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ringbusConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ringbusConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ringbus)
