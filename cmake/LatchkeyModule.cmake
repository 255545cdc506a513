# SPDX-License-Identifier: MIT
# lk_module() builds one folder of src/, lk_libraries() links all of them into the two libraries.
#
#   lk_module(lock
#       SOURCES lock.c unlock.c           C files, compiled into the object library latchkey_lock
#       SCRIPTS acquire.lua release.lua   embedded as lk__lua_lock_acquire, ...: "lock/scripts.h"
#       PARTS   queue.lua                 Lua that scripts and parts of this floor and above may use
#                                         by a header line `-- uses: queue`
#       USES    acquire)                  modules it stands on; the floors below have to come first
#
# Part names are unique in the whole tree.

function(lk_module module)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;SCRIPTS;PARTS;USES")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "lk_module(${module}): unexpected ${arg_UNPARSED_ARGUMENTS}")
    endif()
    foreach(used IN LISTS arg_USES)
        if(NOT TARGET latchkey_${used})
            message(FATAL_ERROR "lk_module(${module}): ${used} is no module of a floor below")
        endif()
    endforeach()

    list(TRANSFORM arg_SCRIPTS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    list(TRANSFORM arg_PARTS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    if(arg_SCRIPTS OR arg_PARTS)
        lk_embed(${module} generated)
    endif()
    set_property(GLOBAL APPEND PROPERTY LATCHKEY_PARTS ${arg_PARTS})

    add_library(latchkey_${module} OBJECT ${arg_SOURCES} ${generated})
    set_target_properties(latchkey_${module} PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        C_VISIBILITY_PRESET hidden)
    target_include_directories(latchkey_${module} PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated")
    target_link_libraries(latchkey_${module} PRIVATE latchkey_flags latchkey_dependencies)
    # A source may include what is generated for this floor and for all below: it has to be there first.
    if(generated)
        add_custom_target(latchkey_${module}_scripts DEPENDS ${generated})
        set_property(GLOBAL APPEND PROPERTY LATCHKEY_GENERATED latchkey_${module}_scripts)
    endif()
    get_property(targets GLOBAL PROPERTY LATCHKEY_GENERATED)
    if(targets)
        add_dependencies(latchkey_${module} ${targets})
    endif()
    set_property(GLOBAL APPEND PROPERTY LATCHKEY_MODULES latchkey_${module})
endfunction()

set(lk_scripts_py "${PROJECT_SOURCE_DIR}/cmake/scripts.py")
set(lk_vocabulary "${PROJECT_SOURCE_DIR}/src/redis/vocabulary.h")

# Have scripts.h and scripts.c made of the arg_SCRIPTS and arg_PARTS of a module; `result` names the two.
function(lk_embed module result)
    set(folder "${PROJECT_BINARY_DIR}/generated/${module}")
    get_property(below GLOBAL PROPERTY LATCHKEY_PARTS)
    add_custom_command(
        OUTPUT "${folder}/scripts.h" "${folder}/scripts.c"
        COMMAND "${Python3_EXECUTABLE}" "${lk_scripts_py}" ${module} "${lk_vocabulary}" "${folder}"
                --scripts ${arg_SCRIPTS} --parts ${arg_PARTS} --below ${below}
        # The list file stands for the list itself: make does not notice that a command changed.
        DEPENDS ${arg_SCRIPTS} ${arg_PARTS} ${below} "${lk_vocabulary}" "${lk_scripts_py}" "${CMAKE_CURRENT_LIST_FILE}"
        COMMENT "Embedding the scripts of ${module}"
        VERBATIM)
    set_source_files_properties("${folder}/scripts.c" PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
    set(${result} "${folder}/scripts.h" "${folder}/scripts.c" PARENT_SCOPE)
endfunction()

# Link the modules into liblatchkey.so, which exports what the version script names, and liblatchkey.a.
function(lk_libraries)
    get_property(modules GLOBAL PROPERTY LATCHKEY_MODULES)
    list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)

    # Before 1.0 a minor version may break the interface, so its number is a part of the soname.
    set(soversion ${PROJECT_VERSION_MAJOR})
    if(soversion EQUAL 0)
        string(APPEND soversion .${PROJECT_VERSION_MINOR})
    endif()

    add_library(latchkey SHARED ${objects})
    add_library(latchkey_static STATIC ${objects})
    set_target_properties(latchkey PROPERTIES
        VERSION ${PROJECT_VERSION}
        SOVERSION ${soversion}
        LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/latchkey.map")
    set_target_properties(latchkey_static PROPERTIES OUTPUT_NAME latchkey)

    foreach(library latchkey latchkey_static)
        add_library(latchkey::${library} ALIAS ${library})
        set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
        target_include_directories(${library} INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
    endforeach()
    target_link_libraries(latchkey PRIVATE latchkey_dependencies)
    target_link_libraries(latchkey_static PUBLIC latchkey_dependencies)

    # nodelete: threads and fork handlers of the library outlive a dlclose().
    target_link_options(latchkey PRIVATE
        "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/latchkey.map"
        LINKER:-z,nodelete LINKER:-z,relro LINKER:-z,now)
    if(NOT LATCHKEY_SANITIZE) # a sanitizer's symbols come from the program
        target_link_options(latchkey PRIVATE LINKER:--no-undefined)
    endif()
endfunction()
