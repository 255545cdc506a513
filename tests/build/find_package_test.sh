#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# C and C++ programs of users find the installed library by CMake's find_package().
#   find_package_test.sh <prefix> <version> <cmake> <its generator> <C compiler> <C++ compiler>
set -euo pipefail
prefix=$1 version=$2 cmake=$3 generator=$4 cc=$5 cxx=$6
consumer=$(cd "$(dirname "$0")/consumer" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" -S "$consumer" -B "$work" -G "$generator" -DWANTED="$version" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx"
"$cmake" --build "$work"
"$work/version_c" "$version"
"$work/version_cpp" "$version"
