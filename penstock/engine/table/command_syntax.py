"""The little language in which a command's arguments are declared.

It is the notation of Redis's own documentation, made exact enough that the whole tree of COMMAND DOCS follows:

    word            a value; its name and its display text        key  count  min-idle-time
    word:type       its type where `TYPES` does not know the name score:double  newkey:key  key2:key#0
    TOKEN           a word without lower-case letters stands for itself; the argument's name is `token`
    TOKEN word      a value behind a token, one argument           LIMIT count
    TOKEN, word     a comma parts them: two arguments
    name:X          X under another name                           auto-id:*  password:AUTH word  trim:[...]  "ip:port"
    <a|b>           one of several; behind a token also            FILTERBY <MODULE name|ACLCAT category>
    (a b)           a block; behind a token also                   GROUP (group consumer)
    [a]  [a|b]  [a b]   an optional argument, choice, block
    a [a ...]       repeated; the token is repeated too if it stands inside the brackets. A bare `a ...` says the same.
    x@6.2.0         since that version; x@-6.2.0 deprecated since then
    x@~6.2.0        since that version, too, which COMMAND DOCS does not say
    x@valkey-9.1.0  that Valkey has since that version, and no Redis

A choice or block without a name is called after its first argument. The nth key belongs to the nth key
specification (`key#0` where not). Types are those of Redis: string, integer, double, key, pattern, unix-time.

    >>> trees.shown(parse("key [MAXLEN count] data:(field value) [field value ...]"))
    'key [MAXLEN count] field value [field value ...]'
    >>> arity("XACK", "key group id [id ...]")
    -4
"""

import re
from typing import Final

from penstock.engine.table import argument_tree as trees
from penstock.engine.table.argument_tree import Argument

_WORDS: Final = re.compile(r'\.\.\.|[\[\]<>()|,]|(?:"[^"]*"|[^\s\[\]<>()|,"])+')
_TYPES: Final = frozenset(["string", "integer", "double", "key", "pattern", "unix-time"])

EMPTY: Final = '""'  # the token that is an empty word

TYPES: Final[dict[str, str]] = {  # of values by name, where nothing else is said
    "key": "key",
    "pattern": "pattern",
    "unix-time-seconds": "unix-time",
    "unix-time-milliseconds": "unix-time",
    "client-id": "integer",
    "count": "integer",
    "cursor": "integer",
    "index": "integer",
    "limit": "integer",
    "milliseconds": "integer",
    "numfields": "integer",
    "numids": "integer",
    "numkeys": "integer",
    "nummembers": "integer",
    "numreplicas": "integer",
    "offset": "integer",
    "seconds": "integer",
}


def parse(syntax: str) -> list[Argument]:
    """The tree of a declared line; ValueError where it is malformed."""
    return _Parser(syntax).whole()


def arity(name: str, syntax: str, hidden: frozenset[bytes] = frozenset()) -> int:
    """Words a request must have, the name's included; negative: at least so many. Without the hidden words."""
    own = 2 if "|" in name else 1
    if not syntax:
        return own
    if hidden and "@valkey-" in syntax:
        least, fixed = trees.extent(trees.without(parse(syntax), hidden))
        return own + least if fixed else -(own + least)
    least, fixed = _words_outside_brackets(syntax) or trees.extent(parse(syntax))
    return own + least if fixed else -(own + least)


def _words_outside_brackets(syntax: str) -> tuple[int, bool] | None:
    """The result of `trees.extent` for the line, without its tree, which a start does not need otherwise.

    None where a choice stands outside square brackets.
    """
    least, depth, is_fixed = 0, 0, True
    for word in _WORDS.findall(syntax):
        if word == "[":
            depth += 1
            is_fixed = False
        elif word == "]":
            depth -= 1
        elif depth:
            continue
        elif word == "<":
            return None
        elif word == "...":
            is_fixed = False
        elif word not in (",", "(", ")") and word[0] != "@" and word[-1] != ":":
            least += 1
    return least, is_fixed


