#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# C and C++ programs of users find the installed library by pkg-config, shared and static.
#   pkgconfig_test.sh <installed library folder> <version> <C compiler> <C++ compiler>
set -euo pipefail
lib=$1 version=$2 cc=$3 cxx=$4
consumer=$(cd "$(dirname "$0")/consumer" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
[[ $(pkg-config --modversion latchkey) = "$version" ]]
if pkg-config --libs latchkey | grep -E 'hiredis|jansson'; then
    echo "a program linked with the shared library needs no libraries of ours"
    exit 1
fi

read -ra shared <<<"$(pkg-config --cflags --libs latchkey)"
read -ra static <<<"$(pkg-config --static --cflags --libs latchkey)"
"$cc" -Wall -Werror "$consumer/version.c" -o shared_c "${shared[@]}"
"$cxx" -Wall -Werror "$consumer/version.cpp" -o shared_cpp "${shared[@]}"
"$cc" "$consumer/version.c" -o static_c -static "${static[@]}"
"$cxx" "$consumer/version.cpp" -o static_cpp -static "${static[@]}"

for program in shared_c shared_cpp static_c static_cpp; do
    echo "$program"
    "./$program" "$version"
done
