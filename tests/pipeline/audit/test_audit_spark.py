"""The judge with Spark, on the journals and logs of the one without: both must find the same."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from examples.audit import audit_local
from examples.audit.audit_spark import audit, is_clean
from examples.audit.journals import journals
from penstock.pipeline.connector.schemas import AOF
from tests.pipeline.audit.test_audit_local import EVERYTHING


def test_spark_finds_what_one_process_finds(spark: Any, tmp_path: Path) -> None:
    case = EVERYTHING
    for name, said in case.journals().items():
        (tmp_path / f"{name}.journal").write_text(said)
    rows = [
        ("log", 1, at, None, 0, words[0].decode(), words[1], words[1:], False) for at, words in enumerate(case.log())
    ]
    log = spark.createDataFrame(rows, AOF)
    alone = audit_local.check(case.log(), audit_local.journals_in(tmp_path), b"s", b"g")

    verdict = audit(log, journals(spark, str(tmp_path)), "s", "g")

    assert [(row.check, row.entries, row.example, row.must_be_zero) for row in verdict.collect()] == [
        (one.check.name, one.entries, one.example, one.check.must_be_zero) for one in alone
    ]
    assert not is_clean(verdict)
    assert is_clean(verdict.where("NOT must_be_zero"))