class _Parser:
    """Recursive descent over the words of one line."""

    __slots__ = ("at", "keys", "syntax", "words")

    def __init__(self, syntax: str) -> None:
        self.syntax = syntax
        self.words: list[str] = _WORDS.findall(syntax)
        self.at = 0
        self.keys = 0  # key arguments met so far

    def whole(self) -> list[Argument]:
        arguments = self.sequence()
        if self.at < len(self.words):
            raise self.error("unexpected")
        return arguments

    def error(self, text: str) -> ValueError:
        here = " ".join(self.words[self.at :])
        return ValueError(f"{text} before {here!r} in the syntax {self.syntax!r}")

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self, word: str) -> None:
        if self.peek() != word:
            raise self.error(f"{word} expected")
        self.at += 1

    def sequence(self) -> list[Argument]:
        """Arguments up to a closing bracket, a bar or the end."""
        arguments: list[Argument] = []
        while True:
            word = self.peek()
            if word in ("", "]", ">", ")", "|"):
                return arguments
            if word == ",":
                self.at += 1
            elif word == "...":
                if not arguments or self.words[self.at + 1 : self.at + 2] == ["]"]:
                    return arguments  # the end of `[a ...]`
                arguments[-1].multiple = True
                self.at += 1
            elif word == "[":
                argument = self.optional("", arguments)
                if argument is not None:
                    arguments.append(argument)
            else:
                arguments.append(self.argument())

    def argument(self) -> Argument:
        """One argument that does not begin with a square bracket."""
        if self.peek() in ("<", "("):
            return self.group("")
        name, word, version = _parts(self.peek())
        self.at += 1
        if not word:
            argument = self.optional(name, []) if self.peek() == "[" else self.group(name)
            assert argument is not None, "[...] is a repetition only behind an argument"
            return argument
        argument = self.behind_token(name, word) if _is_token(word) else self.value(name, word)
        return self.dated(argument, version)

    def behind_token(self, name: str, token: str) -> Argument:
        """The argument behind a token that was just read: a value, a choice, a block or nothing."""
        following = self.peek()
        if following in ("<", "("):
            argument = self.group(name)
        elif _is_value(following):
            self.at += 1
            display, word, version = _parts(following)
            argument = self.dated(self.value(display, word), version)
            argument.name = name or argument.name
        else:
            name = name or token.lower()
            argument = Argument(name, "pure-token", None, name)
        argument.token = "" if token == EMPTY else token
        return argument

    def value(self, name: str, word: str) -> Argument:
        """A value by its display text alone, or by its name and its type or quoted display text."""
        word, _, number = word.partition("#")
        type = ""
        if word.startswith('"'):
            display = word[1:-1]
        elif name:
            display, type = name, word
        else:
            display = word
        argument = Argument(name or display, type or TYPES.get(display, "string"), None, display)
        if argument.type not in _TYPES:
            raise self.error(f"no type {argument.type}")
        if number:
            argument.key_spec = int(number)
        elif argument.type == "key":
            argument.key_spec = self.keys
        if argument.key_spec >= 0:
            self.keys += 1
        return argument

    def group(self, name: str) -> Argument:
        """`<a|b>` or `(a b)`."""
        if self.peek() == "<":
            self.at += 1
            argument = self.choice(name)
            self.take(">")
        else:
            self.take("(")
            argument = self.block(name, self.sequence())
            self.take(")")
        return self.dated_behind(argument)

    def optional(self, name: str, before: list[Argument]) -> Argument | None:
        """`[...]`; None where it says that what stands before it is repeated."""
        self.take("[")
        start = self.at
        keys = self.keys
        arguments = self.sequence()
        if self.peek() == "...":
            self.keys = keys
            self.at += 1
            self.take("]")
            self.repeat(before, trees.shown(arguments))
            return None
        if self.peek() == "|":
            self.at = start
            self.keys = keys
            argument = self.choice(name)
        elif len(arguments) == 1 and not name:
            argument = arguments[0]
        else:
            argument = self.block(name, arguments)
        self.take("]")
        argument.optional = True
        return self.dated_behind(argument)

    def repeat(self, before: list[Argument], text: str) -> None:
        """Mark the argument before `[text ...]` as repeated."""
        if not before:
            raise self.error("nothing to repeat")
        argument = before[-1]
        once = trees.shown_once(argument)
        if argument.token is not None and text == f"{argument.token} {once}":
            argument.multiple_token = True
        elif text != once:
            raise self.error(f"[{text} ...] does not repeat {once!r}")
        argument.multiple = True

    def choice(self, name: str) -> Argument:
        choices: list[Argument] = []
        while True:
            arguments = self.sequence()
            if not arguments:
                raise self.error("a choice without words")
            choices.append(arguments[0] if len(arguments) == 1 else self.block("", arguments))
            if self.peek() != "|":
                break
            self.at += 1
        argument = Argument(name or choices[0].name, "oneof")
        argument.arguments = choices
        return argument

    def block(self, name: str, arguments: list[Argument]) -> Argument:
        if not arguments:
            raise self.error("an empty block")
        argument = Argument(name or arguments[0].name, "block")
        argument.arguments = arguments
        return argument

    def dated_behind(self, argument: Argument) -> Argument:
        """A version behind a closing bracket."""
        if self.peek().startswith("@"):
            version = self.peek()[1:]
            self.at += 1
            return self.dated(argument, version)
        return argument

    def dated(self, argument: Argument, version: str) -> Argument:
        if version.startswith("-"):
            argument.deprecated = version[1:]
        elif version.startswith("~"):
            argument.came = version[1:]
        elif version.startswith("valkey-"):
            argument.came = version
        elif version:
            argument.since = argument.came = version
        return argument


def _parts(word: str) -> tuple[str, str, str]:
    """Name, what it stands before, version: `[name:]what[@version]`. "What" is empty before a bracket."""
    word, _, version = word.partition("@")
    name, colon, what = word.partition(":")
    if not colon or word.startswith('"'):
        return "", word, version
    return name, what, version


def _is_token(what: str) -> bool:
    return what == EMPTY or (what.upper() == what and not what.startswith('"'))


def _is_value(word: str) -> bool:
    """Whether a word can be the value behind a token: `count`, `count:integer`, not `name:` or `name:TOKEN`."""
    what = _parts(word)[1]
    return what[:1] not in ("", ".", ",", "[", "]", ">", ")", "|") and not _is_token(what)
