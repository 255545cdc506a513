#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The manual page renders without a warning, no words of it run together, and its version is that of the library.
#   man_test.sh <page> <version>
set -euo pipefail
page=$1 version=$2
grep -qE "^\.TH LATCHKEY 1 \"[0-9]{4}-[0-9]{2}-[0-9]{2}\" \"Latchkey $version\" " "$page" ||
    { echo "the page is not of $version: $(grep '^\.TH' "$page")"; exit 1; }
command -v groff >/dev/null || { echo "no groff"; exit 77; }

# Without hyphens, and with lines that are long enough to keep words whole.
render() { groff -man -wmac -Tascii -rLL=2000n -rHY=0 -P-cbou "$1"; }

# A macro such as .BR joins its arguments, so text that belongs on the next line loses its blanks.
joined() { grep -nE '[,;][[:alpha:]]|[[:alpha:]]{17}' || true; }

complaints=$(render "$page" 2>&1 >/dev/null)
[[ -z $complaints ]] || { echo "$complaints"; exit 1; }
words=$(render "$page" | joined)
[[ -z $words ]] || { echo "words that run together:"; echo "$words"; exit 1; }

# The patterns find such words.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for broken in '.BR \-s , and holds it' '.BR \-s and holds it until the end of' '.IR free ; a robust lock that was'; do
    { cat "$page" && printf '%s\n' "$broken"; } >"$work/page.1"
    [[ -n $(render "$work/page.1" | joined) ]] || { echo "not found: $broken"; exit 1; }
done
