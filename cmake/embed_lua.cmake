# SPDX-License-Identifier: MIT
# embed_lua.cmake - turn the Lua scripts of one module into C, at build time
#
#   cmake -DMODULE=lock -DSCRIPTS=<files> -DPARTS=<files> -DOUTPUT=<folder> -P embed_lua.cmake
#
# Writes scripts.h and scripts.c into the folder: a `const struct lk__script lk__lua_lock_acquire` for
# acquire.lua. The text embedded is that of the parts named by header lines `-- uses: queue token`, in
# this order, then the script's own, without comment lines, indentation and blank lines; the SHA1 is
# that of exactly these bytes.
#
# scripts.h also has lk__lua_lock_commands, the server's commands that these scripts use: "del exists ...".
# To be found, they have to stand in the call: redis.call('DEL', key), not redis.call(command, key).
#
# The header, the comment lines a file begins with, documents each KEYS[n]. It has to name 1..n without
# gaps, n being the highest that the script uses; parts get their keys as arguments.
cmake_minimum_required(VERSION 3.21)

function(refuse file why)
    message(FATAL_ERROR "${file}: ${why}")
endfunction()

# Split a Lua file into its header and its code. Long brackets and continued strings, the only places
# where a line's start is not the start of a line of code, are refused: so stripping needs no parser.
function(read_lua file header code)
    file(READ "${file}" text)
    if(text MATCHES "\\[=*\\[" OR text MATCHES "\\\\\r?\n")
        refuse("${file}" "no long brackets and no strings over several lines, please")
    endif()
    set(top "")
    if(text MATCHES "^(--[^\n]*\n)+")
        set(top "${CMAKE_MATCH_0}")
    endif()

    set(text "\n${text}\n")
    string(REGEX REPLACE "\n[ \t]*--[^\n]*" "" text "${text}")
    string(REGEX REPLACE "[ \t\r]+\n" "\n" text "${text}")
    string(REGEX REPLACE "\n[ \t\n]+" "\n" text "${text}")
    string(STRIP "${text}" text)

    set(${header} "${top}" PARENT_SCOPE)
    set(${code} "${text}" PARENT_SCOPE)
endfunction()

# The different numbers n of all KEYS[n] in a text, in order.
function(keys_in text result)
    string(REGEX MATCHALL "KEYS\\[[0-9]+\\]" keys "${text}")
    string(REGEX MATCHALL "[0-9]+" keys "${keys}")
    list(REMOVE_DUPLICATES keys)
    list(SORT keys COMPARE NATURAL)
    set(${result} "${keys}" PARENT_SCOPE)
endfunction()

# How many keys a script takes, once its header and its code agree on it.
function(count_keys file header code result)
    keys_in("${header}" documented)
    keys_in("${code}" used)
    list(LENGTH documented count)

    set(expected 0)
    foreach(key IN LISTS documented)
        math(EXPR expected "${expected} + 1")
        if(NOT key EQUAL expected)
            refuse("${file}" "the header documents KEYS[${key}], but KEYS[${expected}] is missing")
        endif()
    endforeach()

    set(highest 0)
    if(used)
        list(GET used -1 highest)
    endif()
    if(NOT highest EQUAL count)
        refuse("${file}" "the header documents ${count} KEYS, but the highest used is KEYS[${highest}]")
    endif()
    set(${result} ${count} PARENT_SCOPE)
endfunction()

# The text of the parts that a header names, each followed by a newline.
function(parts_of file header result)
    set(joined "")
    string(REGEX MATCHALL "-- *uses:[^\n]*" lines "${header}")
    string(REGEX REPLACE "-- *uses:" "" lines "${lines}")
    string(REGEX MATCHALL "[^; \t\r]+" names "${lines}")
    foreach(name IN LISTS names)
        set(paths "${PARTS}")
        list(FILTER paths INCLUDE REGEX "/${name}\\.lua$")
        list(LENGTH paths found)
        if(NOT found EQUAL 1)
            refuse("${file}" "uses ${name}: there are ${found} parts of this name")
        endif()
        read_lua("${paths}" part_header part)
        if(part MATCHES "KEYS")
            refuse("${paths}" "a part takes its keys as arguments, it does not use KEYS")
        elseif(part_header MATCHES "-- *uses:")
            refuse("${paths}" "a part uses no parts: its scripts name them all, in order")
        endif()
        string(APPEND joined "${part}\n")
    endforeach()
    set(${result} "${joined}" PARENT_SCOPE)
endfunction()

# The commands that a text calls, in lower case.
function(commands_in file text result)
    string(REGEX MATCHALL "redis\\.p?call\\(" calls "${text}")
    string(REGEX MATCHALL "redis\\.p?call\\('[A-Z]+'" named "${text}")
    list(LENGTH calls call_count)
    list(LENGTH named named_count)
    if(NOT call_count EQUAL named_count)
        refuse("${file}" "the name of a command has to stand in the call, in capitals and single quotes")
    endif()
    string(REGEX MATCHALL "'[A-Z]+" commands "${named}")
    list(TRANSFORM commands REPLACE "'" "")
    list(TRANSFORM commands TOLOWER)
    set(${result} "${commands}" PARENT_SCOPE)
endfunction()

# A text as C string literals, one a line.
function(c_literal text result)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "?" "\\?" text "${text}") # no trigraphs
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    set(${result} "\"${text}\"" PARENT_SCOPE)
endfunction()

string(TOUPPER "LK__${MODULE}_SCRIPTS_H" guard)
set(scripts_h "/* Made by the build from the .lua files of src/${MODULE}. */
#ifndef ${guard}
#define ${guard}

struct lk__script;

")
set(scripts_c "/* Made by the build from the .lua files of src/${MODULE}. */
#include \"${MODULE}/scripts.h\"

#include \"redis/redis.h\"
")

set(all_commands "")
foreach(file IN LISTS SCRIPTS)
    get_filename_component(name "${file}" NAME_WE)
    if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
        refuse("${file}" "the name has to be fit for C")
    endif()
    read_lua("${file}" header code)
    count_keys("${file}" "${header}" "${code}" keys)
    parts_of("${file}" "${header}" parts)

    set(text "${parts}${code}")
    commands_in("${file}" "${text}" commands)
    list(APPEND all_commands ${commands})
    string(SHA1 sha1 "${text}")
    c_literal("${text}" literal)
    string(APPEND scripts_h "extern const struct lk__script lk__lua_${MODULE}_${name};\n")
    string(APPEND scripts_c "
static const char ${name}_source[] =
    ${literal};

const struct lk__script lk__lua_${MODULE}_${name} = {
    .name = \"${MODULE}/${name}\",
    .source = ${name}_source,
    .length = sizeof(${name}_source) - 1,
    .sha1 = \"${sha1}\",
    .keys = ${keys},
};
")
endforeach()

list(REMOVE_DUPLICATES all_commands)
list(SORT all_commands)
list(JOIN all_commands " " all_commands)
string(APPEND scripts_h "\n/* The server's commands that these scripts use, divided by blanks. */
extern const char lk__lua_${MODULE}_commands[];\n")
string(APPEND scripts_c "\nconst char lk__lua_${MODULE}_commands[] = \"${all_commands}\";\n")

file(WRITE "${OUTPUT}/scripts.h" "${scripts_h}\n#endif\n")
file(WRITE "${OUTPUT}/scripts.c" "${scripts_c}")
