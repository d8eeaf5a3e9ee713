"""Classes of short strings that tell how Redis would keep them. string_forms.py says which string gets one, and why."""


class RawString(bytes):
    """Encoded as `raw`, although it is short or an integer: it was changed in place, or computed by BITOP or PFADD."""

    __slots__ = ()


class UnconvertedString(bytes):
    """Not encoded as `int`, although it is an integer: INCRBYFLOAT's result."""

    __slots__ = ()
