# SPDX-License-Identifier: MIT
# How sources are compiled. Warnings are a target, so that users of the library never inherit them.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(latchkey_warnings INTERFACE)
target_compile_options(latchkey_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wformat=2 -Wundef -Wvla -Wpointer-arith -Wwrite-strings
    -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>) # snprintf() cuts what is too long on purpose

# What every source of the library is compiled with.
add_library(latchkey_flags INTERFACE)
target_link_libraries(latchkey_flags INTERFACE latchkey_warnings)
target_compile_definitions(latchkey_flags INTERFACE _GNU_SOURCE)
target_compile_options(latchkey_flags INTERFACE
    -fstack-protector-strong
    $<$<BOOL:${LATCHKEY_WERROR}>:-Werror>
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE> # some compilers come with a value
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-D_FORTIFY_SOURCE=2>)

# A sanitizer has to be in every program that loads the library: for the whole tree, not for a target.
if(LATCHKEY_SANITIZE)
    add_compile_options(-fsanitize=${LATCHKEY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${LATCHKEY_SANITIZE})
endif()

# Counting, like a sanitizer, is for the whole tree. Counts of threads must not get lost: atomic.
if(LATCHKEY_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()
