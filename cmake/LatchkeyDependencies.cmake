# SPDX-License-Identifier: MIT
# What the library stands on, as one target for its modules: latchkey_dependencies.
find_package(PkgConfig REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter) # for the build alone: cmake/scripts.py
find_package(Threads REQUIRED)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis>=0.14.1)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS SSL)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.13)

# hiredis asks for -I.../include/hiredis, a folder with names as common as "read.h" and "alloc.h".
# The sources say <hiredis/hiredis.h>, so the folder above it is all they need.
list(TRANSFORM HIREDIS_INCLUDE_DIRS REPLACE "/hiredis/?$" "")
set_target_properties(PkgConfig::HIREDIS PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${HIREDIS_INCLUDE_DIRS}")

add_library(latchkey_dependencies INTERFACE)
target_link_libraries(latchkey_dependencies INTERFACE PkgConfig::HIREDIS PkgConfig::JANSSON OpenSSL::SSL Threads::Threads)
