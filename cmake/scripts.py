#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts.py - turn the Lua scripts of one module into C, at build time

  scripts.py <module> <vocabulary.h> <folder> --scripts <files> --parts <files> --below <files>

It writes scripts.h and scripts.c into the folder: for acquire.lua of module lock a `const struct lk__script
lk__lua_lock_acquire`, the structs of its keys and arguments, and lk__lock_acquire_read(), which reads its reply. What a
script's header may say, and what becomes of it, is in CONTRIBUTING.md, "A script".

The text of a script is a row of pieces: stretches of its body, and the parts that it uses between them. Each part is
embedded once, with the module that has it among its --parts; those of the modules below are --below.
"""
import collections
import hashlib
import os
import re
import sys


class Refused(Exception):
    """A mistake in what the build was given; its text names the place."""


def refuse(path, why, line=None):
    raise Refused(f"{path}:{line}: {why}" if line else f"{path}: {why}")


# --- Lua ---------------------------------------------------------------------------------------------------------

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
# What the server gives to a script, and what the library puts in front of one that publishes.
GLOBALS = set(
    "cjson error ipairs math next pairs pcall PUBLISH publish redis select string table tonumber tostring type unpack".split()
)


Token = collections.namedtuple("Token", "kind text line")


def tokens_of(path, text, line):
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            refuse(path, f"cannot be read: {text[at:at + 20].splitlines()[0]!r}", line)
        found.append(Token(match.lastgroup, match.group(), line))
        line += match.group().count("\n")
        at = match.end()
    return found


def names_of(tokens):
    """The names that a text declares, anywhere, and those that it reads, with the token that does so first."""
    code = [token for token in tokens if token.kind not in ("space", "comment")]
    declared, read = set(), {}
    for before, token, after in zip([None] + code, code, code[1:] + [None]):
        if token.kind != "name" or token.text in KEYWORDS:
            continue
        if not (before and before.text in (".", ":") or after and after.text == "="):
            read.setdefault(token.text, token)
    for at, token in enumerate(code):
        if token.text in ("local", "for", "function"):
            for each in code[at + 1:]:
                if each.text in KEYWORDS or each.kind != "name" and each.text not in (",", "(", ".", "..."):
                    break
                declared.add(each.text)
    return declared, read


def statements_of(tokens):
    """The statements of the top level, each a row of tokens: one begins with a word at the beginning of a line."""
    rows, new_line = [[]], True
    for token in tokens:
        if new_line and token.kind == "name" and token.text not in ("end", "else", "elseif"):
            rows.append([])
        rows[-1].append(token)
        new_line = token.kind == "space" and token.text.endswith("\n")
    return rows


def arguments_of(tokens, opening):
    """The arguments of a call, each a row of tokens, and the place of its closing bracket."""
    row, depth, at = [[]], 0, opening
    while True:
        text = tokens[at].text
        depth += (text in ("(", "[", "{", "function")) - (text in (")", "]", "}", "end"))
        if depth == 0:
            return [each for each in row if each or len(row) > 1], at
        if text == "," and depth == 1:
            row.append([])
        elif at > opening:
            row[-1].append(tokens[at])
        at += 1


def plain(text):
    """Without indentation and blank lines."""
    return "".join(line.strip() + "\n" for line in text.split("\n") if line.strip())


# --- a .lua file ----------------------------------------------------------------------------------------------------

FIELDS = ("uses", "keys", "args", "flags", "sent", "instead", "verdicts", "reply", "resend", "batch", "raw")


class File:
    """A .lua file: its header, the comment lines it begins with, and its code."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[: -len(".lua")]
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read().replace("\r\n", "\n")
        if re.search(r"\[=*\[", text) or "\\\n" in text:
            refuse(path, "no long brackets and no strings over several lines, please")
        self.header = re.match(r"(?:--[^\n]*(?:\n|$))*", text).group()
        self.read_fields()
        self.tokens = tokens_of(path, text[len(self.header):], self.header.count("\n") + 1)
        self.declared, self.read = names_of(self.tokens)
        self.uses = [name for _, item in self.words("uses") for name in item.split()]

    def read_fields(self):
        """The fields of the header. What stands behind two blanks is for the reader alone."""
        self.fields, current = {}, None
        for number, line in enumerate(self.header.splitlines(), 1):
            named, more = re.match(r"-- ?([a-z_]+):(?: +(.*))?$", line), re.match(r"--   +(\S.*)$", line)
            if named and named.group(1) in self.fields:
                refuse(self.path, f"there are two fields '{named.group(1)}:'", number)
            if named and named.group(1) not in FIELDS:
                refuse(self.path, f"there is no field '{named.group(1)}:'; a header has {', '.join(FIELDS)}", number)
            if named:
                current = self.fields[named.group(1)] = []
            elif not more:
                current = None
            if current is not None:
                text = named.group(2) or "" if named else more.group(1)
                current.append((number, re.split(r"  +", text.strip(), maxsplit=1)[0]))

    def words(self, field):
        """(line number, text) of each line of a field."""
        return self.fields.get(field, [])

    def items(self, field):
        """(line number, item) of a field whose items commas or line ends divide."""
        return [(line, item.strip()) for line, text in self.words(field) for item in text.split(",") if item.strip()]


