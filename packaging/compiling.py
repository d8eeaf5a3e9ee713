"""The build step of a compiled wheel: mypyc turns modules into C, and several compilers at a time make a library.

Five folders are compiled, and of the server and the settings what every request goes through.

Off, unless PENSTOCK_COMPILE is 1: then `pip wheel .` gives a wheel for this machine's Python, with the source beside
the library. An editable installation is never compiled. PENSTOCK_COMPILE_LEVEL is the compiler's -O (default 2).

mypyc's usual single C file takes one compiler ten minutes; a file a module takes each of them its share of three.
"""

import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS: Final = ("native", "protocol", "storage", "engine", "commands")
MODULES: Final = (  # the way of every request
    "config/settings.py", "system_time.py",
    "server/allocated_memory.py", "server/script_thread.py",
    "server/connections/admission.py", "server/connections/client_eviction.py",
    "server/connections/connection.py", "server/connections/limits.py",
    "server/turns/log_writer.py", "server/turns/turn.py",
)  # fmt: skip
LEFT_OUT: Final[tuple[str, ...]] = (  # each with the reason behind it
    "storage/types/string_marks.py",  # a compiled class cannot extend bytes
    "storage/aof/disk.py",  # its class is extended by what has the log fail; calls of the system, compiled or not
)
NEEDED: Final = (
    "mypy",
    "setuptools",
    "hiredis",
    "redis",
    "sortedcontainers",
    "sortedcontainers-stubs",
    "xxhash",
    "anycrc",
    "librt",
    "zstandard",
)
# Hidden: our functions are not called from outside, so calls between files need no table. No table of jumps (plt) for
# calls of Python's functions either: they go where the loader has found them.
FLAGS: Final = ("-fvisibility=hidden", "-fno-plt", "-Wno-error")


def is_wanted() -> bool:
    return os.environ.get("PENSTOCK_COMPILE", "") == "1"


def sources(root: Path) -> list[str]:
    """What is compiled, as paths from the root."""
    found = [path for folder in FOLDERS for path in sorted((root / "penstock" / folder).rglob("*.py"))]
    left_out = {str(Path("penstock", name)) for name in LEFT_OUT}
    names = [str(path.relative_to(root)) for path in found if path.name != "__init__.py"]
    names += [str(Path("penstock", module)) for module in MODULES]
    return [name for name in names if name not in left_out]


class CompilingHook(BuildHookInterface[Any]):
    """What hatchling calls before it packs a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What only a compiled build needs, in the pinned versions."""
        if not is_wanted():
            return []
        pinned = dict(re.findall(r"^(\S+)==(\S+)$", Path(self.root, "constraints.txt").read_text(), re.MULTILINE))
        return [f"{name}=={pinned[name]}" for name in NEEDED]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not is_wanted():
            return
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-build-")
        for library in compiled(Path(self.root), Path(self._folder.name)):
            build_data["force_include"][str(library)] = str(library.relative_to(Path(self._folder.name, "built")))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def compiled(root: Path, into: Path) -> list[Path]:
    """The libraries, below into/built."""
    from mypyc.build import mypycify  # not there unless it was asked for
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    class ManyCompilers(build_ext):
        """Every C file on its own, as many at a time as there are processors."""

        def build_extensions(self) -> None:
            jobs = [(extension, source) for extension in self.extensions for source in extension.sources]
            jobs.sort(key=lambda job: Path(job[1]).stat().st_size, reverse=True)  # the long ones first
            with ThreadPoolExecutor(os.process_cpu_count() if sys.version_info >= (3, 13) else os.cpu_count()) as pool:
                objects = list(pool.map(self._object, jobs))
            for extension in self.extensions:
                extension.sources = []
            for (extension, _), file in zip(jobs, objects, strict=True):
                extension.extra_objects.append(file)
            super().build_extensions()

        def _object(self, job: tuple[Extension, str]) -> str:
            extension, source = job
            (file,) = self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                include_dirs=extension.include_dirs,
                extra_postargs=[*extension.extra_compile_args, *FLAGS],
            )
            return str(file)

    extensions = mypycify(
        [f"--cache-dir={into / 'cache'}", *sources(root)],
        opt_level=os.environ.get("PENSTOCK_COMPILE_LEVEL", "2"),
        debug_level="0",
        multi_file=True,
        target_dir=str(into / "c"),
        group_name="penstock",
    )
    command = ManyCompilers(Distribution({"name": "penstock", "ext_modules": extensions}))
    command.build_lib = str(into / "built")
    command.build_temp = str(into / "objects")
    command.ensure_finalized()
    command.run()
    return sorted((into / "built").rglob("*.so"))
