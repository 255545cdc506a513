#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""script_docs.py - write what the headers of the Lua scripts say into the pages of docs/

  script_docs.py write <source folder>
  script_docs.py check <source folder>      changes nothing, and fails where `write` would

docs/keys.md has three stretches between comments, `<!-- scripts/docs: NAME -->` and `<!-- scripts/docs: end -->`:
the scripts of each object, the verdicts, and what is filled in at each send. docs/security.md has the commands of the
access rule, and which of them mutexes do without. All else on these pages is written by hand.
"""
import difflib
import glob
import os
import re
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
from scripts import Module, Refused, Vocabulary, commands_in, refuse  # noqa: E402

# Redis' words for the types of keys, as the pages have them.
KEY_TYPES = {"hash": "hash", "string": "string", "zset": "sorted set", "set": "set", "list": "list"}

# What the rule begins with: commands that C sends itself, two that most scripts have, too, and those of redisson.lua that it
# can do without. The test security/rights compares the rule with the C files.
GENERAL = "eval evalsha ping echo time subscribe unsubscribe publish role info client|setname".split()
GENERAL += ["pubsub|numsub", "pubsub|shardnumsub"]
OF_SCRIPTS = ("time", "publish")
# What people and their tools look with: what these need beyond the rule is in a row of its own.
TOOLS = ("inspect",)


class Row:
    """A script, as the pages show it."""

    def __init__(self, module, script):
        self.file = script.file
        self.called = f"`{module.name}/{script.name}`"
        first = re.match(rf"-- {script.name}\.lua - (\S.*)", self.file.header)
        if not first:
            refuse(self.file.path, f"the header does not begin with '{script.name}.lua - what it does'", 1)
        self.title = first.group(1).strip()
        self.resend = " ".join(text for _, text in self.file.words("resend"))
        self.keys = script.keys if script.typed else {}
        self.short_keys = script.short_keys if script.typed else 0
        if script.typed:
            self.marked = " `settings`?" if script.takes_settings else ""
            self.arguments = ", ".join(self.argument(script, argument) for argument in script.arguments()[:-1])
            self.answers = "; ".join(self.answers_of(script))

    def notes(self):
        """(name, what stands for the reader behind it) of the arguments that have a line of the header with a note."""
        lines = self.file.header.splitlines()
        for number, text in self.file.words("args"):
            note = lines[number - 1].partition(text)[2].strip()
            for item in filter(None, text.split(",") if note else ()):
                yield item.split()[0], note

    @staticmethod
    def argument(script, argument):
        usual = f" ({script.defaults[argument.name]})" if argument.name in script.defaults else ""
        if argument.origin == "flags":
            bits = sorted((bit, name) for name, bit in script.flag_bits().items())
            return f"flags{usual}: " + " ".join(f"`{name}` {bit}" for bit, name in bits)
        return f"`{argument.name}`" + (" text" if argument.kind == "text" else usual)

    @staticmethod
    def answers_of(script):
        """Verdicts that are answered with the same, together; those with nothing come last."""
        grouped = {}
        for name, elements in script.verdicts.items():
            grouped.setdefault(", ".join(map(Row.element, elements)), []).append(name)
        for said, names in sorted(grouped.items(), key=lambda item: not item[0]):
            yield " ".join(f"`{name}`" for name in names) + (f": {said}" if said else "")

    @staticmethod
    def element(element):
        mark = "?" if element.optional else "..." if element.several else ""
        return element.name + (" text" if element.kind == "text" else "") + mark

    def cells(self):
        keys = " ".join(f"`{name}`" if i < self.short_keys else f"(`{name}`)" for i, name in enumerate(self.keys))
        return [f"{self.called}: {self.title}", keys + self.marked, self.arguments + (self.marked and ", `settings` text?"), self.answers, self.resend]


class Tree:
    """All that the sources say of scripts."""

    def __init__(self, folder):
        self.folder = folder
        self.vocabulary = Vocabulary(self.path("src/redis/vocabulary"))
        self.rows, self.raw, self.commands = [], [], {}
        scripts = {}
        for path in sorted(glob.glob(self.path("src/*/CMakeLists.txt"))):
            listed = re.search(r"\bSCRIPTS((?:\s+\w+\.lua)+)", self.text_of(path))
            if listed:
                at = os.path.dirname(path)
                scripts[os.path.basename(at)] = [os.path.join(at, name) for name in listed.group(1).split()]
        known = {path for paths in scripts.values() for path in paths}
        parts = [path for path in sorted(glob.glob(self.path("src/*/*.lua"))) if path not in known]
        for name, paths in scripts.items():
            self.add(Module(name, self.vocabulary, paths, parts))

    def add(self, module):
        for script in module.scripts:
            (self.rows if script.typed else self.raw).append(Row(module, script))
            if script.typed:
                self.commands.setdefault(module.name, set()).update(commands_in(script))

    def path(self, name):
        return os.path.normpath(os.path.join(self.folder, name))

    @staticmethod
    def text_of(path):
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()


# --- tables ----------------------------------------------------------------------------------------------------


def table(titles, rows):
    lines = [titles, ["---"] * len(titles)] + rows
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines)


def key_tables(page, path):
    """The page's own tables of keys, by their title, with the types in them: 'a mutex' -> ['hash', 'string', ...].
    The settings mark is not among them: a script gets it only now and then."""
    found = {}
    for title, text in re.findall(r"^## Keys of (.+)\n((?:(?!## ).*\n)*)", page, re.M):
        found[title] = re.findall(r"^\| `(?!latchkey:settings:)[^|]+\| (hash|string|sorted set|set|list)\b", text, re.M)
    if not found:
        refuse(path, "has no '## Keys of ...' with a table")
    return found


def script_tables(tree, page, path):
    """For each table of keys the scripts that use them: no key of theirs lacks there, and its types are those."""
    rows, texts = list(tree.rows), []
    for title, types in key_tables(page, path).items():
        widest = next((row for row in rows if [KEY_TYPES[kind] for kind in row.keys.values()] == types), None)
        if not widest:
            refuse(path, f"Keys of {title}: no script has keys of these types in this order: {', '.join(types)}")
        ours = [row for row in rows if same_module(row, widest) and set(row.keys) <= set(widest.keys)]
        rows = [row for row in rows if row not in ours]
        keys = ", ".join(f"`{name}` {KEY_TYPES[kind]}" for name, kind in widest.keys.items())
        anchor = "#keys-of-" + title.replace(" ", "-")
        texts += [f"### Of {title}", f"Keys, in the order of [the table above]({anchor}): {keys}.", notes_of(ours),
                  table(["script", "keys", "arguments", "verdicts", "sent again"], [row.cells() for row in ours])]
    for row in rows:
        refuse(row.file.path, f"its keys are in no table of {path}")
    texts += ["### Of a connection"]
    texts += [f"{row.called}: {row.title}. It has no keys; {row.resend}." for row in tree.raw]
    return "\n\n".join(texts)


def notes_of(rows):
    """What the headers say of arguments; where they differ in words, what most of them say."""
    said = {}
    for row in rows:
        for name, note in row.notes():
            said.setdefault(name, []).append(note)
    return "Arguments: " + ", ".join(f"`{name}` ({max(notes, key=notes.count)})" for name, notes in said.items()) + "."


def same_module(row, other):
    return os.path.dirname(row.file.path) == os.path.dirname(other.file.path)


def verdict_table(tree, _page, _path):
    words = tree.vocabulary.words
    return table(["verdict", "number", "meaning"],
                 [[f"`{name}`", str(number), words[name]] for name, number in tree.vocabulary.verdicts.items()])


def sent_table(tree, _page, _path):
    vocabulary = tree.vocabulary
    rows = [[f"`{name}`" + (" text" if kind == "text" else ""), vocabulary.words[name]]
            for name, kind in vocabulary.sent.items()]
    rows += [[f"flag `{name}`", vocabulary.words[name]] for name in vocabulary.flags]
    return table(["argument", "what it is"], rows)


# --- pages ------------------------------------------------------------------------------------------------------


def put(page, path, name, text):
    """The page with this text between the comments of that name."""
    begin, end = f"<!-- scripts/docs: {name} -->\n", "<!-- scripts/docs: end -->\n"
    if page.count(begin) != 1 or end not in page.split(begin)[1]:
        refuse(path, f"there should be one '{begin.strip()}', and '{end.strip()}' behind it")
    before, behind = page.split(begin)
    return f"{before}{begin}\n{text}\n\n{end}{behind.split(end, 1)[1]}"


def replace(page, path, pattern, text, what):
    """The page with this text in place of the only match of the pattern's group."""
    found = list(re.finditer(pattern, page, re.M))
    if len(found) != 1:
        refuse(path, f"has {what} {len(found)} times")
    return page[:found[0].start(1)] + text + page[found[0].end(1):]


