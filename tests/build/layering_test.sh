#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Includes only go down: no #include of a module above, of a neighbour on the same floor, or, outside
# src/, of anything but public headers. Nor does a script use a part of Lua from there.
#   layering_test.sh <source folder>
set -euo pipefail

declare -A floor

# Every module and its floor, from the ground up: CMakeLists.txt lists a floor a line. Neighbours do not know each other.
read_floors() { # <CMakeLists.txt>
    local line module number=0
    floor=()
    while read -r line; do
        for module in ${line//)/ }; do
            floor[$module]=$number
        done
        number=$((number + 1))
    done < <(sed -n '/^foreach(module$/,/)/p' "$1" | tail -n +2)
    [[ -n ${floor[base]-} && -n ${floor[lock]-} ]] || { echo "$1 lists no floors"; exit 1; }
}

# Folders of /usr/include that belong to the system, not to a library.
system='sys|net|netinet|arpa|linux'

may_use() { # <module> <module>
    [[ $1 = "$2" ]] || ((${floor[$2]} < ${floor[$1]}))
}

# Says each `<file>:<line>:<what it includes>` below the folders given, <> or "" included.
includes_in() {
    grep -rnoE --include='*.[ch]' --include='*.cc' --include='*.cpp' \
        '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<][^">]+[">]' "$@" |
        sed -E 's/^([^:]*:[0-9]+:)[^"<]*/\1/'
}

# Says what is wrong inside src/.
check_modules() {
    local file line what module other
    while IFS=: read -r file line what; do
        module=${file%%/*}
        other=${what:1:-1}
        if [[ -z ${floor[$module]-} ]]; then
            echo "src/$file: $module has no floor in CMakeLists.txt"
        elif [[ $what = '<'* ]]; then
            other=${other%%/*}
            [[ -z ${floor[$other]-} ]] || echo "src/$file:$line: a module's header is included with quotes: $what"
        elif [[ ! $other =~ ^[a-z].*/.*\.(h|def)$ || $other = *..* ]]; then
            echo "src/$file:$line: should read \"module/file.h\": $what"
        elif [[ -z ${floor[${other%%/*}]-} ]]; then
            echo "src/$file:$line: no such module: $what"
        elif ! may_use "$module" "${other%%/*}"; then
            echo "src/$file:$line: $module may not include $what"
        fi
    done < <(cd "$1/src" && includes_in -- *)
}

# Says what is wrong with `-- uses:` lines: one of the modules that have the part has to be below.
check_scripts() {
    local file line names name module path allowed
    while IFS=: read -r file line names; do
        module=${file%%/*}
        names=${names#*uses:}
        names=${names#"${names%%[! ]*}"} # what stands behind two blanks is for the reader
        for name in ${names%%  *}; do
            allowed=0
            for path in "$1"/src/*/"$name.lua"; do
                path=${path%/*}
                [[ -n ${floor[${path##*/}]-} ]] && may_use "$module" "${path##*/}" && allowed=1
            done
            ((allowed)) || echo "src/$file:$line: $module may not use the part $name"
        done
    done < <(cd "$1/src" && grep -rnE --include='*.lua' '^-- *uses:' -- *)
}

# Says what is wrong outside src/: a program there stands for any user's program.
check_users() {
    local folder file line what own
    for folder in include samples cli bench; do
        [[ -d $1/$folder ]] || continue
        while IFS=: read -r file line what; do
            own=${what:1:-1}
            if [[ $what = '"'* ]]; then
                own=$(realpath -m --relative-to="$1" "$1/${file%/*}/$own")
                [[ $own = "$folder"/* && -e $1/$own ]] || echo "$file:$line: not a header of its own: $what"
            elif [[ $own = */* && ! $own =~ ^(latchkey|$system)/[^/]*$ ]]; then
                echo "$file:$line: not a public header: $what"
            fi
        done < <(cd "$1" && includes_in "$folder")
    done
}

check() {
    check_modules "$1"
    check_scripts "$1"
    check_users "$1"
}

# The checker has to find what was planted, each line of it, and nothing else.
prove() {
    local tree expected found
    tree=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$tree'" EXIT
    plant() {
        mkdir -p "$tree/${1%/*}"
        printf '%s\n' "$2" >>"$tree/$1"
    }
    plant src/base/a.c '#include "redis/redis.h"'
    plant src/hub/a.c '#include "watchdog/watchdog.h"'
    plant src/lock/a.c '# include "rwlock/rwlock.h"'
    plant src/lock/b.c '#include "lock.h"'
    plant src/lock/c.c '#include <hub/hub.h>'
    plant src/lock/d.c '#include "attic/a.h"'
    plant src/attic/a.c '#include "base/base.h"'
    plant src/acquire/take.lua '-- uses: mutex'
    plant src/lock/mutex.lua '-- a part'
    plant samples/a.c '#include "lock/lock.h"'
    plant samples/b.c '#include <lock/lock.h>'
    plant samples/c.c '#include "../src/lock/lock.h"'
    found=$(check "$tree" | sed 's/:.*//' | sort)
    expected=$(cd "$tree" && printf '%s\n' src/base/a.c src/hub/a.c src/lock/[abcd].c src/attic/a.c \
        src/acquire/take.lua samples/[abc].c | sort)

    plant src/lock/good.c '#include "lock/lock.h"'
    plant src/lock/good.c '#include "acquire/acquire.h"'
    plant src/lock/good.c '#include <hiredis/hiredis.h>'
    plant src/lock/good.lua '-- uses:     queue mutex      what else it takes'
    plant src/acquire/queue.lua '-- a part'
    plant samples/good.h '#include <sys/wait.h>'
    plant samples/good.c '#include <latchkey/latchkey.h>'
    plant samples/deep/good.c '#include "../good.h"'
    [[ $expected = "$found" ]] && [[ $(check "$tree" | wc -l) = $(wc -l <<<"$expected") ]] && return
    echo "The checker itself is wrong: in a tree with planted mistakes it said"
    check "$tree"
    return 1
}

read_floors "$1/CMakeLists.txt"
prove
complaints=$(check "$1")
[[ -z $complaints ]] || { echo "$complaints"; exit 1; }
echo "$(cd "$1" && includes_in src | wc -l) includes"
