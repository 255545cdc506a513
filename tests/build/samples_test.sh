#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The samples build as a project of their own against the installed library, and run far enough to help.
#   samples_test.sh <samples> <prefix> <cmake> <its generator> <C compiler>
set -euo pipefail
samples=$1 prefix=$2 cmake=$3 generator=$4 cc=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" -S "$samples" -B "$work" -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc"
"$cmake" --build "$work"
while read -r name _; do
    [[ -z $name || $name = \#* ]] && continue
    program=$(find "$work" -type f -name "$name" -perm -u+x)
    LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name "liblatchkey.so.0.*" | head -n 1)") "$program" --help | grep -q -- --unsafe
done <"$samples/list"
