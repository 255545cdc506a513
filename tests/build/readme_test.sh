#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The README is short and true: its first C program compiles against the installed library without a warning, its
# transcript is what the installed command shows, and its durations are those that the scripts report.
#   readme_test.sh <source folder> <prefix> <its library folder> <C compiler>
set -euo pipefail
tree=$1 prefix=$2 lib=$3 cc=$4
readme=$tree/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

block() { # <language>: the first block of that language
    awk -v first="^\`\`\`$1\$" '/^```/ && inside { exit } inside { print } $0 ~ first { inside = 1 }' "$readme"
}

(($(wc -l <"$readme") <= 120)) || { echo "$readme has more than 120 lines"; exit 1; }

block c >"$work/readme.c"
grep -q 'main(' "$work/readme.c" || { echo "no program in the first \`\`\`c block of $readme"; exit 1; }
read -ra flags <<<"$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs latchkey)"
"$cc" -Wall -Wextra -Werror "$work/readme.c" -o "$work/readme" "${flags[@]}"

# The same but for numbers, ids and the width of columns.
masked() { sed -E 's/ [0-9a-f]{8}$/ ID/; s/[0-9]+(\.[0-9]+)?/N/g; s/ +/ /g; /^$/d'; }
for needed in script redis-server redis-cli; do command -v "$needed" >/dev/null || { echo "no $needed"; exit 77; }; done
"$tree/scripts/transcript" --command "$prefix/bin/latchkey" >"$work/shown" 2>"$work/said" || { cat "$work/said"; exit 1; }
diff <(block text | masked) <(masked <"$work/shown") || { echo "scripts/transcript shows something else"; exit 1; }

# The words of scripts/test and scripts/samples at their start.
mapfile -t durations < <(sed -nE "s/.*time='([^']*)'.*/\1/p" "$tree/scripts/test"
    sed -nE 's/^say "This takes ([a-z ]*) on .*/\1/p' "$tree/scripts/samples")
((${#durations[@]} == 4)) || { echo "the scripts report ${#durations[@]} durations, not 4"; exit 1; }
for page in README.md CONTRIBUTING.md; do
    for duration in "${durations[@]}"; do
        grep -qF "$duration" "$tree/$page" || { echo "$page does not say '$duration'"; exit 1; }
    done
done
