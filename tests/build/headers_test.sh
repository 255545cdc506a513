#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each public header compiles alone, as strict C11 and as C++17. So does the example in the comment of each type that can
# be initialised statically.
#   headers_test.sh <include folder> <C compiler> <C++ compiler>
set -euo pipefail
include=$1 cc=$2 cxx=$3
strict=(-pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include")

# The lines between "For example:" and the end of that comment.
example_of() {
    awk '/^ \*\// { inside = 0 } inside { sub(/^ \*/, ""); sub(/^     /, ""); print } /^ \* .*For example:$/ { inside = 1 }' "$1"
}

failed=0 count=0 examples=0
for path in "$include"/latchkey/*.h; do
    header=latchkey/${path##*/}
    count=$((count + 1))
    # The second include proves the guard; the type is there because ISO C wants something in a file.
    program=$(printf '#include <%s>\n' "$header" "$header" && echo 'typedef int something;')
    "$cc" -std=c11 "${strict[@]}" -x c - <<<"$program" || { echo "$header: no C11"; failed=1; }
    "$cxx" -std=c++17 "${strict[@]}" -x c++ - <<<"$program" || { echo "$header: no C++17"; failed=1; }

    grep -q '^#define LK_[A-Z]*_INITIALIZER(' "$path" || continue
    example=$(example_of "$path")
    [[ -n $example ]] || { echo "$header: no example"; failed=1; continue; }
    examples=$((examples + 1))
    program=$(printf '#include <%s>\n' "$header" && echo "$example")
    "$cc" -std=c11 "${strict[@]}" -x c - <<<"$program" || { echo "$header: the example is no C11"; failed=1; }
    "$cxx" -std=c++17 "${strict[@]}" -x c++ - <<<"$program" || { echo "$header: the example is no C++17"; failed=1; }
done
echo "$count headers, $examples examples"
exit $((failed || count == 0 || examples == 0))
