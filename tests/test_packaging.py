"""What is around the package: the image's programs, the Dockerfile, pinned versions, and the wheel."""

import importlib.machinery
import importlib.util
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import core_profile
from penstock.config.settings import Settings

ROOT = Path(__file__).parent.parent
CANNOT = 77  # check-image's exit code where there are no namespaces


def program(name: str) -> ModuleType:
    """A program of packaging/ as a module."""
    loader = importlib.machinery.SourceFileLoader(re.sub(r"\W", "_", name), str(ROOT / "packaging" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def no_bytecode_in_packaging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


# -- the entry point --------------------------------------------------------------------------------------------------


@pytest.fixture
def entrypoint(tmp_path: Path) -> Callable[..., list[str]]:
    """Runs the entry point among programs that only say how they were called."""
    for name in ("redis-server", "penstock", "other", "find", "setpriv"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)

    def run(*words: str, user: int) -> list[str]:
        (tmp_path / "id").write_text(f"#!/bin/sh\necho {user}\n")
        (tmp_path / "id").chmod(0o755)
        command = ["/bin/sh", str(ROOT / "packaging/entrypoint"), *words]
        done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize(
    ("words", "called"),
    [
        pytest.param(["redis-server", "--port", "7000"], "redis-server --port 7000", id="the server with flags"),
        pytest.param(["--port", "7000"], "redis-server --port 7000", id="bare flags"),
        pytest.param(["/etc/redis.conf", "--port", "1"], "redis-server /etc/redis.conf --port 1", id="a conf file"),
        pytest.param(["other", "--port", "7000"], "other --port 7000", id="another program"),
    ],
)
def test_the_entry_point_starts_what_the_command_means(
    entrypoint: Callable[..., list[str]], words: list[str], called: str
) -> None:
    assert entrypoint(*words, user=1234) == [called]


@pytest.mark.parametrize("server", ["redis-server", "penstock"])
def test_as_root_the_entry_point_takes_over_the_volume_and_goes_on_as_its_own_user(
    entrypoint: Callable[..., list[str]], server: str
) -> None:
    assert entrypoint(server, "serve", user=0) == [
        "find . ! -user penstock -exec chown -h penstock:penstock {} +",
        f"setpriv --reuid=penstock --regid=penstock --init-groups -- {server} serve",
    ]


def test_as_root_another_program_stays_root(entrypoint: Callable[..., list[str]]) -> None:
    assert entrypoint("other", user=0) == ["other"]


# -- redis-server -----------------------------------------------------------------------------------------------------

EVERYWHERE = ["--bind", "*", "-::*"]
OPEN = ["--protected-mode", "no"]


@pytest.mark.parametrize(
    ("words", "added"),
    [
        pytest.param([], EVERYWHERE + OPEN, id="nothing"),
        pytest.param(["--save", "60", "1"], EVERYWHERE + OPEN, id="other flags"),
        pytest.param(["--bind", "127.0.0.1"], OPEN, id="an address"),
        pytest.param(["--protected-mode", "yes"], EVERYWHERE, id="protected mode"),
        pytest.param(["--version"], [], id="no settings"),
        pytest.param(["--no-such-directive", "1"], [], id="wrong settings"),
        pytest.param(["-", "--port", "1"], [], id="settings on standard input"),
    ],
)
def test_the_images_server_listens_everywhere_unless_it_is_told_otherwise(words: list[str], added: list[str]) -> None:
    assert program("redis-server").with_defaults(words) == words + added


def test_the_images_server_obeys_the_address_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "redis.conf").write_text("bind 127.0.0.1\n")
    words = [str(tmp_path / "redis.conf")]

    assert program("redis-server").with_defaults(words) == words + OPEN


# -- the health check -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("process", "arguments"),
    [
        pytest.param(
            ["python3", "-I", "/usr/local/bin/redis-server", "--port", "1"], ["--port", "1"], id="redis-server"
        ),
        pytest.param(["python3", "/opt/penstock/bin/penstock", "serve", "a.conf"], ["a.conf"], id="penstock serve"),
        pytest.param(["penstock", "version"], None, id="penstock, but no server"),
        pytest.param(["cat", "redis.conf"], None, id="another process"),
        pytest.param([], None, id="a process without words"),
    ],
)
def test_the_health_check_knows_a_server_by_its_words(process: list[str], arguments: list[str] | None) -> None:
    assert program("healthcheck").server_arguments(process) == arguments


