"""What mypyc is told of a class. It reads the mark and leaves it out, so this module is not compiled.

`mypyc_attr(acyclic=True)`: its objects are never part of a circle of references, so the garbage collector need not know
them. That saves 16 bytes of each, and a look at each in a full collection. A derived class says it again.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    T = TypeVar("T")

    def mypyc_attr(**_marks: bool) -> Callable[[T], T]:
        return lambda marked: marked
