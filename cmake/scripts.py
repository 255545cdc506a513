#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts.py - turn the Lua scripts of one module into C, at build time

  scripts.py vocabulary <vocabulary> <output.h>
  scripts.py module <name> <vocabulary> <folder> --scripts <files> --parts <files>

The first writes what all scripts have in common: verdicts, and values that are filled in at each send.

The second writes scripts.h and scripts.c into the folder: for acquire.lua of module lock a `const struct
lk__script lk__lua_lock_acquire`, the structs of its keys and arguments, and lk__lock_acquire_read(), which
reads its reply. What a script's header may say, and what becomes of it, is in CONTRIBUTING.md, "A script".

A script that publishes has two texts, as the command for that is its node's to choose: see texts_of(). C has the one, and
what makes the other one of it.

A module's scripts.h also has lk__lua_lock_commands, the server's commands that its scripts use: "del exists
...". To be found, they have to stand in the call: redis.call('DEL', key), not redis.call(command, key).
"""
import functools
import hashlib
import os
import re
import sys


class Refused(Exception):
    """A mistake in what the build was given; its text names the place."""


def refuse(path, why, line=None):
    raise Refused(f"{path}:{line}: {why}" if line else f"{path}: {why}")


# --- Lua: tokens ---------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<comment>--[^\n]*)
    | (?P<string>'(?:\\[^\n]|[^'\\\n])*' | "(?:\\[^\n]|[^"\\\n])*")
    | (?P<number>0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<op>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^\#<>=(){}\[\];:,.])""",
    re.VERBOSE,
)

KEYWORDS = set(
    "and break do else elseif end false for function if in local nil not or repeat return then true until while".split()
)

# What the server gives to a script, and publish(), which texts_of() replaces. KEYS and ARGV are not among them: a header
# names their elements.
GLOBALS = set(
    "cjson error ipairs math next pairs pcall publish redis select shard string table tonumber tostring type unpack".split()
)


class Token:
    __slots__ = ("kind", "text", "start", "end", "line")

    def __init__(self, kind, text, start, line):
        self.kind, self.text, self.start, self.end, self.line = kind, text, start, start + len(text), line

    def __repr__(self):
        return f"{self.text}@{self.line}"


def tokens_of(path, text, first_line):
    """All tokens but blanks; comments are among them."""
    found, at, line = [], 0, first_line
    for match in TOKEN.finditer(text):
        if match.start() != at:
            break
        if match.lastgroup == "space":
            line += match.group().count("\n")
        else:
            found.append(Token(match.lastgroup, match.group(), at, line))
        at = match.end()
    if at < len(text):
        refuse(path, f"cannot be read: {text[at:at + 20].splitlines()[0]!r}", line)
    return found


# --- Lua: which names are read, and whose they are ---------------------------------------------------------------


class Use:
    """One place at which a name that the text itself does not declare stands, or one of its top level."""

    __slots__ = ("token", "written", "depth", "loops")

    def __init__(self, token, written, depth, loops):
        self.token, self.written, self.depth, self.loops = token, written, depth, loops


class Reading:
    """Names of a stretch of Lua: `free` ones by name, with their uses, and those declared at its top level.

    It knows blocks and brackets and no more grammar than that: enough for scripts, which have neither goto
    nor repeat.
    """

    def __init__(self, path, tokens):
        self.path = path
        self.free = {}
        self.declared = []
        self.statements = []  # where those of the top level begin
        self.passed_on = set()  # where names stand that are whole arguments of redis.call()
        self.scopes = [("top", set())]
        self.pending = None
        self.read(tokens)

    def fail(self, token, why):
        refuse(self.path, why, token.line)

    def functions(self):
        return sum(kind == "function" for kind, _ in self.scopes)

    def loops(self):
        return sum(kind == "loop" for kind, _ in self.scopes)

    def declare(self, name):
        for kind, names in reversed(self.scopes):
            if names is not None:
                names.add(name)
                if kind == "top":
                    self.declared.append(name)
                return

    def is_declared(self, name):
        return any(names is not None and name in names for _, names in self.scopes)

    def push(self, kind, names=()):
        self.scopes.append((kind, None if kind in "([{" else set(names)))

    def pop(self, token, *kinds):
        if self.scopes[-1][0] not in kinds:
            self.fail(token, f"unexpected '{token.text}'")
        self.scopes.pop()

    def names_from(self, tokens, at):
        """Names with commas between them, from tokens[at] on; and where the first token behind them is."""
        names = []
        while at < len(tokens) and (tokens[at].kind == "name" or tokens[at].text == "..."):
            names.append(tokens[at].text)
            at += 1
            if at == len(tokens) or tokens[at].text != ",":
                break
            at += 1
        return names, at

    def read(self, tokens):
        code = [token for token in tokens if token.kind != "comment"]
        at = 0
        while at < len(code):
            if len(self.scopes) == 1 and self.begins_statement(code, at):
                self.statements.append(code[at].start)
            if at > 3 and code[at - 1].text == "(" and code[at - 2].text in ("call", "pcall") and code[at - 4].text == "redis":
                self.note_arguments(code, at)
            at = self.step(code, at)
        if len(self.scopes) != 1:
            refuse(self.path, f"a '{self.scopes[-1][0]}' has no end")

    @staticmethod
    def begins_statement(code, at):
        """At the top level: a keyword that only stands there, or a name behind the end of something."""
        token, before = code[at], code[at - 1]
        if at == 0 or token.text in ("local", "if", "for", "while", "return"):
            return True
        if token.kind != "name" or token.text in KEYWORDS:
            return False
        ended = before.text not in KEYWORDS or before.text in ("end", "true", "false", "nil")
        return before.text in (")", "]", "}") or ended and before.kind in ("name", "number", "string")

    def note_arguments(self, code, at):
        """Names among the arguments of redis.call( that stand alone."""
        depth = 0
        while at < len(code) and depth >= 0:
            text = code[at].text
            if depth == 0 and code[at].kind == "name" and code[at - 1].text in "(," and code[at + 1].text in "),":
                self.passed_on.add(code[at].start)
            depth += (text in ("(", "[", "{", "function")) - (text in (")", "]", "}", "end"))
            at += 1

    def first_at(self, name):
        """Before which statement of the top level something has to stand that is called so."""
        first = self.free[name][0].token.start
        return max(start for start in self.statements if start <= first)

    def step(self, code, at):
        token = code[at]
        text = token.text
        if token.kind == "name" and text in KEYWORDS:
            return self.keyword(code, at)
        if token.kind == "name":
            self.name(code, at)
        elif text in ("(", "[", "{"):
            self.push(text)
        elif text in (")", "]", "}"):
            self.pop(token, {")": "(", "]": "[", "}": "{"}[text])
        return at + 1

    def keyword(self, code, at):
        token = code[at]
        text = token.text
        if text in ("repeat", "until"):
            self.fail(token, "no repeat, please: write while")
        elif text == "local" and code[at + 1].text != "function":
            names, behind = self.names_from(code, at + 1)
            for name in names:
                self.declare(name)
            return behind
        elif text == "function":
            return self.function(code, at)
        elif text == "for":
            self.pending, behind = self.names_from(code, at + 1)
            return behind
        elif text == "while":
            self.pending = []
        elif text == "do":
            self.push("block" if self.pending is None else "loop", self.pending or ())
            self.pending = None
        elif text == "then":
            self.push("block")
        elif text == "elseif":
            self.pop(token, "block")
        elif text == "else":
            self.pop(token, "block")
            self.push("block")
        elif text == "end":
            self.pop(token, "block", "loop", "function")
        return at + 1

    def function(self, code, at):
        opening = at + 1
        if code[opening].kind == "name" and code[opening + 1].text in (".", ":"):
            self.name(code, opening)  # function round.take(...)
            opening += 3
        elif code[opening].kind == "name":
            if code[at - 1].text != "local":
                self.fail(code[at], "a function is local")
            self.declare(code[opening].text)
            opening += 1
        params, behind = self.names_from(code, opening + 1)
        self.push("function", params)
        return behind + 1

    def name(self, code, at):
        token, before = code[at], code[at - 1].text if at > 0 else ""
        if before in (".", ":"):
            return
        assigned = at + 1 < len(code) and code[at + 1].text == "="
        if assigned and self.scopes[-1][0] == "{":
            return  # the key of a table
        if not self.is_declared(token.text):
            use = Use(token, assigned, self.functions(), self.loops())
            self.free.setdefault(token.text, []).append(use)


