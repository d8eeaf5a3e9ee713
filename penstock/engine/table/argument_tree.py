"""The arguments of a command as a tree, the way COMMAND DOCS gives them."""

from collections.abc import Iterator
from typing import Final

REPEATED_AT_LENGTH: Final = 60  # characters; a longer argument is shown once, with dots behind it


class Argument:
    """One argument, as COMMAND DOCS describes it. `arguments` is empty but for the types oneof and block.

    `key_spec` is the index of the key's specification, -1 where it is no key. `came` is the version that brought it;
    `since` the same where COMMAND DOCS says it.
    """

    __slots__ = (
        "arguments", "came", "deprecated", "display", "key_spec", "multiple", "multiple_token", "name", "optional",
        "since", "token", "type",
    )  # fmt: skip

    def __init__(self, name: str, type: str, token: str | None = None, display: str = "") -> None:
        self.name = name
        self.type = type
        self.token = token
        self.display = display
        self.key_spec = -1
        self.since = ""
        self.came = ""
        self.deprecated = ""
        self.optional = False
        self.multiple = False
        self.multiple_token = False
        self.arguments: list[Argument] = []


def extent(arguments: list[Argument]) -> tuple[int, bool]:
    """The fewest words of a sequence, and whether it can be no longer."""
    least = 0
    fixed = True
    for argument in arguments:
        if argument.optional:
            fixed = False
            continue
        words = 1
        if argument.type == "block":
            words, same = extent(argument.arguments)
            fixed = fixed and same
        elif argument.type == "oneof":
            extents = [extent([choice]) for choice in argument.arguments]
            words = min([choice[0] for choice in extents])
            fixed = fixed and extents.count((words, True)) == len(extents)
        if argument.token is not None and argument.type != "pure-token":
            words += 1
        if argument.multiple:
            fixed = False
        least += words
    return least, fixed


def dated_tokens(arguments: list[Argument]) -> Iterator[tuple[str, str]]:
    """The words typed as they stand, each with the version that brought it, if its declaration names one."""
    for argument in arguments:
        if argument.token is not None:
            yield argument.token, argument.came
        yield from dated_tokens(argument.arguments)


def without(arguments: list[Argument], hidden: frozenset[bytes]) -> list[Argument]:
    """The sequence without what begins with a hidden token, choices and blocks of which nothing is left included."""
    if not hidden:
        return arguments
    kept: list[Argument] = []
    for argument in arguments:
        if argument.token is not None and argument.token.encode() in hidden:
            if argument.type == "pure-token" and argument is arguments[0] and not argument.optional:
                return []  # a token and what belongs to it: IDMP pid iid
            continue
        if argument.arguments:
            argument.arguments = _choices(argument, hidden)
            if not argument.arguments:
                continue
        kept.append(argument)
    return kept


def _choices(argument: Argument, hidden: frozenset[bytes]) -> list[Argument]:
    """The arguments left inside a choice, each of its members by itself, or inside a block."""
    if argument.type != "oneof":
        return without(argument.arguments, hidden)
    return [kept for choice in argument.arguments for kept in without([choice], hidden)]


def shown(arguments: list[Argument]) -> str:
    """The sequence as a reader of the documentation sees it."""
    return " ".join([_shown(argument) for argument in arguments])


def _shown(argument: Argument) -> str:
    once = shown_once(argument)
    text = once if argument.token is None else f"{argument.token} {once}".rstrip()
    if argument.multiple:
        repeated = text if argument.multiple_token else once
        text += f" [{repeated} ...]" if len(repeated) <= REPEATED_AT_LENGTH else " ..."
    if argument.optional:
        return f"[{_bare(text) if argument.type == 'oneof' and argument.token is None else text}]"
    return text


def shown_once(argument: Argument) -> str:
    """Without its token and its repetitions."""
    if argument.type == "pure-token":
        return "" if argument.token else '""'
    if argument.type == "block":
        return shown(argument.arguments)
    if argument.type == "oneof":
        return f"<{' | '.join([_shown(choice) for choice in argument.arguments])}>"
    return argument.display


def _bare(text: str) -> str:
    """`<a | b>` without its angle brackets, unless it is repeated."""
    return text[1:-1] if text.endswith(">") else text
