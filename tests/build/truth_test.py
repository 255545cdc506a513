#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages deny nothing that exists, name nothing that does not, and agree on versions.

    truth_test.py <source folder>

Denial   A paragraph, list item or table row with a phrase such as "not in this version", and all that stands below such a
         heading, names no public function or type, no kind of object and no URL scheme. A true denial is worded so that it
         does not: it says what there is.
Names    A function, a type and a member that a page names are in the headers.
Versions The table of docs/deployment.md has the versions that are needed and tested. What is needed is what the build
         files and the sources say. Each version on another page is one of that table, or that of version.h.
"""
import pathlib
import re
import sys

# What docs/performance.md names is what a machine happened to run when it was measured.
PAGES = "README.md CONTRIBUTING.md docs/*.md samples/*.md samples/*/*.md tests/models/*.md cli/latchkey.1 include/latchkey/*.h"
MEASURED = "docs/performance.md"
TABLE = "docs/deployment.md"

# --- denials -----------------------------------------------------------------------------------------------------------------

SELF = r"(?:this (?:version|release|library)|latchkey)"
LATER = r"(?:later|future|coming|next) (?:version|release)"
DONE = r"(?:here|supported|implemented|available|offered|provided|planned)"
DENIAL = re.compile(
    rf"\b(?:not|nor|never) (?:yet )?(?:\w+ )?(?:in|by|of|with|for) {SELF}\b"
    rf"|\b{SELF}(?: or [\w ]{{1,20}}?)? (?:cannot|can not|does not|has no|has not|lacks|knows no|offers no)\b"
    rf"|\b(?:no|without)\b[^.;|]{{1,60}}? in {SELF}\b|\bthere (?:is|are) no\b[^.;|]{{1,60}}? yet\b"
    rf"|\b(?:is|are) (?:not|never) (?:yet )?{DONE}\b(?! (?:and|or) (?:there|not there))"
    rf"|\bnot (?:yet )?(?:supported|implemented|available)\b|\bnot (?:here|yet)(?=\s*(?:[.,;:|)]|$))"
    rf"|\b(?:unsupported|unimplemented)\b|\bno support for\b|\b(?:in|for|until) a {LATER}\b",
    re.I,
)


def things(headers, kinds, url):
    """What exists, as one expression: names of the headers, kinds of objects, ways to reach servers."""
    names = set(re.findall(r"^LK_API [^;]*?\b(lk_[a-z_]+)\(", headers, re.M)) | set(re.findall(r"\b(lk_[a-z]+_t);", headers))
    objects = set(re.findall(r"^KIND\(\w+, \"([a-z]+)\"", kinds, re.M))
    objects |= {name[3:-5].rstrip("s") for name in names if name.endswith("_init")}
    servers = set(re.findall(r"cut_end\(scheme, \"([a-z]+)\"\)", url))
    schemes = set(re.findall(r"\bis\(scheme, \"([a-z+-]+)\"\)", url))
    assert len(names) > 100 and len(objects) > 8 and len(servers) > 2 and len(schemes) > 3, "the sources are not understood"
    words = {word.rstrip("s") for word in objects | servers} | {"read-write lock"}
    return re.compile(
        r"\b(?:" + "|".join(sorted(names, key=len, reverse=True)) + r")\b"
        r"|\b(?:" + "|".join(sorted(words)) + r")(?:e?s)?\b"
        r"|\b(?:" + "|".join(map(re.escape, sorted(schemes))) + r")(?:[+-](?:" + "|".join(sorted(servers)) + r"))?://",
        re.I,
    )


def plain(name, text):
    """A page as Markdown, without what is code: of a header its comments, of a man page what is set."""
    if name.endswith(".h"):
        comments = re.findall(r"/\*(.*?)\*/", text, re.S)
        return "\n\n".join(re.sub(r"^ *\* ?", "", comment, flags=re.M) for comment in comments)
    if name.endswith(".1"):
        text = re.sub(r"^\.S[HS] *(.*)", r"\n\n# \1\n", text, flags=re.M)
        text = re.sub(r"^\.(?:[BIR]{1,2}) +(.*)", r"\1", text, flags=re.M)
        text = re.sub(r"^\..*", "\n", text, flags=re.M)
        return re.sub(r"\\f[A-Z]|\\", "", text)
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def units(text):
    """Paragraphs, list items and table rows, each with the heading or the opening words that deny it, or none."""
    denying = opening = ""
    level = 0
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) |\||#)", text):
        block = " ".join(block.split())
        heading = re.match(r"(#+) (.*)", block)
        if heading:
            if DENIAL.search(heading[2]):
                denying, level = heading[2], len(heading[1])
            elif len(heading[1]) <= level:
                denying, level = "", 0
            opening = ""
            continue
        item = re.match(r"(?:[-*]|\d+\.) |\|", block)
        if not item:
            opening = ""
        yield block, denying or (opening if item else "")
        if not item and block.endswith(":"):
            said = DENIAL.search(re.split(r"[.;] ", block)[-1])
            opening = said[0] if said else ""


def denied(name, text, existing):
    """Complaints about denials of what exists."""
    for unit, above in units(plain(name, text)):
        phrase = above or (DENIAL.search(unit) or [""])[0]
        thing = existing.search(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", unit)) if phrase else None
        if thing:
            yield f"{name}: '{phrase}' is said of '{thing[0]}', which exists: {unit[:120]}"


# --- names -------------------------------------------------------------------------------------------------------------------


def unknown(name, text, headers):
    """Complaints about functions, types and members that the headers do not have."""
    for used in sorted(set(re.findall(r"\blk_(?!_)[a-z_]+(?=\()|\blk_[a-z]+_t\b", text))):
        if not re.search(rf"\b{used}\b", headers):
            yield f"{name}: there is no {used}"
    for struct, member in sorted(set(re.findall(r"\b(lk_[a-z]+)_t\.([a-z_]+)", text))):
        body = re.search(rf"typedef struct {struct} \{{(.*?)\}} {struct}_t;", headers, re.S)
        if body and not re.search(rf"\b{member}(?:\[\w+\])?;", body[1]):
            yield f"{name}: {struct}_t has no {member}"


# --- versions ----------------------------------------------------------------------------------------------------------------

NUMBER = r"\d+(?:\.\d+)*"
# The version of glibc that brought what the sources call.
OF_GLIBC = {"sem_clockwait": "2.30", "sigabbrev_np": "2.32", "strerrordesc_np": "2.32", "close_range": "2.34"}


def parts(version):
    return [int(part) for part in version.split(".")]


def needed(read):
    """What the build files and the sources need, by product."""
    found = {
        "CMake": re.search(rf"cmake_minimum_required\(VERSION ({NUMBER})", read("CMakeLists.txt")),
        "OpenSSL": re.search(rf"find_package\(OpenSSL ({NUMBER})", read("cmake/LatchkeyDependencies.cmake")),
        "hiredis": re.search(rf"\bhiredis>=({NUMBER})", read("cmake/LatchkeyDependencies.cmake")),
        "jansson": re.search(rf"\bjansson>=({NUMBER})", read("cmake/LatchkeyDependencies.cmake")),
        "Redis": re.search(rf"the server is older than Redis ({NUMBER})", read("src/redis/handshake.c")),
        "Valkey": re.search(rf"Valkey calls itself ({NUMBER}) there", read("src/redis/handshake.c")),
    }
    assert all(found.values()), f"nothing says which version is needed: {found}"
    calls = re.findall(r"\b(" + "|".join(OF_GLIBC) + r")\(", read("src/*/*.c") + read("cli/*.c"))
    return {product: match[1] for product, match in found.items()} | {
        "glibc": max((OF_GLIBC[call] for call in calls), key=parts),
        "Redisson": "-",
    }


def table(page):
    """What the table says: product -> (needed, [tested])."""
    rows = re.findall(r"^\| *([A-Za-z]+) *\| *([\d.]+|-) *\| *(\d[\d., ]*?) *\|$", page, re.M)
    return {product: (least, re.findall(NUMBER, tested)) for product, least, tested in rows}


def untold(told, need, redisson):
    """Complaints about the table itself."""
    for product, least in sorted(need.items()):
        if product not in told:
            yield f"{TABLE}: the table of versions has no {product}"
        elif told[product][0] != least:
            yield f"{TABLE}: {product} {told[product][0]} is not what is needed, which is {least}"
        elif not told[product][1] or (least != "-" and any(parts(one) < parts(least) for one in told[product][1])):
            yield f"{TABLE}: {product} was tested with nothing that is new enough"
    if "Redisson" in told and told["Redisson"][1] != [redisson]:
        yield f"{TABLE}: Redisson was tested with {', '.join(told['Redisson'][1])}, and scripts/lib.sh fetches {redisson}"


def is_of(version, whole):
    return parts(whole)[: len(parts(version))] == parts(version)


def wrong_versions(name, text, told, library):
    """Complaints about versions that are not those of the table, nor the library's own."""
    assert told, f"{TABLE} has no table of versions"
    products = "|".join(sorted(told, key=len, reverse=True))
    mention = rf"\b({products})(?:'s)?[`*]* ?(?:version |>= ?|≥ ?)?({NUMBER}(?:(?:, | and | or |, and ){NUMBER}(?![\w%]))*)(?![\w%]|\.\d)"
    for found in re.finditer(mention, text, re.I):
        product = next(one for one in told if one.lower() == found[1].lower())
        least, tested = told[product]
        before = re.split(r"[.;]\s|\||\n\s*\n", text[: found.start(2)])[-1]
        is_needed = re.search(r"\bneeds?\b|\brequires?\b|(?:at least|>=|≥) ?$", before) or re.match(
            r",? (?:or|and) (?:newer|later|above)", text[found.end() :]
        )
        for version in re.findall(NUMBER, found[2]):
            if is_needed and (least == "-" or not is_of(version, least)):
                yield f"{name}: {product} {version} is not what is needed, which is {least}"
            elif not any(is_of(version, one) for one in [least] * (least != "-") + tested):
                yield f"{name}: {product} {version} is neither needed nor tested: {TABLE} has the table"
    own = rf"\b(?:latchkey (?=\d+\.)|liblatchkey\.so\.)({NUMBER})|\bversion\"?:? \"?(\d+\.\d+\.\d+)"
    for found in re.finditer(own, text, re.I):
        version = found[1] or found[2]
        if not is_of(version, library):
            yield f"{name}: {found[0]}, but version.h has {library}"


