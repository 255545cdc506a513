#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The first C program of the README compiles against the installed library, without a warning.
#   readme_test.sh <README.md> <installed library folder> <C compiler>
set -euo pipefail
readme=$1 lib=$2 cc=$3
[[ -e $readme ]] || { echo "no README yet"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk '/^```/ && inside { exit } inside { print } /^```c$/ { inside = 1 }' "$readme" >"$work/readme.c"
grep -q 'main(' "$work/readme.c" || { echo "no program in the first \`\`\`c block of $readme"; exit 1; }

read -ra flags <<<"$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs latchkey)"
"$cc" -Wall -Wextra -Werror "$work/readme.c" -o "$work/readme" "${flags[@]}"
