# SPDX-License-Identifier: MIT
# What `cmake --install` puts where. The tree may be moved afterwards: nothing in it names its own place.
include(CMakePackageConfigHelpers)

install(TARGETS latchkey EXPORT latchkey INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS latchkey_static)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/latchkey" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h")

# The shared library brings what it needs along, so the exported targets are the whole package config.
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/latchkey")
install(EXPORT latchkey NAMESPACE latchkey:: FILE latchkey-config.cmake DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/latchkey-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/latchkey-config-version.cmake" DESTINATION "${package}")

# latchkey.pc finds its prefix from where it lies, ${pcfiledir}; lib/ may have a level more, as on Debian.
file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/latchkey.pc.in" "${PROJECT_BINARY_DIR}/latchkey.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/latchkey.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