@pytest.mark.parametrize(
    ("words", "addresses"),
    [
        pytest.param([], [("127.0.0.1", 6379)], id="nothing said"),
        pytest.param(["--bind", "*", "-::*", "--port", "1"], [("127.0.0.1", 1), ("::1", 1)], id="everywhere"),
        pytest.param(["--bind", "10.0.0.1"], [("10.0.0.1", 6379)], id="one address"),
        pytest.param(["--port", "0", "--unixsocket", "/data/s"], ["/data/s"], id="a unix socket only"),
    ],
)
def test_the_health_check_looks_where_the_server_was_told_to_listen(words: list[str], addresses: list[object]) -> None:
    check = program("healthcheck")

    assert list(check.addresses(check.config_file.start(words))) == addresses


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], tuple[str, int]]]:
    """A peer that answers one request with the given bytes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(reply: bytes) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(reply)

    def start(reply: bytes) -> tuple[str, int]:
        threading.Thread(target=serve, args=(reply,), daemon=True).start()
        host, port = listener.getsockname()
        return host, port

    yield start
    listener.close()


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        pytest.param(b"+PONG\r\n", 0, id="PONG"),
        pytest.param(b"-NOAUTH Authentication required.\r\n", 0, id="a password is wanted"),
        pytest.param(b"-MISCONF Errors writing to the AOF file\r\n", 0, id="the disk refuses"),
        pytest.param(b"-LOADING Redis is loading the dataset in memory\r\n", 1, id="loading"),
        pytest.param(b"", 1, id="closed without a word"),
    ],
)
def test_a_server_is_healthy_when_it_answers_and_has_loaded(
    answering: Callable[[bytes], tuple[str, int]], monkeypatch: pytest.MonkeyPatch, reply: bytes, code: int
) -> None:
    check = program("healthcheck")
    monkeypatch.setattr(check, "settings", Settings)  # not those of another server on this machine
    monkeypatch.setattr(check, "addresses", lambda _: [answering(reply)])

    assert check.main() == code


def test_a_server_that_cannot_be_reached_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    check = program("healthcheck")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()
    monkeypatch.setattr(check, "settings", Settings)
    monkeypatch.setattr(check, "addresses", lambda _: [closed])

    assert check.main() == 1


# -- files that must agree --------------------------------------------------------------------------------------------


def test_the_docker_build_is_sent_every_file_that_it_copies() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    sources = [word for words in copied for word in words if not word.startswith("--")]
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]

    assert [source for source in sources if source.split("/")[0] not in let_through] == []
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_in_the_compose_file_the_server_may_write_its_volume_alone_and_has_no_capabilities() -> None:
    server = (ROOT / "compose.yaml").read_text().partition("  penstock:\n")[2].partition("\n\n")[0]
    image = (ROOT / "Dockerfile").read_text()

    for line in ('user: "999:999"', "read_only: true", "cap_drop: [ALL]", '"no-new-privileges:true"'):
        assert line in server
    assert "--uid 999 --gid penstock" in image
    assert "VOLUME /data" in image


def test_every_dependency_is_pinned_and_nothing_says_from_where() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [word for group in project["dependency-groups"].values() for word in group if isinstance(word, str)]
    wanted = {re.split(r"[<>=;\[ ]", word)[0] for word in project["project"]["dependencies"] + groups}
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]

    assert wanted - {line.split("==")[0] for line in lines} == set()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9A-Za-z.]*", line)] == []


def test_what_every_user_installs_is_seven_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert [re.split("[>;]", word)[0] for word in project["dependencies"]] == [
        "anycrc",
        "hiredis",
        "librt",
        "sortedcontainers",
        "uvloop",
        "xxhash",
        "zstandard",
    ]


def test_make_help_names_every_target_for_people() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)[0].split()
    named = re.findall(r'"make ([\w-]+) ', text)

    assert set(phony) - set(named) == {"help", "lint"}


# -- the wheel --------------------------------------------------------------------------------------------------------


@pytest.fixture
def compiling() -> ModuleType:
    return program("compiling.py")


@pytest.mark.parametrize(
    ("asked", "has_compiler", "build"),
    [
        ("", True, "core"),
        ("", False, "plain"),
        ("0", True, "plain"),
        ("core", False, "core"),
        ("1", False, "whole"),
        ("all", False, "whole"),
    ],
)
def test_the_core_is_compiled_where_there_is_a_compiler_and_nothing_else_is_asked_for(
    compiling: ModuleType, monkeypatch: pytest.MonkeyPatch, asked: str, has_compiler: bool, build: str
) -> None:
    monkeypatch.setenv("PENSTOCK_COMPILE", asked)
    monkeypatch.setattr(compiling, "has_compiler", lambda: has_compiler)

    assert compiling.chosen()[0] == build


def test_a_build_that_is_not_known_is_refused(compiling: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_COMPILE", "yes")

    with pytest.raises(SystemExit, match="PENSTOCK_COMPILE is one of 0, core, 1, all, not 'yes'"):
        compiling.chosen()


@pytest.mark.parametrize("compiler", ["false", "/no/such/compiler"])
def test_a_compiler_that_fails_is_none(compiling: ModuleType, monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    monkeypatch.setenv("CC", compiler)

    assert not compiling.has_compiler()


def test_five_folders_are_compiled_whole_but_for_what_is_named(compiling: ModuleType) -> None:
    folders = [ROOT / "penstock" / folder for folder in compiling.FOLDERS]
    modules = {str(path.relative_to(ROOT)) for folder in folders for path in folder.rglob("*.py")}
    left_out = {f"penstock/{name}" for name in compiling.LEFT_OUT}
    beside = {f"penstock/{name}" for name in compiling.MODULES}
    whole = {name for name in modules if not name.endswith("__init__.py")} - left_out

    assert left_out <= modules
    assert all((ROOT / name).is_file() for name in beside)
    assert set(compiling.sources(ROOT)) == whole | beside


REMEDY = "a moved module's line in packaging/core_modules.txt is changed by hand; `make profile-core` writes all anew"


def test_the_core_has_what_branches_on_the_build_and_whole_families_of_classes(compiling: ModuleType) -> None:
    whole, core = set(compiling.sources(ROOT)), compiling.sources(ROOT, "core")
    needed = core_profile.with_relatives(set(core) | core_profile.always_in_core(whole), whole)

    assert needed - set(core) == set(), REMEDY
    assert core == sorted(set(core)), REMEDY
    assert core_profile.VERSIONS not in core, "it tells the two builds from each other"


@pytest.mark.parametrize(
    "module",
    [
        "commands/streams/groups/xack.py",
        "commands/streams/groups/xclaim.py",
        "protocol/native_parser.py",
        "server/turns/log_writer.py",
        "storage/aof/append_log.py",
        "storage/types/set_forms/ordered_pairs.py",
    ],
)
def test_the_core_has_what_usual_loads_use(compiling: ModuleType, module: str) -> None:
    assert f"penstock/{module}" in compiling.sources(ROOT, "core"), REMEDY


def test_a_core_module_that_is_not_there_is_named_with_what_to_do(compiling: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "packaging").mkdir()
    (tmp_path / compiling.CORE_LIST).write_text("penstock/storage/was_moved.py\n")

    with pytest.raises(SystemExit, match=r"was_moved\.py\. Where a module was only moved, change its line"):
        compiling.sources(tmp_path, "core")


def test_every_load_has_nearly_all_of_its_time_in_the_modules_that_are_chosen_for_it() -> None:
    seconds = {"a.py": 4.0, "b.py": 90.0, "c.py": 5.5, "d.py": 0.5, "not compiled.py": 100.0}

    chosen = list(core_profile.busiest(seconds, {"a.py", "b.py", "c.py", "d.py", "e.py"}, 0.99))

    assert chosen == ["b.py", "c.py", "a.py"]


class Compiler:
    """Notes what it compiles, and writes files."""

    compiler_so = (sys.executable,)
    include_dirs = ("include",)

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def spawn(self, words: list[str]) -> None:
        *_, source, _, into = words
        self.compiled.append(Path(source).name)
        Path(into).write_text("")


@pytest.mark.parametrize(
    ("changed", "compiled"),
    [
        pytest.param("__native_a.c", ["__native_a.c"], id="a module"),
        pytest.param("shim.c", ["shim.c"], id="a file without the headers"),
        pytest.param("__native_penstock.h", ["__native_a.c", "__native_b.c", "shim.c"], id="a header"),
        pytest.param("unrelated.h", [], id="nothing"),
    ],
)
def test_only_files_that_changed_are_compiled_again(
    compiling: ModuleType, tmp_path: Path, changed: str, compiled: list[str]
) -> None:
    sources = [tmp_path / "__native_a.c", tmp_path / "__native_b.c", tmp_path / "shim.c"]
    for file in (*sources, *(tmp_path / header for header in compiling.HEADERS)):
        file.write_text(file.name)

    def made() -> list[str]:
        compiler = Compiler()
        objects = compiling.Objects(compiler, tmp_path / "objects", tmp_path)
        assert set(objects.made_of([(source, ["-O1"]) for source in sources])) == set((tmp_path / "objects").iterdir())
        return sorted(compiler.compiled)

    assert made() == ["__native_a.c", "__native_b.c", "shim.c"]
    (tmp_path / changed).write_text("otherwise")

    assert made() == compiled


def test_a_compiled_build_takes_the_pinned_versions(compiling: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    monkeypatch.setenv("PENSTOCK_COMPILE", "1")

    assert set(hook(compiling).dependencies()) <= set(pins)


def test_a_plain_build_needs_nothing_else(compiling: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_COMPILE", "0")

    assert hook(compiling).dependencies() == []


def test_an_editable_installation_is_never_compiled(compiling: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_COMPILE", "1")
    monkeypatch.setattr(compiling, "compiled", None)  # calling it would fail
    build_data: dict[str, object] = {}

    hook(compiling).initialize("editable", build_data)

    assert build_data == {}


def hook(compiling: ModuleType) -> Any:
    return compiling.CompilingHook(str(ROOT), {}, None, None, "", "wheel")


def test_make_wheel_and_the_image_compile() -> None:
    assert "ARG PENSTOCK_COMPILE=all" in (ROOT / "Dockerfile").read_text().splitlines()
    assert re.search(r"^wheel:.*\n\tPENSTOCK_COMPILE=all ", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.slow
def test_where_no_compiler_is_the_wheel_is_plain_and_has_the_package_its_types_and_its_licence(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    environment = {name: value for name, value in os.environ.items() if name != "PENSTOCK_COMPILE"} | {"CC": "false"}
    subprocess.run(words, check=True, capture_output=True, timeout=600, env=environment)

    (wheel,) = tmp_path.glob("penstock_server-*-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"penstock/cli.py", "penstock/py.typed", "pyspark_penstock/__init__.py"} <= set(names)
    assert any(fnmatch(name, "penstock_server-*.dist-info/licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"penstock", "penstock_server", "pyspark_penstock"}


@pytest.mark.slow
def test_where_a_compiler_is_an_installation_serves_the_core(tmp_path: Path) -> None:
    virtual = tmp_path / "bin/python"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK", "PYTHONPATH"))}
    if not program("compiling.py").has_compiler():
        pytest.skip("no C compiler finds Python.h")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True)
    words = [str(virtual), "-m", "pip", "install", "--quiet", str(ROOT)]
    subprocess.run(words, check=True, capture_output=True, timeout=900, env=environment)
    smoke = [str(virtual), str(ROOT / "packaging/smoke.py"), "--build", "core"]
    done = subprocess.run(smoke, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


# With the plain build: compiling would take five minutes of every run. `tools/check-image` alone checks the real image.
@pytest.mark.slow
def test_the_image_builds_and_does_what_a_compose_file_expects() -> None:
    command = [str(ROOT / "tools/check-image"), "--build-arg", "PENSTOCK_COMPILE=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)

    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def texts() -> list[Path]:
    """What people read: documents, examples, error messages."""
    folders = ["docs", "examples", "packaging", "penstock", "pyspark_penstock", "tools"]
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    above = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Dockerfile", "compose.yaml", "Makefile")]
    return above + inside


def test_no_page_says_to_install_what_others_published() -> None:
    """The package index has a penstock that is not this one."""
    wrong = re.compile(rb"(pip3?|pipx|uv|uvx) (install |add |tool |run |pip )*['\"]?penstock\b(?!-server)")
    sources = [path for path in texts() if path.suffix not in (".pyc", ".so")]

    assert [path for path in sources if wrong.search(path.read_bytes())] == []
