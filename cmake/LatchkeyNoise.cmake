# SPDX-License-Identifier: MIT
# The library with delays at its locks and atomic operations: tests/support/noise/noise.h has the words.
# Every module has the header in front of its sources, and what the header calls is a module as well.
set(folder "${PROJECT_SOURCE_DIR}/tests/support/noise")
target_compile_options(latchkey_flags INTERFACE "SHELL:-include ${folder}/noise.h" -Wno-shadow)

add_library(latchkey_noise OBJECT "${folder}/noise.c")
set_target_properties(latchkey_noise PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_compile_definitions(latchkey_noise PRIVATE _GNU_SOURCE)
target_link_libraries(latchkey_noise PRIVATE latchkey_warnings)
set_property(GLOBAL APPEND PROPERTY LATCHKEY_MODULES latchkey_noise)
