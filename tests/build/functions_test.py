#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each public function is exported, named by a page of docs/, and called by a test; so is each attribute set and told of.

    functions_test.py <source folder>

A page names a function as lk_mutex_lock, or, in a paragraph or table that names others of its kind, as `_lock`.
"""
import pathlib
import re
import sys

OBJECTS = "mutex rwlock sem latch cond once barrier stripes multi redlock client events owner".split()


def functions(headers):
    return re.findall(r"^LK_API [^;]*?\b(lk_[a-z_]+)\(", headers, re.M)


def attributes(headers):
    """The kind and the field of all that attributes, and how one call takes a lock, can say."""
    for kind, body in re.findall(r"^typedef struct lk_([a-z]+) \{([^}]*)\} lk_(?:[a-z]+attr|how)_t;", headers, re.M):
        for field in re.findall(r"\b([a-z_]+)(?:\[\d+\])?;", re.sub(r"/\*.*?\*/", "", body, flags=re.S)):
            if field not in ("size", "lk_room"):
                yield kind, field


def named(pages):
    """All that the pages name; `_lock` beside any function of a mutex is lk_mutex_lock."""
    names = set()
    for text in re.split(r"\n\s*\n", pages):
        names |= set(re.findall(r"\blk_[a-z_]+", text))
        kinds = [kind for kind in OBJECTS if re.search(rf"\blk_{kind}_[a-z*]", text)]
        for short in re.findall(r"`(_[a-z_]+)", text):
            names |= {f"lk_{kind}{short}" for kind in kinds}
    return names


def lacking(headers, exported, pages, tests):
    """What is wrong, a line each."""
    told = named(pages)
    called = set(re.findall(r"\b(lk_[a-z_]+)(?=[(,)])", tests))  # or handed on to what calls it
    for name in functions(headers):
        if name not in exported:
            yield f"{name} is declared and not exported"
        if name not in told:
            yield f"{name} is on no page of docs/"
        if name not in called:
            yield f"{name} is called by no test"
    for kind, field in attributes(headers):
        if not re.search(rf"`[^`\n]*\b{field}\b", pages):
            yield f"{field} of lk_{kind}_t is on no page of docs/"
        if not re.search(rf"\.{field}\b", tests):
            yield f"{field} of lk_{kind}_t is set by no test"


def check_this_test():
    headers = """LK_API int lk_mutex_lock(void);
LK_API LK_MUST_CHECK int lk_sem_wait(lk_sem_t *s,
                                     int n);
typedef struct lk_semattr {
    size_t size; /* of it; all */
    int leased;
} lk_semattr_t;
"""
    assert list(lacking(headers, ["lk_sem_wait"], "lk_mutex_unlock, `_lock`\n\nlk_sem_post, `leased`", "lk_mutex_lock()")) == [
        "lk_mutex_lock is declared and not exported",
        "lk_sem_wait is on no page of docs/",
        "lk_sem_wait is called by no test",
        "leased of lk_semattr_t is set by no test",
    ]


def read(folder, *patterns):
    return "\n".join(path.read_text() for pattern in patterns for path in sorted(folder.glob(pattern)))


def main(tree):
    check_this_test()
    headers = read(tree, "include/latchkey/*.h")
    exported = (tree / "tests/build/symbols.txt").read_text().split()
    assert len(functions(headers)) > 100 and len(list(attributes(headers))) > 20, "the headers are not understood"
    wrong = list(lacking(headers, exported, read(tree, "docs/*.md"), read(tree, "tests/*/*.c")))
    print("\n".join(wrong) or f"{len(functions(headers))} functions")
    return bool(wrong)


sys.exit(main(pathlib.Path(sys.argv[1])))
