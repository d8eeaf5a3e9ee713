"""The frameworks that are run here: where each is installed, how its worker is started, what it is used for."""

import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
APPS = HERE / "apps"
INSTALLED = HERE.parent.parent / "build/clients"
PYTHONS = INSTALLED / "python"
BUILT = INSTALLED / "programs"
DEBIAN = Path("/usr/bin")
NODE = INSTALLED / "npm/node_modules"
ONE_SERVER, SENTINELS, CLUSTER = "one", "sentinels", "cluster"


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework and its way of work.

    `may_lose`: jobs that its design (not the server) may lose with a killed worker, as many as one worker holds.
    `kept`: results that must be read back through the framework itself. `beside`: further processes,
    started again with the server if `beside_restarts`. `beside_servers`: ONE_SERVER, SENTINELS or CLUSTER.
    `nudged`: it looks for lost jobs only when a new one comes. `in_cluster`: the server has `cluster-enabled yes`.
    `by_tls`: it comes by TLS, as a user with the rights that the jobs need (`servers.py`).
    """

    name: str
    package: str
    programs: Path
    worker: tuple[str, ...]
    sender: tuple[str, ...]
    exercised: str
    jobs: int = 400
    may_lose: int = 0
    kept: int = 0
    beside: tuple[tuple[str, ...], ...] = ()
    beside_restarts: bool = True
    nudged: bool = False
    remark: str = ""
    in_cluster: bool = False
    by_tls: bool = False
    beside_servers: str = ONE_SERVER

    @property
    def version(self) -> str:
        """The installed version, empty where it is not installed."""
        if shutil.which(self.worker[0]) is None:
            return ""
        if self.programs == NODE / ".bin":
            return _node_version(NODE / self.package / "package.json")
        if self.programs == DEBIAN:
            return _debian_version(self.package)
        found = sorted(self.programs.parent.glob(f"lib/python*/site-packages/{self.package}-*.dist-info"))
        return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else ""


def _node_version(manifest: Path) -> str:
    return str(json.loads(manifest.read_text())["version"]) if manifest.exists() else ""


def _debian_version(package: str) -> str:
    """The package's upstream version, without Debian's own marks."""
    if shutil.which("dpkg-query") is None:
        return ""
    asked = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", package],
        capture_output=True,
        text=True,
    )
    state, _, version = asked.stdout.partition(" ")
    return version.split(":")[-1].split("-")[0] if state == "installed" else ""


def _python(
    name: str,
    package: str,
    worker: str,
    exercised: str,
    jobs: int = 400,
    may_lose: int = 0,
    kept: int = -1,
    beside: str = "",
    nudged: bool = False,
    remark: str = "",
    in_cluster: bool = False,
) -> Framework:
    """One in a virtual environment of its own; its worker is a program there, its sender apps/NAME_app.py."""
    programs = PYTHONS / name / "bin"
    return Framework(
        name,
        package,
        programs,
        worker=_program(programs, worker),
        sender=(str(programs / "python"), f"{name}_app.py"),
        exercised=exercised,
        jobs=jobs,
        may_lose=may_lose,
        kept=jobs - may_lose if kept < 0 else kept,
        beside=(_program(programs, beside),) if beside else (),
        nudged=nudged,
        remark=remark,
        in_cluster=in_cluster,
    )


def _program(programs: Path, line: str) -> tuple[str, ...]:
    first, *others = line.split()
    return (str(programs / first), *others)


def _debian(
    name: str, package: str, program: tuple[str, ...], exercised: str, jobs: int, in_cluster: bool = False
) -> Framework:
    worker = (*program, "worker")
    return Framework(name, package, DEBIAN, worker, program, exercised, jobs, kept=jobs, in_cluster=in_cluster)


def _node(
    name: str,
    package: str,
    script: str,
    exercised: str,
    jobs: int = 400,
    in_cluster: bool = False,
    by_tls: bool = False,
) -> Framework:
    sender = ("node", script, package)
    return Framework(
        name,
        package,
        NODE / ".bin",
        worker=(*sender, "worker"),
        sender=sender,
        exercised=exercised,
        jobs=jobs,
        kept=jobs,
        in_cluster=in_cluster,
        by_tls=by_tls,
    )


# Jobs that a worker holds when it is killed come back by a timeout in every one of these but where `may_lose` says so.
ALONE = (
    _python(
        "rq",
        "rq",
        "rq worker jobs --url {url} --worker-ttl 17 --maintenance-interval 2 --job-monitoring-interval 1",
        "queue, results, retries after abandonment",
        jobs=200,
        remark="counts a job as abandoned after 61 seconds, but looks for such jobs only between two waits for a new "
        "job, which last 405 seconds by default: its workers are run with --worker-ttl 17, which makes the "
        "waits 2 seconds long. Without it one or two jobs were missing after 150 seconds, on Redis 8.6.3 as "
        "here",
    ),
    _python(
        "taskiq",
        "taskiq_redis",
        "taskiq worker taskiq_app:broker --workers 1 --ack-type when_executed",
        "stream broker with XAUTOCLAIM under a lock, results, schedule",
        kept=360,
        beside="taskiq scheduler taskiq_app:scheduler --update-interval 1",
        nudged=True,
        remark="looks for lost jobs only after a new job, so more jobs were sent. Its scheduler is restarted, too, "
        "because it does not repeat jobs that it could not send while the server was down: without a restart "
        "up to ten scheduled jobs of 400 were missing, on Redis 8.6.3 as here",
    ),
    _python("arq", "arq", "arq arq_app.WorkerSettings", "queue, results"),
    _python(
        "celery",
        "celery",
        "celery -A celery_app worker -c 2 --loglevel info",
        "broker, results, late acknowledgement",
        may_lose=3,
        remark="takes a job by BRPOP and records it as unacknowledged by a second request: a job is lost if the "
        "worker is killed, or the server goes down, between the two. On a busy machine one or two of 400 were "
        "lost here, and one on Redis 8.6.3",
    ),
    _python(
        "dramatiq",
        "dramatiq",
        "dramatiq dramatiq_app -p 1 -t 2",
        "broker, results, heartbeat",
        kept=396,
        remark="stores a result once and then acknowledges its job, although it could not be stored: a job that ends "
        "while the server is down has no result, on Redis 8.6.3 as here. Two workers have four such jobs at most",
    ),
    _python(
        "huey",
        "huey",
        "huey_consumer huey_app.huey -w 2",
        "queue, results, schedule",
        may_lose=4,
        remark="takes jobs by BRPOP and has no acknowledgement, so the job of a killed worker is lost, on any "
        "server: none, one or two of 400 here, none or three on Redis 8.6.3",
    ),
    _python("walrus", "walrus", "python walrus_app.py work", "consumer group, claims, locks, hashes"),
    _python(
        "faststream",
        "faststream",
        "faststream run faststream_app:app",
        "stream group with claims, list, pub/sub as request and reply",
        may_lose=10,
        kept=50,
        remark="a list subscriber has no acknowledgement, so the job of a killed worker is lost, on any server: none "
        "or one of 400 here, none on Redis 8.6.3",
    ),
    _python("streaq", "streaq", "streaq run streaq_app:worker", "streams by scripts, delays, results, reclaiming"),
    _python(
        "docket",
        "pydocket",
        "docket worker --docket jobs --url {url} --tasks docket_app:tasks --redelivery-timeout 4s --concurrency 4",
        "stream by scripts, schedule, results, redelivery",
        kept=390,
        remark="records a task as failed if the connection is lost while the task runs, although its work is done: "
        "up to three of 400 in a run, on Redis 8.6.3 as here",
    ),
    _node("bullmq", "bullmq", "bullmq.mjs", "queue by scripts, priorities, delays, stalled jobs, results", jobs=2000),
    _node("ioredis 6", "ioredis", "ioredis.mjs", "consumer group, XAUTOCLAIM, pipelines, own script", jobs=2000),
    _node("ioredis 5", "ioredis5", "ioredis.mjs", "consumer group, XAUTOCLAIM, pipelines, own script", jobs=2000),
    _node("node-redis 6", "redis", "node_redis.mjs", "RESP3, consumer group, XAUTOCLAIM, MULTI", jobs=2000),
    _node("node-redis 5", "redis5", "node_redis.mjs", "RESP3, consumer group, XAUTOCLAIM, MULTI", jobs=2000),
    _debian("php-redis", "php-redis", ("php", "phpredis.php"), "consumer group, claims, MULTI, script", jobs=1000),
    _debian(
        "ruby-redis", "ruby-redis", ("ruby", "ruby_redis.rb"), "consumer group, XAUTOCLAIM, MULTI, script", jobs=1000
    ),
    _debian(
        "hiredis", "libhiredis-dev", (str(BUILT / "hiredis"),), "consumer group, XAUTOCLAIM, pipelined MULTI", jobs=2000
    ),
    _debian("redis-cli", "redis-tools", ("sh", "redis_cli.sh"), "--pipe, BLMOVE, EVAL, a process a request", jobs=200),
    _python(
        "redis_cluster",
        "redis",
        "python redis_cluster_app.py work",
        "RedisCluster: consumer group, XAUTOCLAIM, transactions",
        jobs=1000,
        in_cluster=True,
    ),
    _node(
        "ioredis 6 Cluster", "ioredis", "ioredis.mjs", "consumer group, XAUTOCLAIM, pipelines, own script", 2000, True
    ),
    _node(
        "ioredis 5 Cluster", "ioredis5", "ioredis.mjs", "consumer group, XAUTOCLAIM, pipelines, own script", 2000, True
    ),
    _node("node-redis 6 cluster", "redis", "node_redis.mjs", "RESP3, consumer group, XAUTOCLAIM, MULTI", 2000, True),
    _node("node-redis 5 cluster", "redis5", "node_redis.mjs", "RESP3, consumer group, XAUTOCLAIM, MULTI", 2000, True),
    _node("ioredis 6 TLS", "ioredis", "ioredis.mjs", "a user with few rights, by TLS", jobs=2000, by_tls=True),
    _node("ioredis 5 TLS", "ioredis5", "ioredis.mjs", "a user with few rights, by TLS", jobs=2000, by_tls=True),
    _node("node-redis 6 TLS", "redis", "node_redis.mjs", "a user with few rights, by TLS", jobs=2000, by_tls=True),
    _debian(
        "redisc (Go)",
        "golang-github-mna-redisc-dev",
        (str(BUILT / "redisc"),),
        "redigo in a cluster: consumer group, XAUTOCLAIM, MULTI",
        jobs=2000,
        in_cluster=True,
    ),
)


def _again(names: tuple[str, ...], servers: str, words: str, exercised: str) -> tuple[Framework, ...]:
    """Some of those above, beside more than one server."""
    found = [framework for framework in ALONE if framework.name in names]
    return tuple(
        replace(one, name=f"{one.name}{words}", exercised=exercised, beside_servers=servers, remark="") for one in found
    )


BEHIND, LOST = " behind Sentinels", "the master is killed, a replica promoted"
WATCHED = ("celery", "faststream", "bullmq", "ioredis 6", "node-redis 6")
DIVIDED = ("redis_cluster", "ioredis 6 Cluster", "node-redis 6 cluster", "redisc (Go)")
PY = replace(next(one for one in ALONE if one.name == "redis_cluster"), beside_servers=SENTINELS)
FRAMEWORKS = (
    *ALONE,
    replace(
        _again(("rq",), SENTINELS, BEHIND, LOST)[0],
        worker=tuple(
            "--config" if word == "--url" else word.replace("{url}", "rq_settings") for word in ALONE[0].worker
        ),
    ),
    *_again(WATCHED, SENTINELS, BEHIND, LOST),
    replace(
        PY, name="redis-py behind Sentinels", exercised="consumer group, XAUTOCLAIM, transactions", in_cluster=False
    ),
    replace(
        PY,
        name="redis-py's asyncio behind Sentinels",
        exercised="consumer group, XAUTOCLAIM, transactions",
        worker=(PY.worker[0], "redis_asyncio_app.py", "work"),
        sender=(PY.sender[0], "redis_asyncio_app.py"),
        in_cluster=False,
    ),
    *_again(DIVIDED, CLUSTER, ", three nodes", "slots move to a node that is killed then"),
)