class Chunk:
    """A function or some constants of a part: what it declares, what it needs, its text."""

    def __init__(self, part, tokens):
        self.text = plain(rewritten(tokens, {}))
        words = re.match(r"local (?:function )?(\w+(?:, \w+)*)", self.text)
        if not words:
            refuse(part.path, "a part has nothing but local functions and constants", tokens[0].line)
        self.path, self.declares = part.path, words.group(1).split(", ")
        self.declared, self.needs = names_of(tokens)
        self.name = f"lk__part_{part.name}_{self.declares[0]}"


class Library:
    """The parts that scripts may use, each of which is Lua that several of them share."""

    def __init__(self, paths):
        self.paths, self.parts = paths, {}

    def part(self, name, user):
        if name not in self.parts:
            paths = [path for path in self.paths if os.path.basename(path) == name + ".lua"]
            if len(paths) != 1:
                refuse(user, f"uses {name}: there are {len(paths)} parts of this name")
            file = self.parts[name] = File(paths[0])
            for field in file.fields:
                if field not in ("uses", "resend"):
                    refuse(file.path, f"a part has no field '{field}:': it takes what it needs as arguments")
            file.chunks = [Chunk(file, row) for row in statements_of(file.tokens)[1:]]
            file.offers = {word for chunk in file.chunks for word in chunk.declares}
        return self.parts[name]

    def closure(self, names, user, way=()):
        """These parts and those they use: the deepest first, each once."""
        row = []
        for name in names:
            if name in way:
                refuse(user, f"uses {' -> '.join(way + (name,))}, which is a circle")
            part = self.part(name, user)
            for deeper in self.closure(part.uses, part.path, way + (name,)) + [part]:
                if deeper not in row:
                    row.append(deeper)
        return row


def needed_of(chunks, names):
    """Those of the chunks that declare one of the names, and what they need in turn; in order."""
    wanted, kept = set(names), []
    for chunk in reversed(chunks):
        if wanted.intersection(chunk.declares):
            kept.insert(0, chunk)
            wanted.update(chunk.needs)
    return kept


def rewritten(tokens, values, calls=None):
    """The text with these names replaced by their values, and without comments. Calls of these names become what their
    functions make of the arguments. publish(channel, message) is a command of the library's choice."""
    row, before, at = [], "", 0
    while at < len(tokens):
        token = tokens[at]
        after = [each.text for each in tokens[at + 1:at + 3] if each.kind != "space"][:1]
        name = token.text if token.kind == "name" and before not in (".", ":") else None
        if calls and name in calls and after == ["("]:
            arguments, at = arguments_of(tokens, at + 1)
            row.append(calls[name](token, arguments))
        elif name == "publish" and after == ["("]:
            row.append("redis.pcall(PUBLISH, ")
            at += 1
        elif name in values and not (after == ["="] and before in ("{", ",")):  # else it is the key of a table
            row.append(values[name])
        elif token.kind != "comment":
            row.append(token.text)
        before = token.text if token.kind not in ("space", "comment") else before
        at += 1
    return "".join(row)