def arguments_of(code, opening):
    """Where the commas between the arguments of a call are, and its closing bracket."""
    commas, depth = [], 0
    for i in range(opening, len(code)):
        text = code[i].text
        if text in ("(", "[", "{", "function"):
            depth += 1
        elif text in (")", "]", "}", "end"):
            depth -= 1
            if depth == 0:
                return commas, i
        elif text == "," and depth == 1:
            commas.append(i)
    raise AssertionError("brackets that do not fit are found before")


# --- a .lua file ----------------------------------------------------------------------------------------------------


class Field:
    def __init__(self, line):
        self.line, self.texts = line, []


FIELDS = ("uses", "keys", "args", "flags", "sent", "short", "instead", "verdicts", "reply", "resend", "batch", "raw")


class File:
    """A .lua file: its header, the comment lines it begins with, and its code."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)[: -len(".lua")]
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read().replace("\r\n", "\n")
        if re.search(r"\[=*\[", text) or "\\\n" in text:
            refuse(path, "no long brackets and no strings over several lines, please")
        self.header = re.match(r"(?:--[^\n]*(?:\n|$))*", text).group()
        self.body = text[len(self.header):]
        self.body_line = self.header.count("\n") + 1
        self.fields = self.read_fields()
        self.tokens = tokens_of(path, self.body, self.body_line)
        self.uses = [name for _, item in self.words("uses") for name in item.split()]

    def read_fields(self):
        """The fields of the header. What stands behind two blanks is for the reader alone."""
        fields, current = {}, None
        for number, line in enumerate(self.header.splitlines(), 1):
            named = re.match(r"-- ?([a-z_]+): *(.*)$", line)
            more = re.match(r"--   +(\S.*)$", line)
            if named and named.group(1) in FIELDS:
                if named.group(1) in fields:
                    refuse(self.path, f"there are two fields '{named.group(1)}:'", number)
                current = fields[named.group(1)] = Field(number)
                text = named.group(2)
            elif named and re.match(r"-- [a-z_]+:( |$)", line):
                refuse(self.path, f"there is no field '{named.group(1)}:'; a header has {', '.join(FIELDS)}", number)
            elif more and current:
                text = more.group(1)
            else:
                current = None
                continue
            current.texts.append((number, re.split(r"  +", text.strip(), maxsplit=1)[0]))
        return fields

    def words(self, field):
        """(line number, text) of each line of a field."""
        return self.fields[field].texts if field in self.fields else []

    def items(self, field):
        """(line number, item) of a field whose items commas or line ends divide."""
        return [
            (number, item.strip())
            for number, text in self.words(field)
            for item in text.strip().rstrip(",").split(",")
            if item.strip()
        ]


# --- parts: Lua that several scripts share -------------------------------------------------------------------------


class Chunk:
    """A function or a few constants of a part: what it declares, what it needs, its text."""

    def __init__(self, part, tokens):
        self.reading = Reading(part.path, tokens)
        self.declares = self.reading.declared
        self.needs = self.reading.free
        start, end = tokens[0].start, tokens[-1].end
        self.text = plain(part.body[start:end], [(t.start - start, t.end - start, "")
                                                 for t in tokens if t.kind == "comment"])


class Part:
    """A part is a row of `local` statements; who uses it gets those that it needs."""

    def __init__(self, file):
        self.file, self.path, self.name, self.body = file, file.path, file.name, file.body
        for field in file.fields:
            if field not in ("uses", "resend"):
                refuse(self.path, f"a part has no field '{field}:': it takes what it needs as arguments")
        if any(token.text in ("KEYS", "ARGV") for token in file.tokens if token.kind == "name"):
            refuse(self.path, "a part takes its keys and arguments as arguments, it does not use KEYS or ARGV")
        self.chunks = [Chunk(self, tokens) for tokens in self.statements()]
        self.declares = {name: chunk for chunk in self.chunks for name in chunk.declares}

    def statements(self):
        """The tokens of each statement of the top level."""
        Reading(self.path, self.file.tokens)  # blocks fit together
        rows, depth = [], 0
        for token in self.file.tokens:
            if token.kind == "comment":
                if rows:
                    rows[-1].append(token)
                continue
            if depth == 0 and token.text == "local":
                rows.append([])
            elif not rows:
                refuse(self.path, "a part has nothing but local functions and constants", token.line)
            rows[-1].append(token)
            if token.text in ("function", "do", "then", "{", "("):
                depth += 1
            elif token.text in ("end", "elseif", "}", ")"):
                depth -= 1
        return rows


@functools.cache
def part_in(path):
    """Modules share parts, and each of these is read once."""
    return Part(File(path))


class Library:
    """The parts that a script may use."""

    def __init__(self, paths):
        self.paths = paths
        self.parts = {}

    def part(self, name, user):
        if name not in self.parts:
            paths = [path for path in self.paths if os.path.basename(path) == name + ".lua"]
            if len(paths) != 1:
                refuse(user, f"uses {name}: there are {len(paths)} parts of this name")
            self.parts[name] = part_in(paths[0])
        return self.parts[name]

    def closure(self, names, user, way=()):
        """These parts and those they use: the deepest first, each once."""
        row = []
        for name in names:
            if name in way:
                refuse(user, f"uses {' -> '.join(way + (name,))}, which is a circle")
            part = self.part(name, user)
            for deeper in self.closure(part.file.uses, part.path, way + (name,)) + [part]:
                if deeper not in row:
                    row.append(deeper)
        return row


def needed_of(parts, names):
    """The chunks of these parts that declare one of `names`, and what those need in turn; in order."""
    wanted, kept = set(names), set()
    for part in reversed(parts):
        for chunk in reversed(part.chunks):
            if any(name in wanted for name in chunk.declares):
                kept.add(chunk)
                wanted.update(chunk.needs)
    return [(part, chunk) for part in parts for chunk in part.chunks if chunk in kept]


def check_parts(parts):
    """Every name that a part uses is declared before, by itself or by another one."""
    known = set(GLOBALS)
    for part in parts:
        for chunk in part.chunks:
            for name, uses in chunk.needs.items():
                if name not in known:
                    refuse(part.path, f"{name} is declared neither here nor in a part that it uses", uses[0].token.line)
            known.update(chunk.declares)


# --- the vocabulary ---------------------------------------------------------------------------------------------------

NUMBERS = ("number", "ms", "us")
TYPES = ("text",) + NUMBERS
ARG_TYPES = TYPES + ("digits",)  # a number for C, and for Lua the text that it came as
KEY_TYPES = ("hash", "string", "zset", "set", "list")
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*$")
RESERVED = {"now", "now_text", "time", "short", "flags", "request", "answer", "brief", "undated"}


class Vocabulary:
    """The file that gives verdicts and sent values their names."""

    def __init__(self, path):
        self.path = path
        self.verdicts, self.sent, self.flags, self.words = {}, {}, {}, {}
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    self.add(line.split(), number)

    def add(self, words, line):
        kind, name = (words + ["", ""])[:2]
        if name in self.words:
            refuse(self.path, f"{name} stands there twice", line)
        if kind == "verdict" and re.match(r"[A-Z][A-Z0-9_]*$", name) and re.match(r"-?\d+$", (words + ["", ""])[2]):
            if int(words[2]) in self.verdicts.values():
                refuse(self.path, f"{name}: another verdict has this number", line)
            self.verdicts[name] = int(words[2])
            said = words[3:]
        elif kind == "sent" and IDENTIFIER.match(name) and (words + ["", ""])[2] in TYPES + ("settingsmark",):
            self.sent[name] = words[2]
            said = words[3:]
        elif kind == "flag" and IDENTIFIER.match(name):
            self.flags[name] = 1 << len(self.flags)
            said = words[2:]
        else:
            refuse(self.path, "'verdict NAME number', 'sent name type' or 'flag name', and what it means", line)
        self.words[name] = " ".join(said)


def vocabulary_h(vocabulary):
    rows = [
        "/* Made by the build from src/redis/vocabulary. */",
        "#ifndef LK__REDIS_VOCABULARY_H",
        "#define LK__REDIS_VOCABULARY_H",
        "",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        "/* How a script ends; the same in all of them. */",
        "enum lk__verdict {",
    ]
    rows += [f"    LK__{name} = {number}, /* {vocabulary.words[name]} */" for name, number in vocabulary.verdicts.items()]
    rows += ["};", "", "/* In the flags of struct lk__sent. */", "enum {"]
    rows += [f"    LK__SENT_{name.upper()} = {bit}, /* {vocabulary.words[name]} */"
             for name, bit in vocabulary.flags.items()]
    rows += [
        "};",
        "",
        "struct lk__items;",
        "",
        "/* With which settings a name is used: a key that all its users look at. */",
        "struct lk__settingsmark {",
        "    const char *key;",
        "    const char *mine; /* the sender's settings, in words */",
        "    bool replace; /* what is found there, instead of comparing */",
        "};",
        "",
        "/* What whoever sends a command fills in, each time. A script takes what its header names. */",
        "struct lk__sent {",
    ]
    rows += [f"    {c_type(kind)}{name}; /* {vocabulary.words[name]} */" for name, kind in vocabulary.sent.items()]
    rows += ["    unsigned flags;", "    unsigned epoch; /* of the server whose clock its dates are of; 0: it has none */",
             "    int64_t deadline_here_us, keep_here_us; /* the same moments on our clock; 0: not known */",
             "    const struct lk__items *items; /* NULL, or the keys and what else each call of a batch has of its own */",
             "};", "", "#endif", ""]
    return "\n".join(rows)


def c_type(kind):
    return {"text": "const char *", "settingsmark": "const struct lk__settingsmark *"}.get(kind, "int64_t ")


def joined(file, library):
    """The code of a script as it stands, behind what it needs of its parts."""
    reading = Reading(file.path, file.tokens)
    parts = library.closure(file.uses, file.path)
    check_parts(parts)
    chunks = needed_of(parts, reading.free)
    comments = [(token.start, token.end, "") for token in file.tokens if token.kind == "comment"]
    return "\n".join([chunk.text for _, chunk in chunks] + [plain(file.body, comments)])


# --- messages: a script publishes, its node knows by which command ----------------------------------------------------

# By the words of enum lk__pubsub_kind.
PUBLISH = {"plain": "PUBLISH", "sharded": "SPUBLISH"}

# The two texts differ in the command alone, so which one it is tells whether a channel has to lie in the slot of the keys.
SHARD = "(#'PUBLISH' > 7 and ':{' .. (string.match(KEYS[1], '{(.-)}') or KEYS[1]) .. '}' or '')"


def texts_of(path, text):
    """The text with each of these commands. publish(channel, message) becomes redis.pcall('PUBLISH', channel, message):
    it returns the number of receivers, or an error as a table. shard() becomes what the name of a channel of our own ends
    with, so that it lies in the slot of the first key: nothing, where messages are not sharded."""
    code = tokens_of(path, text, 1)
    found = {kind: [] for kind in PUBLISH}
    free = Reading(path, code).free
    for use in free.get("shard", ()):
        at = code.index(use.token) + 1
        if use.written or [token.text for token in code[at:at + 2]] != ["(", ")"]:
            refuse(path, "shard is called: shard()")
        for kind, command in PUBLISH.items():
            found[kind].append((use.token.start, code[at + 1].end, SHARD.replace("PUBLISH", command)))
    for use in free.get("publish", ()):
        at = code.index(use.token) + 1
        if use.written or at >= len(code) or code[at].text != "(":
            refuse(path, "publish is called: publish(channel, message)")
        commas, closing = arguments_of(code, at)
        if len(commas) != 1 or commas[0] == at + 1 or closing == commas[0] + 1:
            refuse(path, "publish() takes a channel and a message")
        for kind, command in PUBLISH.items():
            found[kind].append((use.token.start, code[at].end, f"redis.pcall('{command}', "))
    return {kind: plain(text, sorted(spans)) for kind, spans in found.items()}


def places_between(text, sharded):
    """Where, in bytes, an S has to be put into a text to make it the other one."""
    text, sharded, places = text.encode(), sharded.encode(), []
    for at, byte in enumerate(text):
        if sharded[at + len(places)] != byte:
            places.append(at)
    return places


# --- a raw script: its code is sent as it stands ---------------------------------------------------------------------------


class RawScript:
    """Its callers make the call and read the reply themselves. It has no keys."""

    typed, keys = False, 0

    def __init__(self, file, library, _vocabulary):
        self.file, self.name, self.path = file, file.name, file.path
        for field in file.fields:
            if field not in ("raw", "uses", "resend"):
                refuse(file.path, f"a raw script has no field '{field}:'")
        for token in file.tokens:
            if token.kind == "name" and token.text == "KEYS":
                refuse(file.path, "a raw script has no keys", token.line)
        if not any(text for _, text in file.words("raw")):
            refuse(file.path, "'raw:' says why")
        self.text = joined(file, library)
        self.texts = texts_of(file.path, self.text)


# --- a typed script -------------------------------------------------------------------------------------------------------


class Element:
    """One element of a reply: `token number`, `holder text?`, `ids text...`."""

    def __init__(self, name, kind, mark):
        self.name, self.kind, self.optional, self.several = name, kind, mark == "?", mark == "..."

    def same_as(self, other):
        return self.kind == other.kind and self.several == other.several


# The digits of now. To put them together from those of the reply costs the server a quarter of what a format does.
NOW_TEXT = "#time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)"

# How long a settings mark lasts. A user looks at it again after half of this: src/object/settings.c.
SETTINGS_LAST_S = 3600


class Argument:
    """One ARGV: of the args, of what is sent, the flags, or the request's number."""

    def __init__(self, name, kind, origin):
        self.name, self.kind, self.origin = name, kind, origin


