#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `cmake --install` brings all it should. What it made is then moved, so that the tests after this one
# show that an installed tree works at another place.
#   install_test.sh <cmake> <build folder> <prefix> <name of its library folder> <version>
set -euo pipefail
cmake=$1 build=$2 prefix=$3 lib=$4 version=$5

rm -rf "$prefix" "$prefix.first"
"$cmake" --install "$build" --prefix "$prefix.first"
mv "$prefix.first" "$prefix"

cd "$prefix"
failed=0
for path in bin/latchkey share/man/man1/latchkey.1 include/latchkey/{latchkey,version}.h "$lib"/liblatchkey.{so,a} "$lib"/pkgconfig/latchkey.pc \
    "$lib"/cmake/latchkey/latchkey-config{,-version}.cmake; do
    [[ -e $path ]] || { echo "not installed: $path"; failed=1; }
done
# A version that may break the interface has a soname of its own: before 1.0 each minor one, then each major one.
soname=liblatchkey.so.${version%%.*}
[[ $version != 0.* ]] || soname=liblatchkey.so.${version%.*}
readelf -d "$lib/liblatchkey.so" | grep -qF "[$soname]" && [[ -e $lib/$soname ]] || { echo "the soname is not $soname"; failed=1; }
bin/latchkey version || { echo "the installed command does not run"; failed=1; }
if grep -rIlF "$prefix.first" .; then
    echo "these files name the place they were first installed at"
    failed=1
fi
exit $failed
