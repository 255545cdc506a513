#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The driver of the models fails when a model breaks its word, in each way it can.
#   check_test.sh <tests/models/check>
set -euo pipefail
check=$1
{ command -v spin && command -v tcc; } >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A counter that somebody may set too high, or that may run for too long.
model() { # <search>
    printf '/*\n *   %s\n */\n' "$1"
    cat <<'END'
int count = 0;
active proctype counter()
{
    do
    :: count < END -> count++
    :: count == END -> break
    od;
#ifdef WRONG
    assert(count != END)
#endif
#ifdef STUCK
    count == 0
#endif
}
#ifdef LIVE
ltl arrives { <> (count == GOAL) }
#endif
END
}

# The driver's last words about this search must hold the words, and its exit code be that.
expect() { # <exit code> <words> <search>
    local code=0
    model "$3" >"$work/tiny.pml"
    "$check" "$work/tiny.pml" >"$work/said" 2>&1 || code=$?
    [[ $code = "$1" ]] && grep -qF -- "$2" "$work/said" && return
    echo "exits $code, not $1 with '$2', after '$3':"
    cat "$work/said"
    exit 1
}

expect 0 'clean ' 'clean  a right one                -DEND=5'
expect 0 'found ' 'found  a planted mistake          -DEND=5 -DWRONG'
expect 0 'found ' 'found  a planted standstill       -DEND=5 -DSTUCK'
expect 0 'clean ' 'clean  it arrives                 -DEND=5 -DLIVE -DGOAL=5'
expect 0 'found ' 'found  it never arrives           -DEND=5 -DLIVE -DGOAL=6'
expect 1 'but it is found' 'clean  a mistake nobody planted  -DEND=5 -DWRONG'
expect 1 'but it is found' 'clean  it never arrives          -DEND=5 -DLIVE -DGOAL=6'
expect 1 'but it is clean' 'found  a mistake that is none    -DEND=5'
expect 1 'but it is deeper than' 'clean  cut short                  -DEND=300000'
expect 1 'but it is deeper than' 'found  cut short                  -DEND=300000 -DWRONG'
expect 1 'but it is no search' 'clean  no model                   -DEND=('
expect 1 'no search in its first comment' 'nothing at all'
