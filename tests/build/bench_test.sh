#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/bench, with next to no time for each measurement: every program runs, and the JSON file has every figure with
# what the page about performance says of it. How fast anything is has no say here.
#   bench_test.sh <python3> <source folder> <folder of the bench's programs>
set -euo pipefail
python=$1 tree=$2 programs=$3
command -v redis-server >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$tree/scripts/bench" --smoke --programs "$programs" --json "$work/found.json" >"$work/shown" || { cat "$work/shown"; exit 1; }
"$python" - "$work/found.json" "$work/shown" "$tree/docs/performance.md" <<'END'
import json
import re
import sys

found, shown, page = json.load(open(sys.argv[1])), open(sys.argv[2]).read(), open(sys.argv[3]).read()
for key in ("machine", "versions", "placement", "rounds", "figures", "samples"):
    assert found[key], f"the file has no {key}"
for key, figure in found["figures"].items():
    assert key in shown, f"{key} is not in the table"
    if figure["median"] is None:
        assert figure["reason"], f"{key} is absent, and nobody says why"
    else:
        assert len(figure["rounds"]) == found["rounds"], f"{key} was not measured in each round"
        assert figure["median"] >= 0, f"{key} is {figure['median']}"
for key in re.findall(r"`([a-z_0-9]+)` \|", re.search("scripts/bench: table(.*?)scripts/bench: end", page, re.S)[1]):
    assert key in found["figures"], f"docs/performance.md has {key}, the bench has not"
measured = [key for key, figure in found["figures"].items() if figure["median"] is not None]
for key in ("pair_cpu_vs_redisson", "pair_vs_raw", "permit_vs_raw", "observed_pair_vs_not", "pairs_vs_conns_8", "contended_script_us_1",
            "contended_cpu_us_8", "handoffs_vs_queue_2", "handoff_gap_us_8", "fairness_8", "growth_queued_us_10",
            "multi_vs_one_8", "redlock_vs_one_5"):
    assert key in measured, f"{key} was not measured"
END
