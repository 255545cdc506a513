#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each example of a crontab or a systemd unit says where its server's URL comes from, because cron and systemd pass no
# LATCHKEY_URL of the user's.
#   examples_test.sh <source folder>
set -euo pipefail
tree=$1

# Prints "without" or "with", and file and line of each example in pages, manuals and the comments of shell scripts. An
# example is a block of code, or of comment lines, with a crontab's line or a unit's ExecStart= that begins latchkey, or with
# `latchkey run` and the word crontab.
examples() { # <file>...
    awk '
        function end_block() {
            if (job || (run && named))
                print (url ? "with" : "without"), file ":" start
            job = run = named = url = 0
        }
        BEGIN {
            number = "[0-9*][0-9*,/-]*[ \t]+"
            name = "[0-9A-Za-z*][0-9A-Za-z*,/-]*[ \t]+" # or a number: JAN, Mon
            crontab = "^[ \t]*(@[a-z]+[ \t]+|" number number number name name ").*latchkey"
        }
        FNR == 1 { end_block(); inside = 0; start = 1; file = FILENAME }
        file ~ /\.md$/ && /^ *```/ { end_block(); inside = !inside; start = FNR; next }
        file ~ /\.1$/ && /^\.(nf|EX)/ { end_block(); inside = 1; start = FNR; next }
        file ~ /\.1$/ && /^\.(fi|EE)/ { end_block(); inside = 0; next }
        {
            line = $0
            code = inside
            if (file ~ /\.sh$/)
                code = sub(/^[ \t]*#/, "", line)
            else if (file ~ /\.md$/ && !inside)
                code = /^(    |\t)/
            if (!code) {
                end_block()
                start = FNR + 1
                next
            }
            gsub(/\\-/, "-", line)
            job = job || line ~ crontab || line ~ /^[ \t]*ExecStart=.*latchkey/
            run = run || line ~ /latchkey run/
            named = named || line ~ /crontab/
            url = url || line ~ /LATCHKEY_URL|latchkey\.json/
        }
        END { end_block() }' "$@"
}

cd "$tree"
found=$(examples ./*.md docs/*.md samples/*.md samples/*.sh cli/*.1)
! grep '^without' <<<"$found" || { echo 'these do not say where the URL comes from'; exit 1; }
(($(wc -l <<<"$found") >= 4)) || { echo "only these were found: $found"; exit 1; }

# This test finds each kind of example that lacks the URL, and no other.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
job='latchkey run nightly -- /usr/local/bin/nightly'
cat >page.md <<END
\`\`\`
0 3 * * * $job
\`\`\`

    */5 0-6 1,15 JAN Mon root $job

\`\`\`
LATCHKEY_URL=redis://locks.example.com
@daily $job
\`\`\`

\`\`\`
[Service]
ExecStart=/usr/bin/$job
\`\`\`

\`\`\`
# the server is that of /etc/latchkey.json
0 3 * * * $job
\`\`\`

    $job
    0 3 * * * /usr/local/bin/nightly

    $job # of a crontab
END
printf '.nf\n@hourly %s\n.fi\n.EX\nExecStart=%s\n.EE\n' "${job//-/\\-}" "$job" >page.1
printf '#   LATCHKEY_URL=redis://a\n#\n#   0 3 * * * %s\ntrue\n# 0 3 * * * %s\n0 3 * * * %s\n' "$job" "$job" "$job" >page.sh
diff - <(examples page.md page.1 page.sh) <<'END'
without page.md:1
without page.md:5
with page.md:7
without page.md:12
with page.md:17
without page.md:25
without page.1:1
without page.1:4
with page.sh:1
without page.sh:5
END
