#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `cmake --install` brings all it should. What it made is then moved, so that the tests after this one
# show that an installed tree works at another place.
#   install_test.sh <cmake> <build folder> <prefix> <name of its library folder>
set -euo pipefail
cmake=$1 build=$2 prefix=$3 lib=$4

rm -rf "$prefix" "$prefix.first"
"$cmake" --install "$build" --prefix "$prefix.first"
mv "$prefix.first" "$prefix"

cd "$prefix"
failed=0
for path in bin/latchkey share/man/man1/latchkey.1 include/latchkey/{latchkey,version}.h "$lib"/liblatchkey.{so,so.0,a} "$lib"/pkgconfig/latchkey.pc \
    "$lib"/cmake/latchkey/latchkey-config{,-version}.cmake; do
    [[ -e $path ]] || { echo "not installed: $path"; failed=1; }
done
bin/latchkey version || { echo "the installed command does not run"; failed=1; }
if grep -rIlF "$prefix.first" .; then
    echo "these files name the place they were first installed at"
    failed=1
fi
exit $failed
