"""The build step of a wheel: mypyc turns modules into C, and several compilers at a time make a library.

PENSTOCK_COMPILE chooses the build. `all` (or 1): five folders are compiled, and of the server and the settings what
every request goes through. `core`: the modules that core_modules.txt lists. 0: nothing. Without it the core is compiled
where a C compiler is found. The wheel is for this machine's Python, with the source beside the library. An editable
installation is never compiled.

PENSTOCK_COMPILE_LEVEL is the compiler's -O (1 for the core, else 2). PENSTOCK_COMPILE_KEEP names a folder where C files
and objects stay: the next build compiles what has changed since.

mypyc's usual single C file takes one compiler ten minutes; a file a module takes each of them its share.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLAIN, CORE, WHOLE = "plain", "core", "whole"
CHOICES: Final = {"0": PLAIN, "core": CORE, "1": WHOLE, "all": WHOLE}
LEVELS: Final = {CORE: "1", WHOLE: "2"}
FOLDERS: Final = ("native", "protocol", "storage", "engine", "commands")
MODULES: Final = (  # the way of every request
    "config/settings.py", "system_time.py",
    "server/allocated_memory.py", "server/script_thread.py",
    "server/connections/admission.py", "server/connections/client_eviction.py",
    "server/connections/connection.py", "server/connections/limits.py",
    "server/turns/log_writer.py", "server/turns/turn.py",
)  # fmt: skip
LEFT_OUT: Final[tuple[str, ...]] = (  # each with the reason behind it
    "native/class_marks.py",  # mypyc reads it, and leaves out what it decides
    "storage/types/string_marks.py",  # a compiled class cannot extend bytes
    "storage/aof/disk.py",  # its class is extended by what has the log fail; calls of the system, compiled or not
)
CORE_LIST: Final = "packaging/core_modules.txt"  # written by `make profile-core`
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
HEADERS: Final = ("__native_penstock.h", "__native_internal_penstock.h")  # what each module's C file begins with
PROCESSORS: Final = (os.process_cpu_count() if sys.version_info >= (3, 13) else os.cpu_count()) or 1


@cache
def chosen() -> tuple[str, str]:
    """The build that is made, and why."""
    asked = os.environ.get("PENSTOCK_COMPILE", "")
    if not asked:
        return (
            (CORE, "faster; PENSTOCK_COMPILE=0 for none") if has_compiler() else (PLAIN, "no C compiler finds Python.h")
        )
    if asked not in CHOICES:
        raise SystemExit(f"PENSTOCK_COMPILE is one of {', '.join(CHOICES)}, not {asked!r}")
    return CHOICES[asked], f"PENSTOCK_COMPILE={asked}"


def has_compiler() -> bool:
    words = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    words += [f"-I{sysconfig.get_path('include')}", "-fsyntax-only", "-xc", "-"]
    try:
        return not subprocess.run(words, input=b"#include <Python.h>", capture_output=True).returncode
    except OSError:
        return False


def say(text: str, end: str = "\n") -> None:
    sys.stderr.write(text + end)
    sys.stderr.flush()


def sources(root: Path, build: str = WHOLE) -> list[str]:
    """What is compiled, as paths from the root."""
    found = [path for folder in FOLDERS for path in sorted((root / "penstock" / folder).rglob("*.py"))]
    left_out = {str(Path("penstock", name)) for name in LEFT_OUT}
    names = [str(path.relative_to(root)) for path in found if path.name != "__init__.py"]
    names += [str(Path("penstock", module)) for module in MODULES]
    whole = [name for name in names if name not in left_out]
    if build != CORE:
        return whole if build == WHOLE else []
    core = (root / CORE_LIST).read_text().split()
    if strange := sorted(set(core) - set(whole)):
        raise SystemExit(
            f"{CORE_LIST} has modules that are not there, or not compiled: {', '.join(strange)}. Where a module was"
            " only moved, change its line; else `make profile-core` writes the list anew"
        )
    return core


class CompilingHook(BuildHookInterface[Any]):
    """What hatchling calls before it packs a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What only a compiled build needs, in the pinned versions."""
        if chosen()[0] == PLAIN:
            return []
        pinned = dict(re.findall(r"^(\S+)==(\S+)$", Path(self.root, "constraints.txt").read_text(), re.MULTILINE))
        return [f"{name}=={pinned[name]}" for name in NEEDED]

    def initialize(self, kind: str, build_data: dict[str, Any]) -> None:
        if kind == "editable":
            return
        build, why = chosen()
        modules = sources(Path(self.root), build)
        say(f"Penstock, {build} build: {len(modules) or 'no'} modules are compiled ({why})")
        if not modules:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-build-")
        folder = Path(os.environ.get("PENSTOCK_COMPILE_KEEP", self._folder.name), build).absolute()
        for library in compiled(modules, LEVELS[build], folder):
            build_data["force_include"][str(library)] = str(library.relative_to(folder / "built"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def compiled(modules: list[str], level: str, into: Path) -> list[Path]:
    """The libraries of these modules, below into/built. What else is left there is of use to the next call."""
    from mypyc.build import mypycify  # not there unless it was asked for
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    class ManyCompilers(build_ext):
        """Every C file on its own, as many at a time as there are processors."""

        def build_extensions(self) -> None:
            objects = Objects(self.compiler, Path(self.build_temp), into / "c")
            jobs = [(extension, Path(source)) for extension in self.extensions for source in extension.sources]
            jobs.sort(key=lambda job: job[1].stat().st_size, reverse=True)  # the long ones first
            made = objects.made_of([(source, extension_words(extension)) for extension, source in jobs])
            for extension in self.extensions:
                extension.sources = []
            for (extension, _), file in zip(jobs, made, strict=True):
                extension.extra_objects.append(str(file))
            self.parallel = PROCESSORS
            super().build_extensions()

    def extension_words(extension: Extension) -> list[str]:
        return [*(f"-I{folder}" for folder in extension.include_dirs), *extension.extra_compile_args, *FLAGS]

    remarks = StringIO()
    try:
        with redirect_stdout(remarks):
            extensions = mypycify(
                [f"--cache-dir={into / 'cache'}", *modules],
                opt_level=os.environ.get("PENSTOCK_COMPILE_LEVEL", level),
                debug_level="0",
                multi_file=True,
                target_dir=str(into / "c"),
                group_name="penstock",
            )
    except SystemExit:
        say(remarks.getvalue())
        raise
    shutil.rmtree(into / "built", ignore_errors=True)
    command = ManyCompilers(Distribution({"name": "penstock", "ext_modules": extensions}))
    command.build_lib = str(into / "built")
    command.build_temp = str(into / "objects")
    command.ensure_finalized()
    command.run()
    return sorted((into / "built").rglob("*.so"))


class Objects:
    """Object files in a folder. Each has the hash of all that it is made from as its name: of text, headers and tools.

    Half of the time of a short file went into mypyc's headers (1.4 MB), so gcc reads them compiled.
    """

    def __init__(self, compiler: Any, folder: Path, c_folder: Path) -> None:
        self._compiler = compiler
        self._folder = folder
        self._all_headers = c_folder / "all.h"
        self._all_headers.write_text("".join(f'#include "{name}"\n' for name in HEADERS))
        self._words = [*compiler.compiler_so, *(f"-I{include}" for include in compiler.include_dirs)]
        told = subprocess.run([compiler.compiler_so[0], "--version"], capture_output=True, check=True).stdout
        self._is_gcc = b"Free Software Foundation" in told
        tools = [told, sys.version.encode(), version("mypy").encode()]
        self._common = hashlib.sha256(b"\0".join(tools + [(c_folder / name).read_bytes() for name in HEADERS]))

    def made_of(self, files: list[tuple[Path, list[str]]]) -> list[Path]:
        """The objects of C files, each given with words for the compiler. Objects of other files are deleted."""
        self._folder.mkdir(parents=True, exist_ok=True)
        objects = [self._object(source, words) for source, words in files]
        for old in set(self._folder.iterdir()) - set(objects):
            old.unlink()
        missing = {file: of_file for file, of_file in zip(objects, files, strict=True) if not file.exists()}
        jobs = [(*of_file, file) for file, of_file in missing.items()]
        headed = [job for job in jobs if is_headed(job[0])]
        if self._is_gcc and headed:
            self._compile(self._all_headers, ["-xc-header", *headed[0][1]], self._all_headers.with_suffix(".h.gch"))
        with ThreadPoolExecutor(PROCESSORS) as pool:
            for number, source in enumerate(pool.map(self._make, jobs), 1):
                if is_headed(source):
                    progress = f"{number} of {len(jobs)}: {source.stem.removeprefix('__native_').replace('___', '.')}"
                    say(progress, "\x1b[K\r" if sys.stderr.isatty() else "\n")
        return objects

    def _object(self, source: Path, words: list[str]) -> Path:
        digest = self._common.copy()
        digest.update(repr(words).encode() + source.read_bytes())
        return self._folder / f"{digest.hexdigest()}.o"

    def _make(self, job: tuple[Path, list[str], Path]) -> Path:
        source, words, file = job
        headers = ["-include", str(self._all_headers)] if is_headed(source) else []
        unfinished = file.with_suffix(".part.o")
        self._compile(source, [*words, *headers, "-c"], unfinished)
        unfinished.rename(file)  # one that is there is whole
        return source

    def _compile(self, source: Path, words: list[str], into: Path) -> None:
        self._compiler.spawn([*self._words, *words, str(source), "-o", str(into)])


def is_headed(source: Path) -> bool:
    """Whether a C file is that of a module, which begins with all headers."""
    return source.name.startswith("__native_")
