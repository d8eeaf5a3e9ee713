"""Marks of classes for mypyc. It reads a mark and leaves it out of the code, so this module is not compiled.

`mypyc_attr(acyclic=True)`: objects of the class are never part of a reference cycle, so the garbage collector does not
track them. That saves 16 bytes for each, and time in a full collection. A derived class needs the mark, too.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    T = TypeVar("T")

    def mypyc_attr(**_marks: bool) -> Callable[[T], T]:
        return lambda marked: marked
