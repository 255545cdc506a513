# SPDX-License-Identifier: MIT
# What the library stands on, as one target for its modules: latchkey_dependencies.
find_package(PkgConfig REQUIRED)
# For the build alone: cmake/scripts.py. A version manager's python3 is a shell script, which takes seven times as long to
# begin, so the interpreter behind it is asked for its path.
if(NOT Python3_EXECUTABLE)
    execute_process(COMMAND python3 -c "import sys; print(sys.executable)" OUTPUT_VARIABLE Python3_EXECUTABLE
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT Python3_EXECUTABLE)
    message(FATAL_ERROR "There is no python3, which the build needs. Install it, or give its path with -DPython3_EXECUTABLE=")
endif()
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
