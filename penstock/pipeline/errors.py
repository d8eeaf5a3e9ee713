"""The pipeline's exceptions; their texts are sentences for the user. An error reply is a ReplyError."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Final


class PipelineError(Exception):
    """The pipeline cannot continue; the text says why, and what would help."""


class OptionError(PipelineError):
    """An option is unknown, missing, or has an invalid value."""


class ServerGone(PipelineError):
    """A server could not be reached, or was lost and did not come back within `retryTimeout`."""


class BrokenWrite(ServerGone):
    """A connection broke amid requests that may have been executed, and may not be executed twice."""


class DataLoss(PipelineError):
    """Entries that a query should have read were lost; the text has their number if it is known."""


def report_loss(text: str, fails: bool) -> None:
    """Raise DataLoss, or warn where `fails`, the option `failOnDataLoss`, is false."""
    if fails:
        raise DataLoss(f"{text} (failOnDataLoss=false goes on with what is there)")
    warnings.warn(text, stacklevel=3)


SPARKS_CALLS: Final = (
    "reader", "streamReader", "writer", "streamWriter", "partitions", "read", "initialOffset", "latestOffset",
    "prepareForTriggerAvailableNow", "write", "commit",
)  # fmt: skip


class ShortErrors:
    """Base of what Spark calls: a PipelineError leaves its methods without our frames, which Spark would show.

    Spark writes a worker's whole traceback before the sentence that says what is wrong.
    """

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        for name in SPARKS_CALLS:
            method = cls.__dict__.get(name)
            if inspect.isgeneratorfunction(method):
                setattr(cls, name, _shortened_rows(method))
            elif method is not None:
                setattr(cls, name, _shortened(method))


def _shortened(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **words: Any) -> Any:
        try:
            return method(*args, **words)
        except PipelineError as error:
            trouble = error
        raise trouble.with_traceback(None) from None

    return call


def _shortened_rows(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(method)
    def call(*args: Any, **words: Any) -> Iterator[Any]:
        try:
            yield from method(*args, **words)
        except PipelineError as error:
            trouble = error
        else:
            return
        raise trouble.with_traceback(None) from None

    return call
