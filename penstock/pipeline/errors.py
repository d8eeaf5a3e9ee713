"""What can go wrong in the pipeline, as sentences for the person who runs the query.

A refusal by the server itself is a `penstock.errors.ReplyError`.
"""


class PipelineError(Exception):
    """The pipeline cannot go on; the text says why, and what would help."""


class OptionError(PipelineError):
    """An option is unknown, missing, or has a value that is none."""


class ServerGone(PipelineError):
    """A server could not be reached, or was lost and did not come back within `retryTimeout`."""


class DataLoss(PipelineError):
    """Entries that a query was to read are gone; the text counts them as far as that is known."""