def keys_page(tree, page, path):
    for name, make in (("scripts", script_tables), ("verdicts", verdict_table), ("sent", sent_table)):
        page = put(page, path, name, make(tree, page, path))
    return page


def security_page(tree, page, path):
    """A line of the rule each for what is general, for strings and keys of any type, for hashes, for sorted sets."""
    used = set().union(*(commands for module, commands in tree.commands.items() if module not in TOOLS))
    mutex, tools = tree.commands["lock"], set().union(*(tree.commands[module] for module in TOOLS))
    general = [name for name in GENERAL if name in used or name not in OF_SCRIPTS]
    rest = sorted(used - set(general))
    plain = sorted((name for name in rest if name[0] not in "hz"), key=lambda name: (name not in mutex, name))
    lines = [general, plain, [name for name in rest if name[0] == "h"], [name for name in rest if name[0] == "z"]]
    rule = "\n".join("        " + granted(line) for line in lines)
    page = replace(page, path, r"^    ACL SETUSER app .*\n(?:        [^+ ].*\n)*((?:        \+.*(?:\n|$))+)", rule + "\n",
                   "the rule 'ACL SETUSER app'")
    others = "`" + granted(sorted(used - mutex)) + "`"
    page = replace(page, path, r"^\| (`[^`]*`) \| not for mutexes:", others, "a row '| ... | not for mutexes:'")
    more = "`" + granted(sorted(tools - used - set(GENERAL))) + "`"
    return replace(page, path, r"^\| (`[^`]*`) \| beyond the rule:", more, "a row '| ... | beyond the rule:'")


def granted(commands):
    return " ".join("+" + name for name in commands)


PAGES = {"docs/keys.md": keys_page, "docs/security.md": security_page}


def pages_of(folder):
    """(path, text, what it should be) of each page."""
    tree = Tree(folder)
    for name, make in PAGES.items():
        path = tree.path(name)
        text = tree.text_of(path)
        yield path, text, make(tree, text, path)


def write(folder):
    for path, text, wanted in list(pages_of(folder)):
        if text != wanted:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(wanted)
            print(f"{path}: written")
    return 0


def check(folder):
    stale = [found for found in pages_of(folder) if found[1] != found[2]]
    for path, text, wanted in stale:
        print(f"{path} is not what the headers of the scripts say. To write it anew: scripts/docs")
        sys.stdout.writelines(list(difflib.unified_diff(text.splitlines(True), wanted.splitlines(True),
                                                        path, "what they say", n=0)))
    return 1 if stale else 0


def main(argv):
    try:
        return {"write": write, "check": check}[argv[0]](*argv[1:])
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    except (KeyError, IndexError, TypeError):
        if os.environ.get("SCRIPTS_TRACE"):
            raise
        print(__doc__, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