class TypedScript:
    typed = True

    def __init__(self, file, library, vocabulary):
        self.file, self.name, self.path, self.vocabulary = file, file.name, file.path, vocabulary
        self.library = library
        self.names, self.defaults = {}, {}
        self.stands_for, self.instead = None, [None, None]
        self.read_keys()
        self.read_arguments()
        self.read_short()
        self.read_verdicts()
        self.read_reply()
        if "resend" not in file.fields:
            refuse(self.path, "the header does not say what a resend does: 'resend:'")
        self.text = self.translate()
        self.texts = texts_of(self.path, self.text)
        self.batch = Batch(self) if "batch" in file.fields else None

    # The header.

    def claim(self, name, line, what):
        if not IDENTIFIER.match(name):
            refuse(self.path, f"'{name}' is no name for {what}: small letters, digits and _", line)
        if name in RESERVED or name in KEYWORDS or name in GLOBALS:
            refuse(self.path, f"{name} cannot be the name of {what}", line)
        if name in self.names:
            refuse(self.path, f"{name} is declared twice", line)
        self.names[name] = line

    def pair(self, line, item, kinds, what):
        words = item.split()
        if len(words) != 2:
            refuse(self.path, f"'{item}' should be a name and a type", line)
        if words[1] not in kinds:
            refuse(self.path, f"{words[0]}: {words[1]} is no type of {what}; there are {', '.join(kinds)}", line)
        return words

    def read_keys(self):
        self.keys = {}
        for line, item in self.file.items("keys"):
            name, kind = self.pair(line, item, KEY_TYPES, "a key")
            self.claim(name, line, "a key")
            self.keys[name] = kind

    def read_arguments(self):
        self.args, self.flags, self.sent, sent_flags = {}, [], [], []
        for line, item in self.file.items("args"):
            name, kind = self.pair(line, item, ARG_TYPES, "an argument")
            self.claim(name, line, "an argument")
            self.args[name] = kind
        for line, text in self.file.words("flags"):
            for name in text.replace(",", " ").split():
                self.claim(name, line, "a flag")
                self.flags.append(name)
        for line, text in self.file.words("sent"):
            for name in text.replace(",", " ").split():
                if name not in self.vocabulary.sent and name not in self.vocabulary.flags:
                    refuse(self.path, f"nothing that is sent is called {name}: see {self.vocabulary.path}", line)
                self.claim(name, line, "what is sent")
                (sent_flags if name in self.vocabulary.flags else self.sent).append(name)
        self.sent_flags = sent_flags
        self.takes_settings = "settings" in self.sent
        if self.takes_settings:
            self.sent.remove("settings")

    def read_short(self):
        """The short form of a call leaves out some numbers, when all of them have the values named, and with them some of
        the last keys."""
        self.short_keys = len(self.keys)
        names = {argument.name for argument in self.arguments()[:-1] if argument.kind in NUMBERS}
        for line, item in self.file.items("short"):
            words = item.split()
            if len(words) == 2 and words[0] in names and re.match(r"-?\d+$", words[1]):
                self.defaults[words[0]] = int(words[1])
            elif len(words) == 1 and words[0] in self.keys:
                self.short_keys -= 1
            else:
                refuse(self.path, f"'{item}' should be a number and its usual value, or a key", line)
        if "short" in self.file.fields:
            left_out = {item for _, item in self.file.items("short")} & set(self.keys)
            if left_out != set(list(self.keys)[self.short_keys:]):
                refuse(self.path, "the short form leaves out the last keys", self.file.fields["short"].line)
            if (self.flags or self.sent_flags) and "flags" not in self.defaults:
                refuse(self.path, "the short form leaves out the flags", self.file.fields["short"].line)

    def arguments(self):
        """ARGV, in order: first those that the short form has, too; the number of the request is the last."""
        row = self.long_arguments()
        return sorted(row, key=lambda argument: argument.name in self.defaults) + [Argument("request", "number", "request")]

    def long_arguments(self):
        row = [Argument(name, kind, "args") for name, kind in self.args.items()]
        if self.flags or self.sent_flags:
            row.append(Argument("flags", "number", "flags"))
        return row + [Argument(name, self.vocabulary.sent[name], "sent") for name in self.sent]

    def read_verdicts(self):
        """What each verdict is answered with. A line has verdicts, and elements that all of them have."""
        self.verdicts, joined = {}, []
        for line, text in self.file.words("verdicts"):
            if joined and joined[-1][1].endswith(","):
                joined[-1] = (joined[-1][0], joined[-1][1] + " " + text)
            else:
                joined.append((line, text))
        for line, text in joined:
            match = re.match(r"((?:[A-Z][A-Z0-9_]*(?: +|$))+)(.*)$", text)
            if not match:
                refuse(self.path, f"'{text}' should be verdicts, in capitals, and what they are answered with", line)
            elements = self.read_elements(line, match.group(2))
            for name in match.group(1).split():
                if name not in self.vocabulary.verdicts:
                    refuse(self.path, f"there is no verdict {name}: see {self.vocabulary.path}", line)
                if name in self.verdicts:
                    refuse(self.path, f"{name} is declared twice", line)
                self.verdicts[name] = elements
        if not self.verdicts:
            refuse(self.path, "the header names no verdicts")
        if ("deadline_us" in self.sent) != ("LATE" in self.verdicts):
            refuse(self.path, "LATE is the verdict of scripts that are sent a deadline_us, and of no others")
        if self.verdicts.get("LATE"):
            refuse(self.path, "LATE is answered with nothing")
        found = self.verdicts.get("DISAGREES")
        if self.takes_settings != (found is not None) or found is not None and [element.kind for element in found] != ["text"]:
            refuse(self.path, "DISAGREES is the verdict of scripts that are sent settings, with the text that was found")

    def read_elements(self, line, text):
        elements = []
        for item in filter(None, (item.strip() for item in text.split(","))):
            match = re.match(r"([a-z][a-z0-9_]*) (\w+)(\?|\.\.\.)?$", item)
            if not match or match.group(2) not in TYPES:
                refuse(self.path, f"'{item}' should be a name and a type ({', '.join(TYPES)}), "
                                  "with ? if it may be missing, with ... if there may be any number of it", line)
            if elements and (elements[-1].several or (elements[-1].optional and not match.group(3))):
                refuse(self.path, f"{match.group(1)} stands behind what may be missing", line)
            if any(element.name == match.group(1) for element in elements):
                refuse(self.path, f"{match.group(1)} is answered twice", line)
            elements.append(Element(*match.groups()))
        return elements

    def read_reply(self):
        """The struct that a reply is read into, of the build's making unless the header names one."""
        self.reply_struct, self.reply_header, self.members = None, None, {}
        for elements in self.verdicts.values():
            for element in elements:
                known = self.members.setdefault(element.name, element)
                if not known.same_as(element) or element.name in ("verdict", "server_us"):
                    refuse(self.path, f"{element.name} has another type with another verdict, or is in every reply")
        for line, text in self.file.words("reply"):
            words = text.split()
            if len(words) != 2 or not re.match(r"lk__\w+$", words[0]) or not words[1].endswith(".h"):
                refuse(self.path, f"'{text}' should be a struct and its header: lk__asked acquire/acquire.h", line)
            self.reply_struct, self.reply_header = words

    # The body.

    def translate(self):
        body = self.file
        self.reading = Reading(self.path, body.tokens)
        parts = self.used_parts()
        self.check_names({name for part in parts for name in part.declares})
        if "brief" in self.reading.free:
            uses = self.reading.free.get("now_text", []) + self.reading.free["brief"]
            self.reading.free["now_text"] = sorted(uses, key=lambda use: use.token.start)
        spans = [(token.start, token.end, "") for token in body.tokens if token.kind == "comment"]
        self.request = self.values()["request"]
        for start, text in self.late_time() + self.placed(parts) + self.locals_of(spans):
            spans.append((start, start, text + "\n"))
        self.replace_verdicts(spans)
        self.replace_answers(spans)
        return "\n".join(self.prologue() + [plain(body.body, spans)])

    def used_parts(self):
        for line, text in self.file.words("uses"):
            for name in text.split():
                if not any(declared in self.reading.free for declared in self.library.part(name, self.path).declares):
                    refuse(self.path, f"uses {name}, but nothing of it", line)
        parts = self.library.closure(self.file.uses, self.path)
        check_parts(parts)
        return parts

    def placed(self, parts):
        """What the body needs of the parts, before the statement that needs it first: who returns early makes no
        functions that it does not call."""
        rows, there = [], set()
        for name in sorted(self.reading.free, key=self.reading.first_at):
            for _, chunk in needed_of(parts, [name]):
                if chunk not in there:
                    there.add(chunk)
                    rows.append((self.reading.first_at(name), chunk.text))
        return rows

    def check_names(self, declared):
        """Whatever the body reads is declared, and whatever is declared is read."""
        free = self.reading.free
        for name in self.reading.declared:
            if name in self.names or name in declared or name in GLOBALS or name in RESERVED:
                refuse(self.path, f"{name} is declared by the header, a part or the server, and again in the body")
        for name in self.names:
            if name in declared:
                refuse(self.path, f"{name} is declared by the header, and by a part", self.names[name])
        for name, uses in sorted(free.items(), key=lambda item: item[1][0].token.start):
            line = uses[0].token.line
            if name in ("KEYS", "ARGV"):
                refuse(self.path, f"{name}: the header names its elements", line)
            if name in self.vocabulary.verdicts and name not in self.verdicts:
                refuse(self.path, f"the header does not name the verdict {name}", line)
            known = (GLOBALS, declared, self.names, self.verdicts, RESERVED)
            if not any(name in names for names in known):
                what = "no verdict is called so" if name.isupper() else "declared neither in the header nor in the body"
                refuse(self.path, f"{name}: {what}", line)
            if name == "short" and not self.defaults:
                refuse(self.path, "short: the header names no short form", line)
            if name in ("request", "flags", "time"):
                refuse(self.path, f"{name} is not for the body: flags have names, answer() has the request, now the time", line)
        for name, line in self.names.items():
            guarded = name in ("deadline_us", "settings")
            if not guarded and not any(not use.written for use in free.get(name, ())):
                refuse(self.path, f"{name} is declared, but the body does not read it", line)
        for name in self.verdicts:
            if name not in ("LATE", "DISAGREES") and name not in free:
                refuse(self.path, f"the verdict {name} is declared, but the body does not answer it")

    def substitute(self, spans, name, expression):
        """True if the name is read once, by straight code: then the value can stand there, and needs no local. What
        goes to the server as it came is no number on its way."""
        uses = self.reading.free.get(name, ())
        if len(uses) != 1 or uses[0].token.text != name or uses[0].written or uses[0].depth > 0 or uses[0].loops > 0:
            return False
        token = uses[0].token
        if re.match(r"ARGV\[\d+\] \+ 0$", expression) and token.start in self.reading.passed_on:
            expression = expression[: -len(" + 0")]
        elif " " in expression:
            expression = f"({expression})"
        spans.append((token.start, token.end, expression))
        return True

    def values(self):
        """What each name of the header stands for."""
        found = {name: f"KEYS[{number}]" for number, name in enumerate(self.keys, 1)}
        for number, argument in enumerate(self.arguments(), 1):
            text = argument.kind in ("text", "digits")
            found[argument.name] = f"ARGV[{number}]" if text else f"ARGV[{number}] + 0"  # faster than tonumber()
            if argument.name in self.defaults:
                found[argument.name] = f"short and {self.defaults[argument.name]} or {found[argument.name]}"
        if self.defaults:
            found["request"] = f"ARGV[short and {number - len(self.defaults)} or {number}] + 0"
        return found

    def prologue(self):
        """The server's time, and an end if it is past the deadline or settings disagree."""
        rows = [] if self.is_undated() else self.time()
        if self.defaults:
            rows += [f"local short = #ARGV == {len(self.arguments()) - len(self.defaults)}"]
        if "deadline_us" in self.sent:
            late = self.vocabulary.verdicts["LATE"]
            rows += [f"if now > {self.values()['deadline_us']} then", f"return {{ {late}, now, {self.request} }}", "end"]
        return rows + (self.comparison() if self.takes_settings else [])

    def time(self):
        time = "time" if "now_text" in self.reading.free else "now"
        return [f"local {time} = redis.call('TIME')",
                f"{'local ' if time == 'time' else ''}now = {time}[1] * 1000000 + {time}[2]"]

    def is_undated(self):
        return "undated" in self.reading.free

    def late_time(self):
        """A script that may end without the time asks for it before the first statement that needs it."""
        named = [name for name in ("now", "now_text", "answer") if name in self.reading.free]
        if not self.is_undated() or not named:
            return []
        if "deadline_us" in self.sent or self.takes_settings:
            refuse(self.path, "undated(): a script with a deadline or settings begins with the time")
        return [(min(map(self.reading.first_at, named)), "\n".join(self.time()))]

    def comparison(self):
        """The settings mark of a name is a key behind the others. It comes only if it is to be looked at, with the
        sender's settings behind the other arguments, and one more if what is found there is to be replaced. Nothing that
        is wrong with it keeps anybody from going on."""
        key, mine = f"KEYS[{len(self.keys) + 1}]", f"ARGV[{len(self.arguments()) + 1}]"
        disagrees = self.vocabulary.verdicts["DISAGREES"]
        return [
            f"if {key} then",
            f"local found = redis.pcall('GET', {key})",
            f"if type(found) == 'string' and found ~= {mine} and not ARGV[{len(self.arguments()) + 2}] then",
            f"return {{ {disagrees}, now, {self.request}, found }}",
            "end",
            f"redis.pcall('SET', {key}, {mine}, 'EX', {SETTINGS_LAST_S})",
            "end",
        ]

    def locals_of(self, spans):
        """A local for what the body reads, before the statement that reads it first; what it reads once stands there
        itself."""
        values, bits = self.values(), self.flag_bits()
        values["now_text"] = NOW_TEXT
        top = max(bits.values(), default=0)
        flags = f"({values.pop('flags')})" if len(bits) == 1 else "flags"
        for name, bit in bits.items():  # only these bits are sent
            values[name] = f"{flags} >= {bit}" if bit == top else f"{flags} % {2 * bit} >= {bit}"
        rows = {}
        if len(bits) > 1:
            first = min(self.reading.first_at(name) for name in bits)
            rows[first] = [("flags", values.pop("flags"))]
        for name in sorted(self.names, key=self.names.get) + ["now_text"]:
            if name in self.reading.free and not self.substitute(spans, name, values[name]):
                rows.setdefault(self.reading.first_at(name), []).append((name, values[name]))
        found = []
        for start, pairs in sorted(rows.items()):
            if pairs[0][0] == "flags":
                found.append((start, "local flags = " + pairs.pop(0)[1]))
            if pairs:
                names, expressions = zip(*pairs)
                found.append((start, f"local {', '.join(names)} = {', '.join(expressions)}"))
        return found

    def flag_bits(self):
        """The bit of each flag of this script."""
        bits = {name: self.vocabulary.flags[name] for name in self.sent_flags}
        bits.update({name: self.module_flags[name] for name in self.flags})
        return bits

    def replace_verdicts(self, spans):
        for name in self.verdicts:
            for use in self.reading.free.get(name, ()):
                if use.written:
                    refuse(self.path, f"{name} is a verdict, and nothing to assign to", use.token.line)
                spans.append((use.token.start, use.token.end, str(self.vocabulary.verdicts[name])))

    def replace_answers(self, spans):
        """answer(VERDICT, a, b) becomes { number, now, request, a, b }, once its elements were counted; brief() the same as
        one text, and undated() one with 0 for now."""
        code = [token for token in self.file.tokens if token.kind != "comment"]
        place = {token.start: i for i, token in enumerate(code)}
        dates = {"answer": "now", "brief": "now_text", "undated": "'0'"}
        for name, date in dates.items():
            for use in self.reading.free.get(name, ()):
                at = place[use.token.start] + 1
                if at >= len(code) or code[at].text != "(":
                    refuse(self.path, f"{name} is called: {name}(VERDICT, ...)", use.token.line)
                commas, closing = arguments_of(code, at)
                first = code[at + 1:commas[0] if commas else closing]
                if not first:
                    refuse(self.path, f"{name}() begins with a verdict", use.token.line)
                self.check_answer(code, use.token.line, first, commas, closing)
                if name == "answer":
                    spans.append((use.token.start, code[at].end, "{ "))
                    spans.append((first[-1].end, first[-1].end, f", now, {self.request}"))
                    spans.append((code[closing].start, code[closing].end, " }"))
                else:
                    self.replace_text(spans, code, (place[use.token.start], commas, closing), date)

    def replace_text(self, spans, code, call, date):
        """brief(VERDICT, a) becomes 'number ' .. now_text .. ' ' .. request .. ' ' .. a: the server makes a text of it in
        half of the time that a table takes."""
        begin, commas, closing = call
        verdict = code[begin + 2]
        if verdict.text not in self.verdicts or (commas[0] if commas else closing) != begin + 3:
            refuse(self.path, f"{code[begin].text}() has one verdict, by its name", verdict.line)
        if any(element.kind == "text" for element in self.verdicts[verdict.text][:len(commas)]):
            refuse(self.path, f"{code[begin].text}() has numbers alone, and {verdict.text} is answered with words", verdict.line)
        number = self.vocabulary.verdicts[verdict.text]
        head = f"'{number} 0 '" if date == "'0'" else f"'{number} ' .. {date} .. ' '"
        spans[:] = [span for span in spans if span[0] != verdict.start]
        spans.append((code[begin].start, verdict.end, f"{head} .. {self.request.removesuffix(' + 0')}"))
        for comma, end in zip(commas, commas[1:] + [closing]):
            spans.append((code[comma].start, code[comma].end, " .. ' ' .. ("))
            spans.append((code[end - 1].end, code[end - 1].end, ")"))
        spans.append((code[closing].start, code[closing].end, ""))

    def check_answer(self, code, line, first, commas, closing):
        named = [token.text for token in first if token.text in self.verdicts]
        if not named:
            refuse(self.path, "answer() begins with a verdict", line)
        last = code[(commas[-1] if commas else closing) + 1:closing]
        open_ended = bool(commas) and last and last[-1].text == ")" and any(
            token.text in ("unpack", "...") for token in last)
        for name in named:
            elements = self.verdicts[name]
            least = sum(not element.optional and not element.several for element in elements)
            most = None if any(element.several for element in elements) else len(elements)
            count = len(commas)
            wrong = count < least and not open_ended or most is not None and count > most
            if wrong or (open_ended and most is not None):
                bounds = str(least) if most == least else f"{least} to {most}" if most is not None else f"{least} or more"
                refuse(self.path, f"{name} is answered with {count} elements, but the header has {bounds}", line)


