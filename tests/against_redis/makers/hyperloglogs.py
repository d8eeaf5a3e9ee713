"""Random requests about HyperLogLogs: added to, united, counted, and shown byte by byte."""

from typing import ClassVar

from tests.against_redis.makers.shared import Maker
from tests.support.table_requests import Vocabulary


class HyperLogLogs(Maker):
    """HyperLogLogs that grow from empty to dense."""

    kind = "strings"
    weights: ClassVar[dict[str, int]] = {
        "PFADD": 12, "PFCOUNT": 6, "PFMERGE": 4, "GET": 6, "PFDEBUG": 1, "DEL": 1,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        return Vocabulary(
            {
                "key": self.word(self.key), "element": self.word(self.element),
                "subcommand": ("ENCODING", "DECODE", "decode", "TODENSE", "GETREG", "FOO"),
            },
            {"element": 0.9},
            {"PFADD element": 200},
        )  # fmt: skip

    def element(self) -> str:
        return f"e{self.chance.randrange(self.chance.choice((10, 1000, 1_000_000)))}" + "x" * self.chance.randrange(9)
