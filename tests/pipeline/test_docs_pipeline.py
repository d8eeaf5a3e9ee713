"""docs/pipeline.md as a reader types it: every block of code, in a new virtual environment made as it says.

`DOCS_PYTHON=/path/to/python pytest tests/pipeline/test_docs_pipeline.py` takes an environment that was made so before.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
import redis

from penstock.pipeline.session import missing
from tests.pipeline.conftest import REAL_REDIS
from tests.support.reference_server import LOCALHOST
from tests.support.server_process import running_server

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.skipif(bool(REAL_REDIS), reason="the server is started with its log in the example's folder"),
]

ROOT = Path(__file__).parents[2]
EXAMPLES = 6
IN_A_CLONE = ("penstock", "pyspark_penstock", "packaging", "pyproject.toml", "constraints.txt", "README.md", "LICENSE")
EXAMPLE_FILES = [
    ROOT / "examples/flights_pipeline.py",
    *sorted((ROOT / "examples/flights").glob("*.py")),
    *sorted((ROOT / "examples/audit").glob("*.py")),
]
PATIENCE_S = 900
SPARKS = (  # what makes a session small; the examples' own text leaves it out
    "--driver-memory 768m --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 "
    f"--conf spark.driver.host={LOCALHOST} --conf spark.driver.bindAddress={LOCALHOST} "
    "--conf spark.python.authenticate.socketTimeout=2m "
    "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' "
)
JOB = """
import sys
from pyspark.sql import SparkSession
from penstock.pipeline.session import register

spark = SparkSession.builder.getOrCreate()
register(spark)
rows = spark.read.format("redis_streams").option("endpoints", sys.argv[1]).option("stream", "s").load()
print("rows", sorted(row._id for row in rows.collect()), sys.modules["penstock"].__file__, type(spark))
live = spark.readStream.format("redis_streams").option("endpoints", sys.argv[1]).option("stream", "s")
query = live.option("startingId", "earliest").schema("n int").load().writeStream.format("redis_streams")
query = query.option("endpoints", sys.argv[1]).option("stream", "copy").option("checkpointLocation", "checkpoint")
query.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def blocks(language: str = "python") -> list[str]:
    """The document's blocks of a language: of Python first the session's, then the six examples, then the others."""
    pattern = rf"^```{language}\n(.*?)^```$"
    found = re.findall(pattern, (ROOT / "docs/pipeline.md").read_text(), re.MULTILINE | re.DOTALL)
    if language == "python":
        assert [block[:3] for block in found[1 : EXAMPLES + 1]] == [f"# {number}" for number in range(1, EXAMPLES + 1)]
    return found


