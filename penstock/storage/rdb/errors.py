"""What is wrong with an RDB file or a payload."""


class BadRdb(Exception):
    """Bytes that are no RDB; the text says to a person what was found. Whoever raises it has changed nothing."""


class EmptyValue(BadRdb):
    """A collection of nothing: a file's reader leaves its key out, RESTORE refuses it."""
