#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each public header compiles alone, as strict C11 and as C++17.
#   headers_test.sh <include folder> <C compiler> <C++ compiler>
set -euo pipefail
include=$1 cc=$2 cxx=$3
strict=(-pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include")

failed=0 count=0
for path in "$include"/latchkey/*.h; do
    header=latchkey/${path##*/}
    count=$((count + 1))
    # The second include proves the guard; the type is there because ISO C wants something in a file.
    program=$(printf '#include <%s>\n' "$header" "$header" && echo 'typedef int something;')
    "$cc" -std=c11 "${strict[@]}" -x c - <<<"$program" || { echo "$header: no C11"; failed=1; }
    "$cxx" -std=c++17 "${strict[@]}" -x c++ - <<<"$program" || { echo "$header: no C++17"; failed=1; }
done
echo "$count headers"
exit $((failed || count == 0))