# --- all of it -----------------------------------------------------------------------------------------------------------------


def check_this_test():
    headers = "LK_API int lk_cond_wait(void);\ntypedef struct lk_mutexinfo {\n    int holds;\n} lk_mutexinfo_t;\n"
    existing = re.compile(r"\blk_cond_wait\b|\b(?:quorum|sentinel|condition|barrier|latch)(?:e?s)?\b|\bredis-quorum://", re.I)
    lies = {
        "page.md": "None is proof: that would be a quorum, which this library does not have.",
        "row.md": "| code | here |\n| --- | --- |\n| `ENOTSUP` | this version or this server cannot: Sentinel, for example |",
        "list.md": "# Locks\n\n## Not in this version\n\n- Spin locks.\n- Conditions: `newCondition()`.\n\n# Barriers\n\nA barrier.",
        "below.md": "## What is not here\n\nQuorums need masters.",
        "colon.md": "Not yet supported:\n\n- `lk_cond_wait`\n\nA latch.",
        "scheme.md": "URLs with `redis-quorum://` are not\nsupported.",
        "later.md": "1. Barriers come in a later version.",
        "more.md": "There are no barriers in this version. Latchkey has no conditions.",
        "cond.h": "/*\n * cond.h - a condition\n *\n * Use  Not yet implemented: lk_cond_wait().\n */\nint not_supported_latch;",
        "page.1": ".SH BUGS\nA\n.B latch\nis not supported.\n",
    }
    for name, text in lies.items():
        assert len(list(denied(name, text, existing))) == 1, f"{name} is a lie: {list(denied(name, text, existing))}"
    truths = (
        "A quorum has no such queue. A latch that is not yet open is here and not there.",
        "Spin locks are not in this version.\n\nA barrier.",
        "## Not here\n\nSpin locks.\n\n## Here\n\nA quorum.",
        "```c\n/* barriers: not in this version */\n```",
    )
    for text in truths:
        assert not list(denied("page.md", text, existing)), list(denied("page.md", text, existing))
    assert list(unknown("p", "`lk_cond_wait()`, `lk_cond_nap()`, `lk_mutexinfo_t.holds`, `lk_mutexinfo_t.hold`", headers)) == [
        "p: there is no lk_cond_nap",
        "p: lk_mutexinfo_t has no hold",
    ]
    told = table("| product | needed | tested with |\n| --- | --- | --- |\n| Redis | 7.0 | 7.0.15, 8.0.2 |\n| Redisson | - | 3.42.0 |\n")
    assert told == {"Redis": ("7.0", ["7.0.15", "8.0.2"]), "Redisson": ("-", ["3.42.0"])}
    assert not list(untold(told, {"Redis": "7.0", "Redisson": "-"}, "3.42.0"))
    assert len(list(untold(told, {"Redis": "7.2", "Redisson": "-", "glibc": "2.34"}, "3.52.0"))) == 3
    assert len(list(untold({"Redis": ("7.0", ["6.2"])}, {"Redis": "7.0"}, ""))) == 1
    for text, count in (
        ("Redis 7.0.15 and Redisson 3.42, Redis 8 and a Redis 7.0 or newer; Redis 8.0.2 took 3 ms", 0),
        ("Redisson 3.52.0 and 4.7.0", 2),
        ("Redis 7.2, Redis 8.0.2 or newer", 2),
        ("Redis >= 6.2", 1),
        ("It needs Python 3 and Redis 7.0.15.", 1),
        ("It needs Redisson 3.42.0.", 1),
        ("It needs Python 3. Tested with Redis 7.0.15", 0),
        ("Latchkey 0.1 is version 0.1.0, liblatchkey.so.0.1, and latchkey 3 times", 0),
        ('find_package(latchkey 0.2 REQUIRED), "version": "0.1.1", liblatchkey.so.1', 3),
        ('.TH LATCHKEY 1 "2025-01-01" "Latchkey 1.0.0"', 1),
    ):
        wrong = list(wrong_versions("p", text, told, "0.1.0"))
        assert len(wrong) == count, (text, wrong)


def main(tree):
    check_this_test()

    def read(pattern):
        return "\n".join(path.read_text() for path in sorted(tree.glob(pattern)))

    headers = read("include/latchkey/*.h")
    declared = headers + read("cmake/*.cmake")
    existing = things(headers, read("src/client/kinds.def"), read("src/config/url.c"))
    told = table(read(TABLE))
    library = ".".join(re.findall(r"^#define LK_VERSION_\w+ (\d+)", read("include/latchkey/version.h"), re.M))
    redisson = re.search(r"^redisson_version=(\S+)", read("scripts/lib.sh"), re.M)[1]
    wrong = list(untold(told, needed(read), redisson))
    pages = [path for pattern in PAGES.split() for path in sorted(tree.glob(pattern))]
    for path in pages:
        name, text = str(path.relative_to(tree)), path.read_text()
        wrong += denied(name, text, existing)
        wrong += unknown(name, text, declared)
        if name != MEASURED:
            wrong += wrong_versions(name, text, told, library)
    assert len(pages) > 30, "there are pages"
    print("\n".join(wrong) or f"{len(pages)} pages")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
