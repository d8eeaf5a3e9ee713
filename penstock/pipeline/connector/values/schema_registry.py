"""Schemas by their number: those of a schema registry (Confluent's REST interface), or of files in a folder.

A framed payload has a zero byte, the number of its schema in four bytes, and then the document (docs.confluent.io,
"Wire format").
"""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Final

from penstock.pipeline.errors import OptionError, PipelineError

MAGIC: Final = 0
HEADER: Final = 5  # bytes before the document
TIMEOUT_S: Final = 10.0
SUFFIXES: Final = (".avsc", ".json")
NOT_THERE: Final = 404


class SchemaRegistry:
    """`place` is a URL, with user and password in it if it needs them, or a folder with files `<number>.avsc`.

    A schema never changes under its number, so each is fetched once. Created once for each task, and once where the
    query is made: OptionError for a folder that is not there.
    """

    def __init__(self, place: str) -> None:
        self._place = place.rstrip("/")
        self._is_url = place.startswith(("http://", "https://"))
        if not self._is_url and not Path(place).is_dir():
            raise OptionError(f"option 'schemaRegistry': {place} is no folder and no URL")
        self._known: dict[int, str] = {}

    def schema(self, number: int) -> str:
        """A schema as JSON; LookupError if there is none of that number, PipelineError if it cannot be known."""
        if number not in self._known:
            self._known[number] = self._fetched(number) if self._is_url else self._read(number)
        return self._known[number]

    def _read(self, number: int) -> str:
        for path in (Path(self._place) / f"{number}{suffix}" for suffix in SUFFIXES):
            if path.is_file():
                return path.read_text()
        raise LookupError(f"schema {number} is not in {self._place}")

    def _fetched(self, number: int) -> str:
        parts = urllib.parse.urlsplit(self._place)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        request = urllib.request.Request(f"{shown.geturl()}/schemas/ids/{number}")
        if parts.username is not None:
            user, password = (urllib.parse.unquote(word or "") for word in (parts.username, parts.password))
            request.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                found = json.loads(reply.read())
        except urllib.error.HTTPError as refusal:
            if refusal.code == NOT_THERE:
                raise LookupError(f"schema {number} is not in {shown.geturl()}") from None
            raise PipelineError(f"the schema registry {shown.geturl()} answers {refusal}") from None
        except (OSError, ValueError) as failure:
            raise PipelineError(f"the schema registry {shown.geturl()} cannot be read: {failure}") from None
        if found.get("references"):
            raise PipelineError(f"schema {number} of {shown.geturl()} refers to other schemas, which is not supported")
        text: str = found["schema"]
        return text


def parted(payload: bytes) -> tuple[int, bytes]:
    """The number of the schema, and the document; ValueError if the payload is not framed."""
    if len(payload) < HEADER or payload[0] != MAGIC:
        raise ValueError("no magic byte and schema id before the document")
    return int.from_bytes(payload[1:HEADER], "big"), payload[HEADER:]