# --- a batch ------------------------------------------------------------------------------------------------------------------


class Batch:
    """What a script does for its key, for several keys in one run: its body is a function, called for each of them.

    ARGV are the deadline, the request's number, and for each key the script's own ones but those two. It answers DONE
    and a digit for each key, the verdict on it. An error of one key is that of the run: the keys behind it had none.
    """

    def __init__(self, script):
        self.script, self.path, self.name = script, script.path, script.name + "_batch"
        self.each = [argument for argument in script.arguments() if argument.name not in ("deadline_us", "request")]
        self.check()
        self.texts = texts_of(self.path, self.text())

    def check(self):
        script = self.script
        if len(script.keys) != 1 or script.flag_bits() or script.takes_settings or "deadline_us" not in script.sent:
            refuse(self.path, "what goes in a batch has one key, a deadline, and neither flags nor settings")
        for name, elements in script.verdicts.items():
            if elements or name != "LATE" and not 0 <= script.vocabulary.verdicts[name] <= 9:
                refuse(self.path, f"{name}: in a batch a verdict is one digit and has no elements")
        if "brief" in script.reading.free or "undated" in script.reading.free:
            refuse(self.path, "in a batch a verdict is the answer() of one key")
        if "deadline_us" in script.reading.free:
            refuse(self.path, "the body of what goes in a batch does not read deadline_us")

    def function(self):
        script, code = self.script, [token for token in self.script.file.tokens if token.kind != "comment"]
        spans = [(token.start, token.end, "") for token in script.file.tokens if token.kind == "comment"]
        script.replace_verdicts(spans)
        for use in script.reading.free.get("answer", ()):
            at = code.index(use.token) + 1
            closing = code[arguments_of(code, at)[1]]
            spans += [(use.token.start, code[at].end, ""), (closing.start, closing.end, "")]
        names = ", ".join(list(script.keys) + [argument.name for argument in self.each])
        return [f"local function one({names})", plain(script.file.body, spans), "end"]

    def text(self):
        script, done = self.script, self.script.vocabulary.verdicts["DONE"]
        late = script.vocabulary.verdicts["LATE"]
        chunks = needed_of(script.library.closure(script.file.uses, script.path), script.reading.free)
        passed = ["KEYS[i]"] + [f"ARGV[at + {k}]".replace(" + 0]", "]") + ("" if argument.kind == "text" else " + 0")
                                for k, argument in enumerate(self.each)]
        rows = ["local now = redis.call('TIME')", "now = now[1] * 1000000 + now[2]", "if now > ARGV[1] + 0 then",
                f"return {{ {late}, now, ARGV[2] + 0 }}", "end"]
        rows += [chunk.text for _, chunk in chunks] + self.function()
        rows += ["local said, at = {}, 3", "for i = 1, #KEYS do", f"said[i] = one({', '.join(passed)})",
                 f"at = at + {len(self.each)}", "end", f"return {{ {done}, now, ARGV[2] + 0, table.concat(said) }}"]
        return "\n".join(rows)


