"""Creates a Spark session with the right Python and import path; or says in one sentence what is missing."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.errors import PipelineError

OLDEST_JAVA: Final = 17
HOW_TO_GET_JAVA: Final = (
    "install it (Debian, Ubuntu: `apt-get install openjdk-17-jre-headless`; macOS: `brew install openjdk@17`) "
    "or set JAVA_HOME"
)
LATE_PYTHON: Final = "2m"  # Spark's default of 15 s for a Python process to authenticate is too short on a busy machine
_VERSION: Final = re.compile(r'version "(?:1\.)?([0-9]+)')


def session(master: str = "local[*]", name: str = "penstock", **settings: str) -> Any:
    """A SparkSession that can read and write `redis_streams`; `settings` with __ for the dots of Spark's names.

    An existing session is returned as it is. The heap is Spark's to choose: `spark__driver__memory="1g"`.
    """
    require()
    from pyspark.sql import SparkSession

    # Spark starts its workers as `python3`, with a path that knows neither this interpreter nor a checkout.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    here = _import_path()
    path = os.environ.get("PYTHONPATH", "")
    if here not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = here + (os.pathsep + path if path else "")
    builder = SparkSession.builder.master(master).appName(name)
    builder = builder.config("spark.python.authenticate.socketTimeout", LATE_PYTHON)
    for setting, value in settings.items():
        builder = builder.config(setting.replace("__", "."), value)
    return builder.getOrCreate()


def register(spark: Any) -> None:
    """Make the format `redis_streams` known to a session where Spark does not find it by itself.

    That is so where the code came by `--py-files` or `addPyFile` after the session was made, where another package of a
    name `pyspark_*` fails to import, which ends Spark's search, and in a thread of the program's own (see
    `make_active`).
    """
    from penstock.pipeline.connector.datasource import StreamsDataSource

    here = _import_path()
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none
    if context is not None and Path(here).is_file():
        # Spark gives what comes by --py-files to its tasks, not to the process that plans a stream (pyspark 4.3).
        path = context.environment.get("PYTHONPATH", "")
        if here not in path.split(os.pathsep):
            context.environment["PYTHONPATH"] = here + (os.pathsep + path if path else "")
    spark.dataSource.register(StreamsDataSource)
    make_active(spark)


def make_active(spark: Any) -> None:
    """Let the calling thread write `redis_streams`.

    To write, Spark 4.3 looks for a format that is made in Python in the thread's active session alone. A thread with a
    new connection to the JVM has none: each but the one that made the session, and that one, too, once its first
    connection broke. The public call that sets it is createDataFrame.
    """
    spark.createDataFrame([], "nothing int")


def _import_path() -> str:
    """Where the package penstock is: a folder, or an archive."""
    return str(Path(__file__).parent.parent.parent)


def require() -> None:
    """PipelineError, with what to do, where Spark cannot run."""
    lack = missing()
    if lack is not None:
        raise PipelineError(lack)


def missing() -> str | None:
    """One sentence about what is missing for Spark; None if nothing is."""
    for package in ("pyspark", "pyarrow", "numpy"):
        if importlib.util.find_spec(package) is None:
            return (
                f"the pipeline needs {package}, which is not installed: pip install '.[spark]' in a clone of Penstock"
            )
    java = java_program()
    if java is None:
        return f"Spark needs Java {OLDEST_JAVA} or later, and there is none: {HOW_TO_GET_JAVA}"
    version = java_version(java)
    if version < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA} or later, and {java} is Java {version}: {HOW_TO_GET_JAVA}"
    return None


def java_program() -> str | None:
    """The Java that Spark would start: JAVA_HOME's, or the PATH's."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None)


def java_version(program: str) -> int:
    """Its major version; 0 where it says none that can be read.

    What it says is `openjdk version "17.0.15" 2025-04-15`, before Java 9 `java version "1.8.0_442"`.
    """
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(said.stderr + said.stdout)
    return int(found[1]) if found else 0
