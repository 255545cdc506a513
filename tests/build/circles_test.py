#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of a module form no circle: none calls, or reads a variable of, one that in the end leans on itself.

  circles_test.py <nm> <build folder> <exceptions>

What an object file defines and what it wants is read off its symbols. Circles that are known are lines of the file of
exceptions, "module: file file ...".
"""
import pathlib
import subprocess
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"


def symbols(nm, paths):
    """The names that each object file defines for others, and those that it wants: {path: (defined, wanted)}."""
    found = {path: (set(), set()) for path in paths}
    for line in subprocess.run([nm, "-A", *paths], check=True, capture_output=True, text=True).stdout.splitlines():
        path, rest = line.split(":", 1)
        kind, name = rest.split()[-2:]
        if kind in "TDBRVWU":
            found[path][kind == "U"].add(name)
    return found


def leans(files):
    """For each file, on which others: {name: {name}}."""
    home = {name: file for file, (defined, _) in files.items() for name in defined}
    return {file: {home[name] for name in wanted if name in home} - {file} for file, (_, wanted) in files.items()}


def reach(edges, start):
    seen, todo = set(), [start]
    while todo:
        for other in edges[todo.pop()] - seen:
            seen.add(other)
            todo.append(other)
    return seen


def circles(edges):
    """The sets of files that all lean on each other."""
    below = {file: reach(edges, file) for file in edges}
    return {frozenset(other for other in below[file] if file in below[other]) for file in edges if file in below[file]}


def modules(nm, build):
    """The files of each module that was built, with their symbols. A build folder keeps what has no source any more."""
    found = {}
    paths = sorted(str(path) for path in pathlib.Path(build, "src").glob("*/CMakeFiles/latchkey_*.dir/*.c.o"))
    for path, its in symbols(nm, paths).items():
        module, name = pathlib.Path(path).parts[-4], pathlib.Path(path).name.removesuffix(".c.o")
        if (SOURCES / module / f"{name}.c").exists():
            found.setdefault(module, {})[name] = its
    return found


def prove():
    """The search finds what was planted, and nothing else."""
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": {"f"}, "f": {"g"}, "g": {"e"}}
    assert circles(edges) == {frozenset("bc"), frozenset("efg")}
    assert leans({"a": ({"x"}, {"y", "z"}), "b": ({"y"}, set())}) == {"a": {"b"}, "b": set()}


def main(nm, build, exceptions):
    prove()
    known = {line.strip() for line in pathlib.Path(exceptions).read_text().splitlines() if line and line[0] != "#"}
    found, details, count = set(), {}, 0
    for module, files in modules(nm, build).items():
        edges = leans(files)
        count += len(files)
        for circle in circles(edges):
            line = f"{module}: {' '.join(sorted(circle))}"
            found.add(line)
            details[line] = [f"  {file} -> {' '.join(sorted(edges[file] & circle))}" for file in sorted(circle)]
    if count < 50:
        sys.exit(f"only {count} object files in {build}")
    for line in sorted(found - known):
        print("a circle of files:", line, *details[line], sep="\n")
    for line in sorted(known - found):
        print(f"no circle any more, it may leave {exceptions}: {line}")
    print(f"{count} files")
    return 1 if found - known else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
