"""docs/recipes.md as it stands: every block of code is run, and what came of it is compared row by row."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.errors import PySparkException, StreamingQueryException

from penstock.pipeline.runner.runner import LATE_WORKER

ROOT = Path(__file__).parents[2]
KILLS = 3

pytestmark = pytest.mark.slow


def blocks() -> dict[str, str]:
    """Each recipe's code by its heading."""
    text = (ROOT / "docs/recipes.md").read_text()
    return dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.fixture
def run(spark: Any, endpoint: str, tmp_path: Path) -> Callable[..., None]:
    def run(heading: str, change: Callable[[str], str] = str) -> None:
        names = {"spark": spark, "SERVER": endpoint, "FOLDER": str(tmp_path), "__name__": "__main__"}
        try:
            exec(change(blocks()[heading]), names)
        except PySparkException as reason:
            if LATE_WORKER in str(reason):
                pytest.skip("the machine is too busy for Spark, which gives its Python ten seconds to start")
            raise

    return run


def test_every_recipe_has_its_test() -> None:
    named = Path(__file__).read_text()

    assert len(blocks()) == 6
    assert [heading for heading in blocks() if f'run("{heading}"' not in named] == []


def test_a_table_holds_each_row_once_whatever_was_killed(
    run: Callable[..., None], spark: Any, server: redis.Redis, tmp_path: Path
) -> None:
    for number in range(50):
        server.xadd("orders", {"sku": f"a{number % 3}", "qty": number}, f"{number + 1}-0")

    def dying(code: str) -> str:
        """The batch dies behind its writing, as a driver does that is killed there."""
        return code.replace('{number}")\n', '{number}")\n    raise RuntimeError("killed")\n')

    for _ in range(KILLS):
        with pytest.raises(StreamingQueryException, match="killed"):
            run("Into a table, each batch once", dying)
    run("Into a table, each batch once")

    rows = spark.read.parquet(f"{tmp_path}/lake").select("_id", "sku", "qty").collect()
    assert sorted((row._id, row.sku, row.qty) for row in rows) == sorted(
        (f"{number + 1}-0", f"a{number % 3}", number) for number in range(50)
    )


@pytest.fixture
def orders(server: redis.Redis) -> list[tuple[str, str, int]]:
    """Rows of the stream `orders`."""
    rows = [(f"{number + 1}-0", f"a{number % 3}", number) for number in range(50)]
    for entry_id, sku, number in rows:
        server.xadd("orders", {"sku": sku, "qty": number}, entry_id)
    return rows


def killed_and_run(run: Callable[[Callable[[str], str]], None], function: str) -> None:
    """Three runs die when a batch is stored and not yet recorded, each at another batch; then comes a whole one."""

    def dying_at(batch: int) -> Callable[[str], str]:
        return lambda code: (
            f"def killed(batch, number):\n    {function}(batch, number)\n"
            f"    if number == {batch}:\n        raise RuntimeError('killed')\n\n\n"
            + in_tens(code).replace(f"foreachBatch({function})", "foreachBatch(killed)")
        )

    def in_tens(code: str) -> str:
        assert code.count("100_000") == code.count(f"foreachBatch({function})") == 1
        return code.replace("100_000", "10")

    for batch in range(KILLS):
        with pytest.raises(StreamingQueryException, match="killed"):
            run(dying_at(batch))
    run(in_tens)


def test_a_delta_table_holds_each_row_once_whatever_was_killed(
    run: Callable[..., None], orders: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install deltalake")
    killed_and_run(lambda change: run("Into a Delta table, without a jar", change), "store_in_delta")

    table = deltalake.DeltaTable(f"{tmp_path}/delta")
    rows = table.to_pyarrow_table().to_pylist()
    assert sorted((row["_id"], row["sku"], row["qty"]) for row in rows) == sorted(orders)
    assert len(table.history()) == 5


def test_an_iceberg_table_holds_each_row_once_whatever_was_killed(
    run: Callable[..., None], orders: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason="pip install 'pyiceberg[sql-sqlite]'")
    killed_and_run(lambda change: run("Into an Iceberg table, without a jar", change), "store_in_iceberg")

    catalog = catalogs.SqlCatalog(
        "lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/iceberg"
    )
    rows = catalog.load_table("shop.orders").scan().to_arrow().to_pylist()
    assert sorted((row["_id"], row["sku"], row["qty"]) for row in rows) == sorted(orders)


def test_a_message_that_was_sent_twice_is_there_once(
    run: Callable[..., None], spark: Any, server: redis.Redis, tmp_path: Path
) -> None:
    for message in ("m1", "m2", "m1", "m3", "m3"):
        server.xadd("messages", {"message": message, "body": "x"})

    run("Messages that a producer sent twice")

    assert sorted(row.message for row in spark.read.parquet(f"{tmp_path}/messages").collect()) == ["m1", "m2", "m3"]


def test_each_key_is_in_order_though_many_tasks_write(run: Callable[..., None], server: redis.Redis) -> None:
    for number in range(100):
        server.xadd("readings", {"sensor": number % 7, "value": number}, f"{number + 1}-0")

    run("Many tasks, each key in order")

    for sensor in range(7):
        written = [float(fields[b"value"]) for _, fields in server.xrange(f"sensor:{sensor}")]
        assert written == [float(number) for number in range(sensor, 100, 7)]


def test_a_job_that_fails_comes_again_later_and_at_last_is_a_dead_letter(
    run: Callable[..., None], spark: Any, server: redis.Redis
) -> None:
    for package in ("google.protobuf", "pandas"):
        pytest.importorskip(package, reason="transformWithState needs protobuf and pandas")
    settings = ("spark.sql.streaming.noDataMicroBatches.enabled", "spark.sql.streaming.stateStore.providerClass")
    before = [spark.conf.get(setting) for setting in settings]
    spark.conf.set(settings[0], "true")  # as Spark has it: times end also where nothing new comes
    try:
        for rounds in (("a", 1_000), ("b", 1_000), ("c", 2_000)), (("a", 3_000), ("d", 3_500)), (("a", 4_000),):
            for job, second in rounds:
                server.xadd("failed", {"job": job, "body": f"of {job}"}, f"{second}000-*")
            run("Retries with a delay and a limit")
    finally:
        for setting, value in zip(settings, before, strict=True):
            spark.conf.set(setting, value)

    again = [(fields[b"job"], fields[b"body"], fields[b"attempt"]) for _, fields in server.xrange("jobs")]
    assert sorted(again[:2]) == [(b"a", b"of a", b"2"), (b"b", b"of b", b"2")]
    assert sorted(again[2:4]) == [(b"a", b"of a", b"3"), (b"c", b"of c", b"2")]
    assert again[4:] == [(b"d", b"of d", b"2")]
    ((_, dead),) = server.xrange("jobs:dead")
    assert dead == {b"job": b"a", b"body": b"of a", b"attempt": b"3"}
