"""The ACL file: one user a line, in the words of ACL LIST (Redis 8.6.3)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.config import whole_file
from penstock.engine.access.rule_error import RuleError
from penstock.engine.access.selector import UNKNOWN, has_spaces
from penstock.engine.access.user_rules import Unmatched, UserRules, with_selectors
from penstock.engine.access.users import User
from penstock.errors import ReplyError

NO_FILE: Final = (
    b"ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER"
    b" command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store"
    b" users in the Redis configuration."
)
UNCHANGED: Final = b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
PERMISSIONS: Final = 0o600  # of a new file: it has the hashes of passwords


def read(text: bytes, file: bytes, rules: UserRules) -> list[User]:
    """The users of a file's text. ReplyError with every complaint, each with its line: nothing is to be loaded then."""
    found: dict[bytes, User] = {}
    complaints: list[bytes] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        stripped = line.strip(b" \t\r")
        if not stripped:
            continue
        place = b"%b:%d" % (file, number)
        words = stripped.split(b" ")
        if words[0] != b"user" or len(words) < 2:
            complaints.append(place + b" should start with user keyword followed by the username. ")
        elif has_spaces(words[1]):
            complaints.append(b"'" + place + b": username '%b' contains invalid characters. " % words[1])
        elif words[1] in found:
            complaints.append(b"WARNING: Duplicate user '%b' found on line %d. " % (words[1], number))
        else:
            user = found[words[1]] = rules.new_user(words[1])
            complaints += _apply(user, words[2:], place, rules)
    if complaints:
        raise ReplyError(b"ERR " + b"".join(complaints) + UNCHANGED)
    return list(found.values())


def _apply(user: User, words: Sequence[bytes], place: bytes, rules: UserRules) -> list[bytes]:
    """Apply the rules of one line. What is wrong with them: each unknown command, any other mistake once."""
    try:
        merged = with_selectors([word for word in words if word])
    except Unmatched:
        return [place + b": Unmatched parenthesis in selector definition."]
    complaints: list[bytes] = []
    for rule in merged:
        try:
            rules.apply(user, rule)
        except RuleError as error:
            if error.reason == UNKNOWN:
                complaints.append(place + b": Error in applying operation '%b': %b. " % (rule, error.reason))
            elif place + b": Syntax error. " not in complaints:
                complaints.append(place + b": Syntax error. ")
    return complaints


def write(path: Path, lines: Sequence[bytes]) -> None:
    """Write the users, by replacing the file as a whole; it keeps its permissions. OSError if that fails."""
    content = b"".join([line + b"\n" for line in lines])
    whole_file.replace(path, content, whole_file.permissions_of(path, PERMISSIONS))
