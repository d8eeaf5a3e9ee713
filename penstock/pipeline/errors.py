"""The pipeline's exceptions; their texts are sentences for the user. An error reply is a ReplyError."""

import warnings


class PipelineError(Exception):
    """The pipeline cannot go on; the text says why, and what would help."""


class OptionError(PipelineError):
    """An option is unknown, missing, or has an invalid value."""


class ServerGone(PipelineError):
    """A server could not be reached, or was lost and did not come back within `retryTimeout`."""


class DataLoss(PipelineError):
    """Entries that a query should have read are gone; the text has their number if it is known."""


def report_loss(text: str, fails: bool) -> None:
    """Raise DataLoss, or warn where `fails`, the option `failOnDataLoss`, is false."""
    if fails:
        raise DataLoss(f"{text} (failOnDataLoss=false goes on with what is there)")
    warnings.warn(text, stacklevel=3)