# --- text ---------------------------------------------------------------------------------------------------------------------


def plain(text, spans):
    """`text` with these spans replaced, without indentation and blank lines."""
    pieces, at = [], 0
    for start, end, new in sorted(spans, key=lambda span: (span[0], span[1])):
        pieces += [text[at:start], new]
        at = end
    text = "".join(pieces) + text[at:]
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def c_literal(text):
    """A text as C string literals, one a line."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")  # no trigraphs
    return '"' + text.replace("\n", '\\n"\n    "') + '"'


def commands_in(script):
    calls = re.findall(r"redis\.p?call\(", script.text)
    named = re.findall(r"redis\.p?call\('([A-Z]+)'", script.text)
    if len(calls) != len(named):
        refuse(script.path, "the name of a command has to stand in the call, in capitals and single quotes")
    for name in PUBLISH.values():
        if name in named:
            refuse(script.path, f"{name} is for the node to choose: publish(channel, message)")
    publishes = script.texts["plain"] != script.texts["sharded"]
    asked = {"PUBSUB"}  # by pcall, and done without where it is denied: with the general ones of the rule
    return {name.lower() for name in named if name not in asked} | ({"publish"} if publishes else set())


# --- C ------------------------------------------------------------------------------------------------------------------------


class Module:
    def __init__(self, name, vocabulary, scripts, parts):
        self.name, self.vocabulary = name, vocabulary
        self.library = Library(parts)
        files = [File(path) for path in scripts]
        for file in files:
            if not IDENTIFIER.match(file.name):
                refuse(file.path, "the name has to be fit for C")
        self.number_flags(files)
        self.scripts = [self.form(file)(file, self.library, vocabulary) for file in files]
        self.collect_keys()
        self.pair_up()

    @staticmethod
    def form(file):
        return RawScript if "raw" in file.fields else TypedScript

    def number_flags(self, files):
        """A flag of a name has one bit in all scripts of a module, behind those that are sent."""
        self.flags = {}
        for file in files:
            for _, text in file.words("flags"):
                for name in text.replace(",", " ").split():
                    self.flags.setdefault(name, 1 << (len(self.vocabulary.flags) + len(self.flags)))
        TypedScript.module_flags = self.flags
        if len(self.vocabulary.flags) + len(self.flags) > 31:
            raise Refused(f"module {self.name} has too many flags")

    def collect_keys(self):
        self.keys = {}
        for script in self.typed():
            for name, kind in script.keys.items():
                if self.keys.setdefault(name, kind) != kind:
                    refuse(script.path, f"{name} is a {kind}, but a {self.keys[name]} in another script of the module")

    def pair_up(self):
        """A script of one key stands for another one of several, as its first or second step: it takes that one's arguments,
        and the second one answers as that one does."""
        known = {script.name: script for script in self.typed()}
        for script in self.typed():
            for line, text in script.file.words("instead"):
                words = text.split()
                other = known.get(words[0]) if words else None
                if other is None or len(words) != 2 or words[1] not in ("1", "2"):
                    refuse(script.path, f"'{text}' should be a script of this module, and 1 or 2", line)
                self.check_pair(script, other, words[1], line)
                script.stands_for, other.instead[int(words[1]) - 1] = other, script

    @staticmethod
    def check_pair(script, other, step, line):
        if len(script.keys) != 1 or script.flags or script.defaults or script.takes_settings:
            refuse(script.path, "what stands for another script has one key, no flags of its own, no short form", line)
        for name, kind in script.args.items():
            if other.args.get(name) != kind:
                refuse(script.path, f"{name} is no such argument of {other.name}, which this one stands for", line)
        answers = [{name: [(e.name, e.kind) for e in elements] for name, elements in each.verdicts.items()}
                   for each in (script, other)]
        if step == "2" and answers[0] != answers[1]:
            refuse(script.path, f"it does not answer as {other.name} does, which it stands for", line)

    def typed(self):
        return [script for script in self.scripts if script.typed]

    def prefix(self, script=None):
        return f"lk__{self.name}_{script.name}" if script else f"lk__{self.name}"

    # scripts.h

    def header(self):
        guard = f"LK__{self.name.upper()}_SCRIPTS_H"
        rows = [f"/* Made by the build from the .lua files of src/{self.name}. */", f"#ifndef {guard}", f"#define {guard}", ""]
        if self.typed():
            rows += ['#include "redis/redis.h"', ""]
        else:
            rows += ["struct lk__script;", ""]
        if self.keys:
            rows += [f"struct {self.prefix()}_keys {{"]
            rows += [f"    const char *{name}; /* {kind} */" for name, kind in self.keys.items()]
            rows += ["};", ""]
        if self.flags:
            rows += ["enum {"]
            rows += [f"    {self.prefix().upper()}_{name.upper()} = {bit}," for name, bit in self.flags.items()]
            rows += ["};", ""]
        for script in self.typed():
            rows += self.declarations(script)
        names = [script.name for script in self.scripts]
        names += [script.batch.name for script in self.typed() if script.batch]
        rows += [f"extern const struct lk__script lk__lua_{self.name}_{name};" for name in names]
        rows += [
            "",
            "/* The server's commands that these scripts use, divided by blanks. */",
            f"extern const char lk__lua_{self.name}_commands[];",
            "",
            "#endif",
            "",
        ]
        return "\n".join(rows)

    def declarations(self, script):
        rows = []
        if (script.args or script.flags) and not script.stands_for:
            rows += [f"struct {self.prefix(script)}_args {{"]
            rows += [f"    {c_type(kind)}{name};" for name, kind in script.args.items()]
            if script.flags:
                names = ", ".join(name.upper() for name in script.flags)
                rows += [f"    unsigned flags; /* {self.prefix().upper()}_: {names} */"]
            rows += ["};"]
        if script.members and not script.reply_struct:
            rows += [f"struct {self.prefix(script)}_reply {{", "    enum lk__verdict verdict;", "    int64_t server_us;"]
            for element in script.members.values():
                if element.several:
                    rows += [f"    unsigned {element.name}, {element.name}_count; /* place of the first, and how many */"]
                else:
                    rows += [f"    {c_type(element.kind)}{element.name};"]
            rows += ["};"]
        struct = self.reply_struct(script)
        rows += [f"struct {struct};"] if script.reply_struct else []
        rows += [f"/* False: this is no answer that src/{self.name}/{script.name}.lua gives. */",
                 f"bool {self.prefix(script)}_read(const struct lk__reply *reply, struct {struct} *out);", ""]
        return rows

    def reply_struct(self, script):
        if script.reply_struct:
            return script.reply_struct
        return f"{self.prefix(script)}_reply" if script.members else "lk__answer"

    # scripts.c

    def source(self):
        rows = [f"/* Made by the build from the .lua files of src/{self.name}. */", f'#include "{self.name}/scripts.h"', "",
                '#include "redis/redis.h"']
        headers = {script.reply_header for script in self.typed() if script.reply_header}
        rows += [f'#include "{header}"' for header in sorted(headers)]
        if self.typed():
            rows += ["", "#include <stddef.h>"]
        commands = set()
        for script in self.scripts:
            commands |= commands_in(script)
            rows += self.definitions(script)
        rows += ["", f'const char lk__lua_{self.name}_commands[] = "{" ".join(sorted(commands))}";', ""]
        return "\n".join(rows)

    def definitions(self, script):
        name, rows, keys = script.name, [""], script.keys
        if script.typed:
            keys = len(script.keys)
            if script.batch:
                rows += self.batch(script.batch)
        rows += self.text(name, script.texts)
        if script.typed:
            rows += self.tables(script)
        rows += [f"const struct lk__script lk__lua_{self.name}_{name} = {{", f'    .name = "{self.name}/{name}",']
        rows += self.text_members(name, script.texts) + [f"    .keys = {keys},"]
        if script.typed:
            rows += [
                f"    .key_at = {name + '_keys' if script.keys else 'NULL'},",
                f"    .args = {name}_args,",
                f"    .arg_count = {len(script.arguments())},",
                f"    .short_keys = {script.short_keys},",
                f"    .defaults = {name + '_defaults' if script.defaults else 'NULL'},",
                f"    .default_count = {len(script.defaults)},",
                f"    .undated = {'true' if script.is_undated() else 'false'},",
                f"    .takes_settings = {'true' if script.takes_settings else 'false'},",
                f"    .flags = {sum(bit for flag, bit in script.flag_bits().items() if flag in script.flags)},",
                f"    .sent_flags = {sum(bit for flag, bit in script.flag_bits().items() if flag in script.sent_flags)},",
                f"    .shapes = {name}_shapes,",
                f"    .shape_count = {len(script.verdicts)},",
            ]
            rows += [f"    .batch = &lk__lua_{self.name}_{script.batch.name},"] if script.batch else []
            steps = ", ".join(f"&lk__lua_{self.name}_{each.name}" if each else "NULL" for each in script.instead)
            rows += [f"    .instead = {{ {steps} }},"] if any(script.instead) else []
        rows += ["};"]
        if script.typed:
            rows += self.reader(script)
        return rows

    @staticmethod
    def text(name, texts):
        """The text of a script, and where an S has to be put into it."""
        rows = [f"static const char {name}_source[] =", f"    {c_literal(texts['plain'])};", ""]
        publishes = places_between(texts["plain"], texts["sharded"])
        if publishes:
            rows += [f"static const unsigned short {name}_publishes[] = {{ {', '.join(map(str, publishes))} }};", ""]
        return rows

    @staticmethod
    def text_members(name, texts):
        publishes = places_between(texts["plain"], texts["sharded"])
        rows = [
            f"    .source = {name}_source,",
            f"    .length = sizeof({name}_source) - 1,",
            f"    .publishes = {name + '_publishes' if publishes else 'NULL'},",
            f"    .publish_count = {len(publishes)},",
            "    .sha1 = {",
        ]
        for kind, text in texts.items():
            rows += [f'        [LK__PUBSUB_{kind.upper()}] = "{hashlib.sha1(text.encode()).hexdigest()}",']
        return rows + ["    },"]

    def batch(self, batch):
        """Its keys and arguments are those of the script that it is of, as often as there are keys."""
        name = batch.name
        rows = self.text(name, batch.texts)
        rows += [f"static const struct lk__shape {name}_shapes[] = {{", '    { LK__DONE, "t" },', '    { LK__LATE, "" },',
                 "};", ""]
        rows += [f"const struct lk__script lk__lua_{self.name}_{name} = {{", f'    .name = "{self.name}/{name}",']
        rows += self.text_members(name, batch.texts)
        return rows + [f"    .shapes = {name}_shapes,", "    .shape_count = 2,", "};", ""]

    def tables(self, script):
        rows = []
        if script.keys:
            rows += [f"static const unsigned short {script.name}_keys[] = {{"]
            rows += [f"    offsetof(struct {self.prefix()}_keys, {name})," for name in script.keys]
            rows += ["};", ""]
        rows += [f"static const struct lk__argument {script.name}_args[] = {{"]
        for argument in script.arguments():
            rows += [f"    {self.argument(script, argument)},"]
        rows += ["};", ""]
        if script.defaults:
            values = [str(script.defaults[argument.name]) for argument in script.arguments() if argument.name in script.defaults]
            rows += [f"static const int64_t {script.name}_defaults[] = {{ {', '.join(values)} }};", ""]
        rows += [f"static const struct lk__shape {script.name}_shapes[] = {{"]
        for name, elements in script.verdicts.items():
            rows += [f'    {{ LK__{name}, "{self.shape(elements)}" }},']
        return rows + ["};", ""]

    def argument(self, script, argument):
        kind = "TEXT" if argument.kind == "text" else "NUMBER"
        if argument.origin == "args":
            owner = script.stands_for or script
            return f"{{ LK__ARG_{kind}, offsetof(struct {self.prefix(owner)}_args, {argument.name}) }}"
        if argument.origin == "sent":
            return f"{{ LK__ARG_SENT_{kind}, offsetof(struct lk__sent, {argument.name}) }}"
        if argument.origin == "flags" and script.flags:
            return f"{{ LK__ARG_FLAGS, offsetof(struct {self.prefix(script)}_args, flags) }}"
        return "{ LK__ARG_SENT_FLAGS, 0 }" if argument.origin == "flags" else "{ LK__ARG_REQUEST, 0 }"

    @staticmethod
    def shape(elements):
        """One letter an element, n or t; behind a ? they may be missing, a * repeats the last."""
        text = ""
        for element in elements:
            if element.optional and "?" not in text:
                text += "?"
            text += ("t" if element.kind == "text" else "n") + ("*" if element.several else "")
        return text.replace("?", "\\?")

    def reader(self, script):
        struct = self.reply_struct(script)
        rows = ["", f"bool {self.prefix(script)}_read(const struct lk__reply *reply, struct {struct} *out)", "{"]
        if struct == "lk__answer":
            return rows + [f"    return lk__answer_read(&lk__lua_{self.name}_{script.name}, reply, out);", "}"]
        rows += [
            "    struct lk__answer answer;",
            f"    if (!lk__answer_read(&lk__lua_{self.name}_{script.name}, reply, &answer))",
            "        return false;",
            f"    *out = (struct {struct}){{ .verdict = answer.verdict, .server_us = answer.server_us }};",
            "    switch (answer.verdict) {",
        ]
        shapes = {}
        for name, elements in script.verdicts.items():
            if elements:
                shapes.setdefault(id(elements), (elements, []))[1].append(name)
        for elements, names in shapes.values():
            rows += [f"    case LK__{name}:" for name in names]
            for at, element in enumerate(elements, 3):
                rows += [f"        {row}" for row in self.assignment(element, at)]
            rows += ["        break;"]
        return rows + ["    default:", "        break;", "    }", "    return true;", "}"]

    @staticmethod
    def assignment(element, at):
        if element.several:
            return [f"out->{element.name} = {at};", f"out->{element.name}_count = reply->count - {at};"]
        if element.kind == "text":
            return [f"out->{element.name} = lk__reply_text(reply, {at});"]
        return [f"out->{element.name} = lk__reply_number(reply, {at});"]


# --- the command line ----------------------------------------------------------------------------------------------------------


def write_if_changed(path, text):
    data = text.encode()
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)


def make_module(name, vocabulary, folder, *rest):
    split = rest.index("--parts")
    if rest[0] != "--scripts":
        raise ValueError
    module = Module(name, Vocabulary(vocabulary), rest[1:split], list(dict.fromkeys(rest[split + 1:])))
    header, source = module.header(), module.source()
    write_if_changed(os.path.join(folder, "scripts.h"), header)
    write_if_changed(os.path.join(folder, "scripts.c"), source)


def make_vocabulary(vocabulary, output):
    write_if_changed(output, vocabulary_h(Vocabulary(vocabulary)))


def main(argv):
    try:
        {"module": make_module, "vocabulary": make_vocabulary}[argv[0]](*argv[1:])
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    except (KeyError, IndexError, TypeError, ValueError):
        if os.environ.get("SCRIPTS_TRACE"):
            raise
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
