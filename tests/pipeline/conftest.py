"""One Spark session and one server for all of the pipeline's tests.

`REDIS=1 pytest tests/pipeline` takes the real Redis that other tests compare with, `REDIS=/path/to/redis-server` the
one that is named.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.pipeline.session import make_active, missing, session
from tests.support.reference_server import LOCALHOST, NoReference, reference_server
from tests.support.server_process import running_server

REAL_REDIS = os.environ.get("REDIS", "")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """`local[2,3]`: two tasks at a time, each tried three times."""
    lack = missing()
    if lack is not None:
        pytest.skip(lack)
    found = session(
        "local[2,3]",
        "penstock-tests",
        spark__driver__memory="768m",
        # Hundreds of small queries: what they cost is the compiling of each, by Spark and by the JVM.
        spark__driver__extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        spark__sql__codegen__wholeStage="false",
        spark__sql__codegen__factoryMode="NO_CODEGEN",
        spark__driver__host=LOCALHOST,
        spark__driver__bindAddress=LOCALHOST,
        spark__ui__enabled="false",
        spark__sql__shuffle__partitions="2",
        spark__sql__session__timeZone="UTC",
        spark__sql__streaming__noDataMicroBatches__enabled="false",
        spark__python__worker__reuse="true",
        spark__log__level="ERROR",
    )
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def active_session(request: pytest.FixtureRequest) -> None:
    """The session is the thread's active one, even where an earlier test lost the connection to the JVM."""
    if "spark" in request.fixturenames:
        make_active(request.getfixturevalue("spark"))


@pytest.fixture(scope="session")
def server_port() -> Iterator[int]:
    """The port of the server that all tests share."""
    if REAL_REDIS:
        if REAL_REDIS != "1":
            os.environ["REFERENCE_REDIS"] = REAL_REDIS
        try:
            with reference_server() as port:
                yield port
        except NoReference as absence:
            pytest.skip(str(absence))
    else:
        with running_server("--appendonly", "no") as server:
            yield server.port


@pytest.fixture
def server(server_port: int) -> Iterator[redis.Redis]:
    """A client of the server, which is empty."""
    with redis.Redis(LOCALHOST, server_port, socket_timeout=30) as client:
        client.flushall()
        yield client


@pytest.fixture
def endpoint(server: redis.Redis, server_port: int) -> str:
    """The option `endpoints` of the server, which is empty."""
    return f"{LOCALHOST}:{server_port}"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