# --- the vocabulary ---------------------------------------------------------------------------------------------------

TYPES = ("text", "number", "ms", "us")
ARG_TYPES = TYPES + ("digits",)  # a number for C, and for Lua the text that it came as
KEY_TYPES = ("hash", "string", "zset", "set", "list")
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*$")
RESERVED = {"now", "now_text", "time", "flags", "request", "answer", "brief", "undated"}


class Vocabulary:
    """redis/vocabulary.h, which gives verdicts and sent values their names."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            text = file.read()
        verdicts = re.findall(r"^    LK__(?!SENT_)(\w+) = (-?\d+),", text, re.M)
        self.verdicts = {name: int(number) for name, number in verdicts}
        self.flags = {name.lower(): int(bit) for name, bit in re.findall(r"^    LK__SENT_(\w+) = (\d+),", text, re.M)}
        sent = text[text.index("struct lk__sent {"):text.index("unsigned flags;")]
        kinds = {"const char *": "text", "int64_t ": "number", "const struct lk__settingsmark *": "settingsmark"}
        self.sent = {name: "digits" if digits else kinds[kind]
                     for kind, name, digits in re.findall(r"^    (.*?)(\w+);\s*(/\* digits)?", sent, re.M)}


def c_type(kind):
    return "const char *" if kind == "text" else "int64_t "


# --- a script ----------------------------------------------------------------------------------------------------------

# The digits of now. To put them together from those of the reply costs the server a quarter of what a format does.
NOW_TEXT = "#time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)"
# How long a settings mark lasts. A user looks at it again after half of this: src/object/settings.c.
SETTINGS_LAST_S = 3600
# By the words of enum lk__pubsub_kind: what the library puts in front of a script that publishes.
HEADS = {"PLAIN": "local PUBLISH = 'PUBLISH'\n", "SHARDED": "local PUBLISH = 'SPUBLISH'\n"}


# One element of a reply: `token number`, `holder text?`, `ids text...`.
Element = collections.namedtuple("Element", "name kind optional several")
# One ARGV: of the args, of what is sent, the flags, or the request's number.
Argument = collections.namedtuple("Argument", "name kind origin")


class Script:
    """A raw one is sent as it stands: its callers make the call and read the reply themselves."""

    def __init__(self, file, library, vocabulary, module_flags):
        self.file, self.name, self.path, self.vocabulary = file, file.name, file.path, vocabulary
        self.module_flags, self.library = module_flags, library
        self.names, self.keys, self.verdicts, self.members = {}, {}, {}, {}
        self.stands_for, self.steps, self.batch = None, [None, None], None
        self.typed, self.is_batch = "raw" not in file.fields, "batch" in file.fields
        if self.typed:
            self.read_header()
        elif [field for field in file.fields if field not in ("raw", "resend")] or not file.words("raw")[0][1]:
            refuse(self.path, "a raw script has 'raw:', which says why, and 'resend:'")
        self.make_pieces()
        if not self.typed and self.publishes:
            refuse(self.path, "a raw script does not publish: it is one piece")

    # The header.

    def claim(self, line, item, kinds, what):
        """The name and the type of an item."""
        name, kind = (item.split() + ["", ""])[:2]
        if not IDENTIFIER.match(name) or kind not in kinds or len(item.split()) > 2:
            refuse(self.path, f"'{item}' is no name and type of {what}; types are {', '.join(kinds)}", line)
        if name in RESERVED | KEYWORDS | GLOBALS or name in self.names:
            refuse(self.path, f"{name} cannot be the name of {what}: it is declared", line)
        self.names[name] = line
        return name, kind

    def read_header(self):
        file, vocabulary = self.file, self.vocabulary
        self.keys = dict(self.claim(line, item, KEY_TYPES, "a key") for line, item in file.items("keys"))
        self.args = dict(self.claim(line, item, ARG_TYPES, "an argument") for line, item in file.items("args"))
        self.flags = [self.claim(line, name, [""], "a flag")[0]
                      for line, text in file.words("flags") for name in text.split()]
        sent = [self.claim(line, name, [""], "what is sent")[0]
                for line, text in file.words("sent") for name in text.split()]
        for name in sent:
            if name not in vocabulary.sent and name not in vocabulary.flags:
                refuse(self.path, f"nothing that is sent is called {name}: see {vocabulary.path}", self.names[name])
        self.takes_settings = "settings" in sent
        self.sent_flags = [name for name in sent if name in vocabulary.flags]
        self.arguments = [Argument(name, kind, "args") for name, kind in self.args.items()]
        self.arguments += [Argument("flags", "digits", "flags")] if self.flags or self.sent_flags else []
        self.arguments += [Argument(name, vocabulary.sent[name], "sent") for name in sent
                           if name in vocabulary.sent and name != "settings"]
        self.arguments += [Argument("request", "number", "request")]
        self.bits = {name: vocabulary.flags[name] for name in self.sent_flags}
        self.bits.update({name: self.module_flags[name] for name in self.flags})
        self.read_verdicts()
        if "resend" not in file.fields:
            refuse(self.path, "the header does not say what a resend does: 'resend:'")
        if ("deadline_us" in sent) != ("LATE" in self.verdicts) or self.verdicts.get("LATE"):
            refuse(self.path, "LATE is the verdict of scripts that are sent a deadline_us, without elements")
        if self.takes_settings != ("DISAGREES" in self.verdicts):
            refuse(self.path, "DISAGREES is the verdict of scripts that are sent settings")
        self.reply = [text.split() for _, text in file.words("reply")]  # a struct and its header

    def read_verdicts(self):
        """What each verdict is answered with. A line has verdicts, and elements that all of them have."""
        joined = []
        for line, text in self.file.words("verdicts"):
            if joined and joined[-1][1].endswith(","):
                joined[-1] = (joined[-1][0], joined[-1][1] + " " + text)
            else:
                joined.append((line, text))
        for line, text in joined:
            names, rest = re.match(r"((?:[A-Z][A-Z0-9_]*(?: +|$))*)(.*)$", text).groups()
            elements = self.read_elements(line, rest)
            for name in names.split():
                if name not in self.vocabulary.verdicts or name in self.verdicts:
                    refuse(self.path, f"{name} is no verdict of {self.vocabulary.path}, or is declared twice", line)
                self.verdicts[name] = elements
        if not self.verdicts:
            refuse(self.path, "the header names no verdicts")

    def read_elements(self, line, text):
        elements = []
        for item in filter(None, (item.strip() for item in text.split(","))):
            match = re.match(r"([a-z][a-z0-9_]*) (\w+)(\?|\.\.\.)?$", item)
            if not match or match.group(2) not in TYPES:
                refuse(self.path, f"'{item}' should be a name and a type ({', '.join(TYPES)}), "
                                  "with ? if it may be missing, with ... if there may be any number of it", line)
            if elements and (elements[-1].several or elements[-1].optional and not match.group(3)):
                refuse(self.path, f"{match.group(1)} stands behind what may be missing", line)
            name, kind, mark = match.groups()
            elements.append(Element(name, kind, mark == "?", mark == "..."))
            known = self.members.setdefault(name, elements[-1])
            if (known.kind, known.several) != (kind, mark == "..."):
                refuse(self.path, f"{name} has another type with another verdict", line)
        return elements

    # The body.

    def make_pieces(self):
        """The text of the script, in pieces: each is (the name of a chunk or None, its text). What a statement of the
        top level needs of the parts stands before it: a script that returns early makes no functions that it does not
        call. The time stands first, or where it is needed first if there are answers without it."""
        self.parts = self.library.closure(self.file.uses, self.path)
        chunks = [chunk for part in self.parts for chunk in part.chunks]
        self.undated = "undated" in self.file.read
        values, calls = (self.values(), ("answer", "brief", "undated")) if self.typed else ({}, ())
        self.pieces, begun = [], not self.typed
        for row in statements_of(self.file.tokens):
            read, there = names_of(row)[1], [name for name, _ in self.pieces]
            if not begun and (not self.undated or {"now", "now_text", "answer", "brief"}.intersection(read)):
                begun = self.add(None, self.prologue())
            for chunk in needed_of(chunks, read):
                if chunk.name not in there:
                    self.add(chunk.name, chunk.text)
                    offered = chunk.declared.union(*(part.offers for part in self.parts), ("KEYS",))
                    self.check_reads(chunk.path, chunk.needs, offered)
            self.add(None, plain(rewritten(row, values, dict.fromkeys(calls, self.answered))))
        self.check_names(values)
        text = "".join(text for _, text in self.pieces)
        self.publishes = re.search(r"\bPUBLISH\b", text) is not None
        self.texts = {kind: (head if self.publishes else "") + text for kind, head in HEADS.items()}

    def add(self, name, text):
        if name is None and self.pieces and self.pieces[-1][0] is None:
            text = self.pieces.pop()[1] + text
        self.pieces.append((name, text))
        return True

    def values(self):
        """What each name of the header stands for."""
        found = {name: f"KEYS[{number}]" for number, name in enumerate(self.keys, 1)}
        for number, argument in enumerate(self.arguments, 1):
            text = argument.kind in ("text", "digits")
            found[argument.name] = f"ARGV[{number}]" if text else f"(ARGV[{number}] + 0)"  # faster than tonumber()
        top = max(self.bits.values(), default=0)
        for name, bit in self.bits.items():  # only these bits are sent
            found[name] = f"({found['flags']} {'+ 0' if bit == top else f'% {2 * bit}'} >= {bit})"
        return {**found, **{name: str(self.vocabulary.verdicts[name]) for name in self.verdicts}}

    def prologue(self):
        """The server's time, and an end if it is past the deadline or settings disagree. The settings mark of a name is
        a key behind the others. It comes only if it is to be looked at, with the sender's settings behind the other
        arguments, and one more if what is found there is to be replaced. Nothing that is wrong with it keeps anybody
        from going on."""
        values, count = self.values(), len(self.arguments)
        rows = ["local time = redis.call('TIME')", "local now = time[1] * 1000000 + time[2]"]
        if any(token.text in ("now_text", "brief") for token in self.file.tokens):
            rows += [f"local now_text = {NOW_TEXT}"]
        if "LATE" in self.verdicts:
            rows += [f"if now > {values['deadline_us']} then",
                     f"return {{ {values['LATE']}, now, {values['request']} }}", "end"]
        if self.takes_settings:
            key, mine = f"KEYS[{len(self.keys) + 1}]", f"ARGV[{count + 1}]"
            rows += [f"if {key} then", f"local found = redis.pcall('GET', {key})",
                     f"if type(found) == 'string' and found ~= {mine} and not ARGV[{count + 2}] then",
                     f"return {{ {values['DISAGREES']}, now, {values['request']}, found }}", "end",
                     f"redis.pcall('SET', {key}, {mine}, 'EX', {SETTINGS_LAST_S})", "end"]
        return "\n".join(rows) + "\n"

    def answered(self, call, arguments):
        """answer(VERDICT, a, b) becomes { number, now, request, a, b }; brief() is the same as one text, of which the server
        makes a reply in half of the time; undated() is brief, with 0 for the time."""
        values = self.values()
        named = [token.text for token in arguments[0] if token.text in self.verdicts] if arguments else []
        if not named:
            refuse(self.path, f"{call.text}() begins with a verdict of the header", call.line)
        for name in named:
            self.check_count(name, arguments[1:], call.line)
        texts = [rewritten(row, values, {}).strip() for row in arguments]
        if call.text == "answer":
            return f"{{ {', '.join([texts[0], 'now', values['request']] + texts[1:])} }}"
        kinds = {element.kind for element in self.verdicts[named[0]][:len(arguments) - 1]}
        if "text" in kinds or len(arguments[0]) > 1:
            refuse(self.path, f"{call.text}() has one verdict, and numbers alone", call.line)
        head = f"'{texts[0]} ' .. now_text .. ' '" if call.text == "brief" else f"'{texts[0]} 0 '"
        return " .. ' ' .. ".join([f"{head} .. {values['request'][1:-5]}"] + [f"({text})" for text in texts[1:]])

    def check_count(self, name, rest, line):
        elements = self.verdicts[name]
        least = sum(not element.optional and not element.several for element in elements)
        most = 99 if any(element.several for element in elements) else len(elements)
        if not least <= len(rest) <= most and not (most == 99 and rest and rest[-1][-1].text == ")"):
            refuse(self.path, f"{name} is answered with {len(rest)} elements, but the header has {least} to {most}", line)

    @staticmethod
    def check_reads(path, read, declared):
        for name, token in read.items():
            if name not in GLOBALS | declared:
                refuse(path, f"{name} is not declared", token.line)

    def check_names(self, values):
        """What the body reads is declared, and what the header declares is read."""
        read, declared = self.file.read, self.file.declared.union(*(part.offers for part in self.parts))
        for name in self.names:
            if name in declared:
                refuse(self.path, f"{name} is declared by the header, and again in the body or a part", self.names[name])
            if name not in read and name not in ("deadline_us", "settings") and not ("flags" in read and name in self.bits):
                refuse(self.path, f"{name} is declared, but the body does not read it", self.names[name])
        for name in self.verdicts:
            if name not in read and name not in ("LATE", "DISAGREES"):
                refuse(self.path, f"the verdict {name} is declared, but the body does not answer it")
        elements = () if self.typed and not self.is_batch else ("KEYS", "ARGV")
        self.check_reads(self.path, read, declared.union(values, RESERVED if self.typed else (), elements))
        for part in self.file.uses:
            if not any(name in read for name in self.library.part(part, self.path).offers):
                refuse(self.path, f"uses {part}, but nothing of it")


def commands_in(script):
    """The commands of the server that it uses."""
    text = script.texts["PLAIN"]
    calls = re.findall(r"redis\.p?call\((?!PUBLISH)", text)
    named = re.findall(r"redis\.p?call\('([A-Z]+)'", text)
    if len(calls) != len(named) or "PUBLISH" in named or "SPUBLISH" in named:
        refuse(script.path, "the name of a command stands in the call, in capitals and single quotes, or it is publish()")
    asked = {"PUBSUB"}  # by pcall, and done without where it is denied: with the general ones of the rule
    return {name.lower() for name in named if name not in asked} | ({"publish"} if script.publishes else set())


# --- C ------------------------------------------------------------------------------------------------------------------------


def c_literal(text):
    """A text as C string literals, one a line."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")  # no trigraphs
    return "\n    ".join(f'"{line}\\n"' for line in text.removesuffix("\n").split("\n"))


