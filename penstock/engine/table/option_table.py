"""The options of a command and how many words follow each.

A command has one such table. Its handler goes from option to option by it, and so does the function that finds its
keys: both see the same options, and a word that is not in the table is none.
"""


class OptionTable:
    """The options by upper-case name. `following`: how many words belong to each, its name not counted."""

    __slots__ = ("_words",)

    def __init__(self, following: dict[bytes, int]) -> None:
        self._words = {option: 1 + count for option, count in following.items()}

    def has(self, option: bytes) -> bool:
        return option in self._words

    def words(self, option: bytes, args: list[bytes], at: int) -> int:
        """How many words the option at a place has, its name among them; 0 where it is none, or is cut short.

        option: args[at] in upper case.
        """
        words = self._words.get(option, 0)
        return words if at + words <= len(args) else 0

    def places(self, args: list[bytes], at: int) -> list[int]:
        """Where options are, from a place on. A word that is none is skipped: the handler refuses such a request."""
        found: list[int] = []
        while at < len(args):
            words = self.words(args[at].upper(), args, at)
            if words:
                found.append(at)
            at += words or 1
        return found

    def places_of(self, option: bytes, args: list[bytes], at: int) -> list[int]:
        """As `places`, of one option."""
        return [place for place in self.places(args, at) if args[place].upper() == option]
