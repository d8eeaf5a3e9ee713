"""`penstock pipeline` as it is typed, and the file that describes a pipeline: what is taken, what is refused."""

import copy
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock import cli
from penstock.pipeline import session
from penstock.pipeline.errors import OptionError, PipelineError
from penstock.pipeline.jobs import job_table
from penstock.pipeline.runner import balance, pipeline_file
from penstock.pipeline.runner.balance import Stage
from tests.support.reference_server import LOCALHOST

FILE: dict[str, Any] = {
    "pipeline": {"name": "p", "folder": "out/"},
    "ingest": {"from": "streams", "options": {"stream": "s", "maxEntriesPerTrigger": 5}},
    "validate": {"columns": {"n": "bigint not null", "at": "timestamp"}},
    "enrich": {"columns": {"m": "n + 1"}},
    "aggregate": {"time": "at", "watermark": "1 hour", "window": "1 hour", "by": "m", "measures": {"c": "count(*)"}},
    "publish": {"stream": {"stream": "t"}},
}


def changed(table: str, **words: Any) -> dict[str, Any]:
    tables = copy.deepcopy(FILE)
    tables[table] |= words
    return tables


def test_a_description_is_read_with_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "there:7000")
    found = pipeline_file.parse(changed("publish", stream={"stream": "t", "endpoints": "${WHERE}"}))

    assert (found.folder, found.parquet, found.trigger) == ("out", "out/published", None)
    assert found.ingest.options == {"stream": "s", "maxEntriesPerTrigger": "5"}
    assert found.stream == {"stream": "t", "endpoints": "there:7000"}
    assert found.aggregate is not None and found.aggregate.by == ("m",)


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        ({"pipeline": FILE["pipeline"]}, "the file needs 'validate'"),
        (changed("pipeline", nmae="x"), r"\[pipeline\] has no 'nmae': did you mean 'name'"),
        (changed("pipeline", name=5), r"'name' in \[pipeline\] is to be a text"),
        (changed("ingest", **{"from": "kafka"}), "one of streams, log, files, not 'kafka'"),
        (changed("ingest", **{"from": "log"}), r"\[ingest.options\] needs 'path'"),
        (changed("validate", columns={"row": "string"}), "'row' is there twice, or has a name of the pipeline's own"),
        (changed("aggregate", time="when"), "names a column 'when' that no stage makes"),
        (changed("aggregate", by=[1]), r"'by' in \[aggregate\] is to be a list of names"),
        (changed("publish", stream={"endpoints": "x"}), r"\[publish.stream\] needs 'stream'"),
        (changed("publish", stream="t"), r"'stream' in \[publish\] is to be a table of texts"),
        (changed("ingest", options={"endpoints": "$NOT_SET_HERE", "stream": "s"}), "'NOT_SET_HERE', which is not set"),
        (changed("pipeline", folder="${NOT_SET_HERE}/out"), r"'folder' in \[pipeline\] names the environment"),
        (changed("aggregate", by=["$NOT_SET_HERE"]), r"'by' in \[aggregate\] names the environment"),
        (changed("ingest", options={"steam": "s"}), r"\[ingest.options\]: .* knows no option 'steam': .*'stream'"),
        (changed("ingest", options={"stream": "s", "fetchSize": "many"}), "'fetchSize' .* whole number, not 'many'"),
        (changed("ingest", options={"stream": "s", "groupMode": "shared"}), r"\[ingest.options\]: .* need .*'group'"),
        (
            changed("ingest", **{"from": "log"}, options={"path": "d", "stream": "s", "fetchSize": 1}),
            r"\[ingest.options\]: the log knows no option 'fetchsize'",
        ),
        (changed("publish", stream={"stream": "t", "maxlength": 5}), r"\[publish.stream\]: .*did you mean 'maxlen'"),
        (changed("publish", stream={"stream": "t", "maxlen": "all"}), r"\[publish.stream\]: option 'maxlen' .*'all'"),
    ],
    ids=[
        "table",
        "word",
        "text",
        "choice",
        "path",
        "taken",
        "time",
        "list",
        "stream",
        "options",
        "unset",
        "unset braces",
        "unset in a list",
        "unknown option",
        "wrong type",
        "excluded",
        "log",
        "unknown of the sink",
        "wrong of the sink",
    ],
)
def test_a_mistake_in_a_description_is_told_with_its_place(tables: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        pipeline_file.parse(tables)


def test_a_dollar_is_written_twice_and_sql_keeps_its_own() -> None:
    rules = {"a price": "price RLIKE '^[$]5$'", "$$": "x = '$$y'"}
    found = pipeline_file.parse(changed("validate", rules=rules))

    assert found.rules == {"a price": "price RLIKE '^[$]5$'", "$$": "x = '$y'"}


def test_a_file_that_is_none_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"nowhere\.toml cannot be read"):
        pipeline_file.read(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_text("[pipeline")
    with pytest.raises(OptionError, match=r"bad\.toml is no TOML"):
        pipeline_file.read(tmp_path / "bad.toml")


def test_a_table_of_rows_says_what_is_missing() -> None:
    text = balance.table("batch 1", [Stage("validate", 1000, 990, 10, "quarantined"), Stage("enrich", 990, 980)])

    assert text.splitlines() == [
        "batch 1   rows in  rows out  held back               balance",
        "validate    1,000       990         10  quarantined  even",
        "enrich        990       980                          +10 rows missing",
    ]


def test_without_java_one_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "missing", lambda: "Spark needs Java 17 or later, and there is none: install it")

    assert cli.main(["pipeline", "lag"]) == 1
    assert capsys.readouterr().err == (
        "penstock pipeline: Spark needs Java 17 or later, and there is none: install it\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "nope.toml"], "nope.toml cannot be read: No such file or directory"),
        (["run", "nope.toml", "--conf", "x"], "nope.toml cannot be read: No such file or directory"),
        (["lag", "--conf", "x"], "--conf is to be name=value, not 'x'"),
        (["poison", "--plot", "x.png"], "the job 'poison' has no chart"),
        (["redrive"], "the job 'redrive' needs --stream"),
        (["history", "--log", "d"], "the job 'history' needs --out"),
        (["stuck", "--idle", "soon"], "option 'idle' of the job is to be a duration"),
        (["stuck", "--option", "password"], "--option is to be name=value, not 'password'"),
        (["stuck", "--option", "fetchsise=5"], "the job knows no option 'fetchsise': did you mean 'fetchSize'?"),
        (["redrive", "--stream", "s", "--option", "fetchSize=x"], "option 'fetchSize' of the batch source is to be"),
        (["stuck", "--endpoint", "a:x"], "endpoint 'a:x' is to be host:port or name=host:port"),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
def test_what_cannot_work_is_told_before_spark_starts(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "require", lambda: pytest.fail("Spark was looked for"))

    assert cli.main(["pipeline", *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"penstock pipeline: {sentence}")


def test_a_job_that_is_none_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["pipeline", "lagg"])
    assert "redelivery-latency" in capsys.readouterr().err


def test_serving_does_not_wait_for_spark() -> None:
    program = "import sys, penstock.cli; print(any(name.startswith(('pyspark', 'pyarrow')) for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_options_of_the_connection_are_passed_on() -> None:
    from penstock.pipeline.cli import parser

    words = ["stuck", "--endpoint", "a:1,b:2", "--option", "password=x=y", "--idle", "2m"]
    chosen = parser().parse_args(words)
    assert job_table.connection(chosen) == {"endpoints": "a:1,b:2", "password": "x=y"}
    assert job_table.duration_ms("idle", chosen.idle) == 120_000
    with pytest.raises(OptionError, match="--option is to be name=value"):
        job_table.connection(parser().parse_args(["stuck", "--option", "password"]))


def test_a_stream_that_is_nowhere_is_named_and_so_is_a_server_that_is(server: Any, endpoint: str) -> None:
    server.xadd("s", {"n": 1})
    server.set("text", "no stream")

    job_table.require_streams({"endpoints": endpoint}, "s")
    with pytest.raises(PipelineError, match=f"^there is no stream 't', 'u' at {endpoint}$"):
        job_table.require_streams({"endpoints": endpoint}, "s,t,u")
    with pytest.raises(PipelineError, match=f"^{endpoint}: key 'text': WRONGTYPE"):
        job_table.require_streams({"endpoints": endpoint}, "text")


def test_a_server_that_is_not_there_is_named_in_one_sentence() -> None:
    with socket.socket() as nobody:
        nobody.bind((LOCALHOST, 0))
        endpoint = f"{LOCALHOST}:{nobody.getsockname()[1]}"

        with pytest.raises(PipelineError, match=f"^{endpoint}: the server does not answer: .*refused"):
            job_table.require_streams({"endpoints": endpoint, "retryTimeout": "0"}, "s")