def block(head, rows):
    """Rows in braces; nothing where there are none."""
    return [head + " {"] + [f"    {row}" for row in rows] + ["};", ""] if rows else []


class Module:
    def __init__(self, name, vocabulary, scripts, parts, below):
        self.name, self.vocabulary = name, vocabulary
        library, files = Library(list(dict.fromkeys(list(parts) + list(below)))), [File(path) for path in scripts]
        self.parts = [library.part(os.path.basename(path)[: -len(".lua")], path) for path in parts]
        names = [flag for file in files for _, text in file.words("flags") for flag in text.split()]
        # A flag of a name has one bit in all scripts of a module, behind those that are sent.
        self.flags = {flag: 1 << (len(vocabulary.flags) + at) for at, flag in enumerate(dict.fromkeys(names))}
        self.scripts = [Script(file, library, vocabulary, self.flags) for file in files]
        self.typed = {script.name: script for script in self.scripts if script.typed}
        self.keys = {}
        for script in self.typed.values():
            for key, kind in script.keys.items():
                if self.keys.setdefault(key, kind) != kind:
                    refuse(script.path, f"{key} is a {kind}, but a {self.keys[key]} in another script of the module")
            self.pair_up(script)

    def pair_up(self, script):
        """A script of one key stands for another one of several, as its first or second step: it takes that one's
        arguments, and the second one answers as that one does. A batch is for several keys what another script is for one."""
        for line, text in script.file.words("instead") + script.file.words("batch"):
            name, step = (text.split() + [""])[:2]
            other = self.typed.get(name)
            if other is None or not script.is_batch and step not in ("1", "2"):
                refuse(script.path, f"'{text}' should be a script of this module, and of instead: 1 or 2", line)
            if script.is_batch:
                other.batch = script
            else:
                script.stands_for, other.steps[int(step) - 1] = other, script

    def prefix(self, script=None):
        return f"lk__{self.name}_{script.name}" if script else f"lk__{self.name}"

    # scripts.h

    def header(self):
        guard, flags = f"LK__{self.name.upper()}_SCRIPTS_H", self.prefix().upper()
        rows = [f"/* Made by the build from the .lua files of src/{self.name}. */", f"#ifndef {guard}", f"#define {guard}", "",
                '#include "redis/redis.h"', ""]
        rows += block(f"struct {self.prefix()}_keys", [f"const char *{name}; /* {kind} */" for name, kind in self.keys.items()])
        rows += block("enum", [f"{flags}_{name.upper()} = {bit}," for name, bit in self.flags.items()])
        for script in self.typed.values():
            rows += self.declarations(script)
        rows += [f"extern const struct lk__script lk__lua_{self.name}_{script.name};" for script in self.scripts]
        rows += ["", "/* The server's commands that these scripts use, divided by blanks. */",
                 f"extern const char lk__lua_{self.name}_commands[];", "", "#endif", ""]
        return "\n".join(rows)

    def declarations(self, script):
        if script.is_batch:
            return []
        rows, members = [], ["enum lk__verdict verdict;", "int64_t server_us;"]
        if not script.stands_for:
            flags = [f"unsigned flags; /* {self.prefix().upper()}_: {' '.join(script.flags).upper()} */"] if script.flags else []
            args = [f"{c_type(kind)}{name};" for name, kind in script.args.items()]
            rows += block(f"struct {self.prefix(script)}_args", args + flags)
        for element in script.members.values():  # of several: place of the first, and how many
            several = f"unsigned {element.name}, {element.name}_count;"
            members += [several if element.several else f"{c_type(element.kind)}{element.name};"]
        struct = self.reply_struct(script)
        if script.reply:
            rows += [f"struct {struct};"]
        elif script.members:
            rows += block(f"struct {struct}", members)
        if struct:
            rows += [f"/* An answer that src/{self.name}/{script.name}.lua gives. */",
                     f"void {self.prefix(script)}_read(const struct lk__reply *reply, struct {struct} *out);", ""]
        return rows

    def reply_struct(self, script):
        return script.reply[0][0] if script.reply else f"{self.prefix(script)}_reply" if script.members else None

    # scripts.c

    def source(self):
        headers = sorted({f'#include "{words[1]}"' for script in self.typed.values() for words in script.reply})
        rows = [f"/* Made by the build from the .lua files of src/{self.name}. */", f'#include "{self.name}/scripts.h"', "",
                '#include "redis/redis.h"'] + headers + ["", "#include <stddef.h>", ""]
        chunks = {chunk.name: chunk.text for part in self.parts for chunk in part.chunks}
        used = {name for script in self.scripts for name, _ in script.pieces if name}
        rows += [f"extern const char {name}[];" for name in sorted(used.union(chunks))]
        for name, text in chunks.items():
            rows += ["", f"const char {name}[] =", f"    {c_literal(text)};"]
        for script in self.scripts:
            rows += self.definitions(script) + (self.reader(script) if script.typed and not script.is_batch else [])
        commands = sorted(set().union(*(commands_in(script) for script in self.scripts)))
        return "\n".join(rows + ["", f'const char lk__lua_{self.name}_commands[] = "{" ".join(commands)}";', ""])

    def definitions(self, script):
        name, lua = script.name, f"lk__lua_{self.name}_"
        pieces = [part or c_literal(text) for part, text in script.pieces] + ["NULL"]
        sums = [f'[LK__PUBSUB_{kind}] = "{hashlib.sha1(text.encode()).hexdigest()}"' for kind, text in script.texts.items()]
        rows = [""] + block(f"static const char *const {name}_pieces[] =", [f"{piece}," for piece in pieces])
        members = {"name": f'"{self.name}/{name}"', "pieces": f"{name}_pieces", "publishes": int(script.publishes),
                   "length": sum(len(text.encode()) for _, text in script.pieces), "sha1": f"{{ {', '.join(sums)} }}",
                   "keys": len(script.keys)}
        if script.typed:
            rows += self.tables(script)
            members.update(key_at=f"{name}_keys" if script.keys else "NULL", args=f"{name}_args", shapes=f"{name}_shapes",
                           arg_count=len(script.arguments), shape_count=len(script.verdicts), undated=int(script.undated),
                           takes_settings=int(script.takes_settings), flags=sum(script.bits[flag] for flag in script.flags),
                           sent_flags=sum(script.bits[flag] for flag in script.sent_flags))
            if script.batch:
                members["batch"] = f"&{lua}{script.batch.name}"
            if any(script.steps):
                members["instead"] = f"{{ {', '.join(f'&{lua}{step.name}' if step else 'NULL' for step in script.steps)} }}"
        return rows + block(f"const struct lk__script {lua}{name} =", [f".{key} = {value}," for key, value in members.items()])

    def tables(self, script):
        name, shapes = script.name, script.verdicts.items()
        keys = [f"offsetof(struct {self.prefix()}_keys, {key})," for key in script.keys]
        return (block(f"static const unsigned short {name}_keys[] =", keys) +
                block(f"static const struct lk__argument {name}_args[] =",
                      [f"{self.argument(script, argument)}," for argument in script.arguments]) +
                block(f"static const struct lk__shape {name}_shapes[] =",
                      [f'{{ LK__{verdict}, "{self.shape(elements)}" }},' for verdict, elements in shapes]))

    def argument(self, script, argument):
        kind, owner = "TEXT" if argument.kind == "text" else "NUMBER", self.prefix(script.stands_for or script)
        if argument.origin == "sent":
            return f"{{ LK__ARG_SENT_{kind}, offsetof(struct lk__sent, {argument.name}) }}"
        if argument.origin == "args":
            return f"{{ LK__ARG_{kind}, offsetof(struct {owner}_args, {argument.name}) }}"
        if argument.origin == "flags" and script.flags:
            return f"{{ LK__ARG_FLAGS, offsetof(struct {owner}_args, flags) }}"
        return "{ LK__ARG_SENT_FLAGS, 0 }" if argument.origin == "flags" else "{ LK__ARG_REQUEST, 0 }"

    @staticmethod
    def shape(elements):
        """One letter an element, n or t; behind a ? they may be missing, a * repeats the last."""
        text = ""
        for element in elements:
            text += "?" if element.optional and "?" not in text else ""
            text += ("t" if element.kind == "text" else "n") + ("*" if element.several else "")
        return text.replace("?", "\\?")

    def reader(self, script):
        struct = self.reply_struct(script)
        if not struct:
            return []
        rows = ["", f"void {self.prefix(script)}_read(const struct lk__reply *reply, struct {struct} *out)", "{",
                f"    *out = (struct {struct}){{",
                "        .verdict = (enum lk__verdict)lk__reply_number(reply, 0), .server_us = lk__reply_number(reply, 1)", "    };",
                "    switch (out->verdict) {"]
        for verdict, elements in script.verdicts.items():
            if elements:
                rows += [f"    case LK__{verdict}:"]
                rows += [f"        {self.assignment(element, at)}" for at, element in enumerate(elements, 3)] + ["        break;"]
        return rows + ["    default:", "        break;", "    }", "}"]

    @staticmethod
    def assignment(element, at):
        if element.several:
            return f"out->{element.name} = {at}, out->{element.name}_count = reply->count - {at};"
        return f"out->{element.name} = lk__reply_{'text' if element.kind == 'text' else 'number'}(reply, {at});"


# --- the command line ----------------------------------------------------------------------------------------------------------


def write_if_changed(path, text):
    data = text.encode()
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)


def main(argv):
    if len(argv) < 6 or "--below" not in argv or argv[3] != "--scripts":
        print(__doc__, file=sys.stderr)
        return 2
    parts, below = argv.index("--parts"), argv.index("--below")
    try:
        module = Module(argv[0], Vocabulary(argv[1]), argv[4:parts], argv[parts + 1:below], argv[below + 1:])
        header, source = module.header(), module.source()
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    write_if_changed(os.path.join(argv[2], "scripts.h"), header)
    write_if_changed(os.path.join(argv[2], "scripts.c"), source)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