@pytest.fixture(scope="module")
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of a virtual environment that was made by the document's first block, in a copy of this clone.

    Without a compiled core, and bytecode that nothing imports: both would take longer than all examples.
    """
    made = os.environ.get("DOCS_PYTHON")
    if made:
        return made
    clone = tmp_path_factory.mktemp("clone")
    for name in IN_A_CLONE:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, clone / name)
    quick = os.environ | {"PENSTOCK_COMPILE": "0", "PIP_NO_COMPILE": "1"}
    done = subprocess.run(["sh", "-eu"], input=blocks("sh")[0], cwd=clone, capture_output=True, text=True, env=quick)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"no package registry: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-5000:]
    return str(clone / ".venv/bin/python")


def fill(client: redis.Redis) -> None:
    """Something for each example to find."""
    client.xadd("orders:1", {"sku": "a1", "qty": "7"})
    client.xadd("orders", {"sku": "a1"}, "1795168800000-0")  # 2026-11-20T10:00Z
    client.xadd("jobs", {"n": 1})
    client.xgroup_create("jobs", "workers", "0")
    client.xadd("scores", {"user": "ann", "score": "0.5", "model": "m"})
    client.xadd("bills", {"bill": "b1", "paid": "true"})
    client.xadd("bad", {"n": 1}, "1-0")
    client.xgroup_create("bad", "g", "0")
    client.xreadgroup("g", "bob", {"bad": ">"})
    client.xadd("documents", {"doc": '{"sku": "a1", "qty": 7}'})
    client.xadd("documents", {"doc": "{"})
    client.execute_command("XCLAIM", "bad", "g", "eve", 0, "1-0", "RETRYCOUNT", 9)


@pytest.mark.slow
def test_every_block_of_code_runs_as_it_is_written(plain_python: str, tmp_path: Path) -> None:
    session, *others = blocks()
    (tmp_path / "data").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").write_text("#!/bin/sh\necho not this python3 >&2\nexit 1\n")
    (tmp_path / "bin/python3").chmod(0o755)
    environment = {name: word for name, word in os.environ.items() if name not in ("PYSPARK_PYTHON", "PYTHONPATH")} | {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "PYSPARK_SUBMIT_ARGS": f"{SPARKS} pyspark-shell",
    }
    with (
        running_server("--appendonly", "yes", dir=tmp_path / "data") as server,
        redis.Redis(LOCALHOST, server.port, decode_responses=True) as client,
    ):
        fill(client)
        program = "\n".join([session, *others, "print(listener.text())"])
        for written, here in (("127.0.0.1:6379", f"{LOCALHOST}:{server.port}"), ("port=9400", "port=0")):
            assert program.count(written) == 1
            program = program.replace(written, here)
        (tmp_path / "examples.py").write_text(program)
        done = run_python(plain_python, ["examples.py"], tmp_path, environment)

        assert done.returncode == 0, done.stderr[-5000:]
        assert list(tmp_path.glob("out/*.parquet")) and list(tmp_path.glob("history/day=*/command=XADD"))
        assert client.xpending("jobs", "workers")["pending"] == 0
        assert [fields for _, fields in client.xrange("user:ann")] == [{"score": "0.5", "model": "m"}]
        assert [fields["_id"] for _, fields in client.xrange("bad:dead")] == ["1-0"]
        assert [fields["bill"] for _, fields in client.xrange("paid")] == ["b1"]
        assert "delivered 9 times" in done.stdout
        assert re.search(r"\|NULL\|NULL\| *\{ *\|", done.stdout), "the corrupt payload"
        assert list(tmp_path.glob("everything/*.parquet")) and list(tmp_path.glob("changes/*.parquet"))
        assert re.search(r'penstock_pipeline_rows_read_total\{query="[^"]+",source="0"\} [1-9]', done.stdout)


@pytest.mark.slow
def test_the_pipeline_file_runs_as_it_is_written(plain_python: str, tmp_path: Path) -> None:
    (description,) = blocks("toml")
    assert description.count('trigger = "5 seconds"') == 1  # else it would go on until it is stopped
    (tmp_path / "pipeline.toml").write_text(description.replace("trigger =", "# trigger ="))
    (tmp_path / "airlines.csv").write_text("carrier,name\nUA,United\n")
    with (
        running_server("--appendonly", "no", dir=tmp_path) as server,
        redis.Redis(LOCALHOST, server.port, decode_responses=True) as client,
    ):
        for hour, delay in enumerate((5, -2000, 7, 9)):
            client.xadd("flights", {"carrier": "UA", "delay": delay, "at": f"2026-11-22 {hour + 10}:30:00"})
        environment = {name: word for name, word in os.environ.items() if name != "PYTHONPATH"}
        environment["REDIS"] = f"{LOCALHOST}:{server.port}"
        environment["PYSPARK_SUBMIT_ARGS"] = f"{SPARKS} pyspark-shell"
        done = run_python(plain_python, ["-m", "penstock", "pipeline", "run", "pipeline.toml"], tmp_path, environment)

        assert done.returncode == 0, done.stderr[-5000:]
        assert {row["airline"] for _, row in client.xrange("delays")} == {"United"}
        assert list(tmp_path.glob("out/published/*/*.parquet"))


def run_python(
    python: str, words: list[str], folder: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [python, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    if done.returncode and "Python worker failed to connect back" in done.stderr:
        pytest.skip("the machine is too busy for Spark, which gives its Python ten seconds to start")
    return done


def imported(text: str) -> set[str]:
    """The packages that a program imports anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize(
    "text",
    ["\n".join(blocks()), *(path.read_text() for path in EXAMPLE_FILES)],
    ids=["docs/pipeline.md", *(str(path.relative_to(ROOT)) for path in EXAMPLE_FILES)],
)
def test_the_extra_spark_brings_what_its_examples_import(text: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    brought = {re.match(r"[\w-]+", need)[0] for need in needs}  # type: ignore[index]  # every one begins with a name

    assert imported(text) - brought - sys.stdlib_module_names - {"penstock", "examples"} == set()


@pytest.mark.slow
def test_code_that_comes_by_py_files_copies_a_stream(tmp_path: Path) -> None:
    archive = tmp_path / "penstock-py-files.zip"
    subprocess.run([sys.executable, str(ROOT / "packaging/py_files.py"), str(archive)], check=True)
    python = without_penstock(tmp_path / "python")
    environment = {name: word for name, word in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYSPARK_PYTHON": str(python), "SPARK_HOME": spark_home()}
    environment |= {"SPARK_WORKER_DIR": f"{tmp_path}/work", "SPARK_LOCAL_DIRS": f"{tmp_path}/local"}
    program = f"{spark_home()}/bin/spark-submit --master 'local-cluster[2,1,1024]'"
    submit = f"exec {program} {SPARKS} --py-files {archive} job.py $0"

    said = copied(["/bin/sh", "-c", submit], tmp_path, environment)

    assert "penstock-py-files.zip/penstock/" in said


@pytest.mark.slow
def test_a_stream_is_copied_over_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpc: pip install '.[connect]'")
    environment = os.environ | {"SPARK_REMOTE": "local[2]", "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    environment |= {"PYSPARK_SUBMIT_ARGS": f"{SPARKS} pyspark-shell"}

    said = copied([sys.executable, "job.py"], tmp_path, environment)

    assert "pyspark.sql.connect.session.SparkSession" in said


def copied(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    """What JOB says, which reads a stream and copies it; `command` gets the server's address at its end."""
    (folder / "job.py").write_text(JOB)
    with running_server("--appendonly", "no", dir=folder) as server, redis.Redis(LOCALHOST, server.port) as client:
        client.xadd("s", {"n": 1}, "1-0")
        client.xadd("s", {"n": 2}, "2-0")
        program, *words = command
        done = run_python(program, [*words, f"{LOCALHOST}:{server.port}"], folder, environment)

        assert done.returncode == 0, done.stderr[-5000:]
        assert "rows ['1-0', '2-0']" in done.stdout
        assert [fields for _, fields in client.xrange("copy")] == [{b"n": b"1"}, {b"n": b"2"}]
    return done.stdout


def spark_home() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent)


def without_penstock(folder: Path) -> Path:
    """A Python that has what this one has installed, but for editable packages: the paths of a .pth file are added
    without reading the .pth files there.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin/python"
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.run([python, "-c", purelib], capture_output=True, text=True, check=True).stdout.strip()
    (Path(own) / "theirs.pth").write_text(sysconfig.get_path("purelib") + "\n")
    found = subprocess.run([python, "-c", "import penstock"], capture_output=True, text=True, cwd=folder, env={})
    if found.returncode == 0:
        pytest.skip("penstock is installed here, not in editable form: nothing could be shown")
    return python
