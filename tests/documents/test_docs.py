"""What pages say of the code: names of files, functions and options, figures, and that each block of code is run."""

import json
import re
from pathlib import Path

from tools import docs_site

ROOT = Path(__file__).parents[2]
FILES = [path for folder in ("penstock", "packaging", "tests") for path in (ROOT / folder).rglob("*.*")]
SOURCE = "\n".join(path.read_text() for path in FILES if path.suffix == ".py" and path != Path(__file__))
PAGE = re.sub(r"```.*?```", "", (ROOT / "docs/architecture.md").read_text(), flags=re.DOTALL)
NAMED = re.findall(r"`@?([\w./]+)(?:\(\w*\))?`", PAGE)


def test_every_file_that_the_architecture_page_names_is_there() -> None:
    named = [name for name in NAMED if name.endswith((".py", ".lua"))]

    assert len(named) > 20
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in FILES)] == []


def test_every_function_and_class_that_the_architecture_page_names_is_there() -> None:
    named = [name.rpartition(".")[2] for name in NAMED if not name.endswith((".py", ".lua")) and "/" not in name]

    assert len(named) > 20
    assert set(named) - {""} - set(re.findall(r"\w+", SOURCE)) == set()


# -- the pipeline's pages ---------------------------------------------------------------------------------------------

PIPELINE = (ROOT / "docs/pipeline.md").read_text()
RECIPES = (ROOT / "docs/recipes.md").read_text()
FROM_KAFKA = (ROOT / "docs/from-kafka.md").read_text()
RUN = {"sh", "python", "toml"}  # of pipeline.md, by tests/pipeline/test_docs_pipeline.py; of recipes.md python only
READING, WRITING = (
    json.loads((ROOT / f"bench/results/spark-{name}.json").read_text())["figures"] for name in ("read", "write")
)
RATES = READING["rates"] | {name: row for name, row in WRITING.items() if isinstance(row, dict)}


def blocks(page: str) -> list[tuple[str, str]]:
    """The line before each block of code, and its language."""
    return re.findall(r"^(.*)\n```(\w*)\n(?:.*\n)*?```$", page, re.MULTILINE)


# Sizes and times in prose that are not measured, by the line of code that they follow from.
SETTINGS = {
    "20 times": "\nPOLL_S: Final = 0.05 ",
    "64 MB": "\nSPLIT_BYTES: Final = 64 * 1024 * 1024\n",
    "8 MB": "log_splits.SPLIT_BYTES // 8,",
    "32 MB": "\nFETCH_BYTES, LARGEST_PAGE = 8 << 20,",
}
FIGURE = re.compile(r"(?<![\w`])\d[\d,.]*\s?(?:us|ms|s|[kMG]B|minutes|times|million)\b")


def prose_of(page: str) -> list[str]:
    """The lines of a page outside code and tables."""
    return [line for line in re.sub(r"```.*?```", "", page, flags=re.DOTALL).splitlines() if not line.startswith("|")]


def cpu_us(load: str, *processes: str, server: str = "compiled") -> float:
    return sum(RATES[load][server][f"{process}_us"] for process in processes or ("server",))


def test_every_block_of_code_of_the_pipelines_pages_is_run_or_says_why_not() -> None:
    unrun = [line for page in (PIPELINE, RECIPES, FROM_KAFKA) for line, language in blocks(page) if language not in RUN]

    assert len(blocks(PIPELINE)) > 12 and len(blocks(RECIPES)) > 5
    assert [line for line in unrun if not re.fullmatch(r"<!-- not run: .+ -->", line)] == []
    assert len(re.findall("^```toml$", PIPELINE, re.MULTILINE)) == 1
    assert len(re.findall("^```sh$", PIPELINE, re.MULTILINE)) == 1
    assert len(re.findall("^## ", RECIPES, re.MULTILINE)) >= len(blocks(RECIPES))  # the tests take one a heading


def both(load: str) -> tuple[str, str]:
    """CPU of the compiled server and of Redis."""
    return f"{cpu_us(load):.2g} us", f"{cpu_us(load, server='redis'):.2g}"


def test_the_figures_of_the_pipelines_page_are_those_of_the_last_run() -> None:
    reads, once = "1 key, columns", "rows written, exactly-once"
    read, exactly, letters = both(reads), both(once), both("dead letters moved")
    at_least, idmp = both("rows written, at-least-once"), both("rows written, idmp")
    all_read, all_written = (cpu_us(load, "server", "jvm", "workers") for load in (reads, once))
    rates = [RATES[load]["compiled"]["rate"] / 1e6 for load in (reads, once)]
    tuples, client = (
        cpu_us(f"1 key, {how}", "workers") / cpu_us(reads, "workers") for how in ("row tuples", "redis-py")
    )
    sentences = [
        f"compiled server uses {read[0]} of CPU time, Redis {read[1]}.",
        f"it uses {exactly[0]} exactly once (Redis {exactly[1]}), {at_least[0]} at least once ({at_least[1]}),",
        f"and {idmp[0]} with IDMP ({idmp[1]}). A dead letter uses {letters[0]} ({letters[1]}).",
        f"use {all_read:.2g} us for a row that is read and {all_written:.2g} us for a row that is written",
        f"written exactly once: {rates[0]:.2g} and {rates[1]:.2g} million rows a second.",
        f"uses {tuples:.2g} times the time of a row in record batches, redis-py {client:.2g} times.",
        f"sends {READING['idle']['idle, 2 keys']['compiled']['commands_s']:.1f} requests a second.",
        f"an entry takes {READING['latency']['XADD to foreachBatch']['compiled']['p50_ms']:.0f} ms (median)",
    ]

    page = " ".join(PIPELINE.split())
    assert [sentence for sentence in sentences if sentence not in page] == []
    measured = set(FIGURE.findall(" ".join(sentences)))
    prose = " ".join(text for page in (PIPELINE, RECIPES) for text in prose_of(page))
    assert sorted(set(FIGURE.findall(prose)) - measured - SETTINGS.keys()) == []


def test_the_sizes_and_times_that_are_no_figures_are_settings() -> None:
    """Each stands in the page, and is what the code has."""
    prose = " ".join(text for page in (PIPELINE, RECIPES) for text in prose_of(page))

    assert [text for text in SETTINGS if text not in FIGURE.findall(prose)] == []
    assert [text for text, source in SETTINGS.items() if source not in SOURCE + RECIPES] == []


def test_the_options_that_kafkas_are_compared_with_are_there() -> None:
    tables = re.findall(r"^\| `(?:\w|\.)[^|]* \| ([^|]*) \| [^|]* \|$", FROM_KAFKA, re.MULTILINE)
    named = {name for cell in tables for name in re.findall(r"`(\w+)`", cell)}

    assert len(named) > 25
    assert sorted(name for name in named if f"`{name}`" not in PIPELINE) == []


# -- README's figures -------------------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text()
COLUMNS = ("core", "redis", "valkey")
LOADS, SINGLES, WAKEUPS, MEMORY = (
    json.loads((ROOT / f"bench/results/{part}.json").read_text())["figures"]
    for part in ("loads", "singles", "wakeups", "memory")
)
FIGURES_OF_README = {  # a row's first words -> the figures of its columns, and their unit
    "read 100 new entries": ([LOADS["xreadgroup-100"][name]["cpu_us"] for name in COLUMNS], "us"),
    "claim 100 pending": ([LOADS["xclaim-100"][name]["cpu_us"] for name in COLUMNS], "us"),
    "acknowledge an entry": ([LOADS["xack-1"][name]["cpu_us"] for name in COLUMNS], "us"),
    "add an entry": ([LOADS["xadd-1-field"][name]["cpu_us"] for name in COLUMNS], "us"),
    "wake one of 10,000": ([WAKEUPS[name]["10000"]["p50_ms"] for name in COLUMNS], "ms"),
    "memory of a pending": ([MEMORY[name]["pending, best"] for name in COLUMNS], "bytes"),
    "memory of an entry": ([MEMORY[name]["entry, best"] for name in COLUMNS], "bytes"),
    "memory of a small string": ([MEMORY[name]["string of 10 bytes"] for name in COLUMNS], "bytes"),
    "*slower:* add an entry": ([SINGLES["XADD, log everysec"][name]["cpu_us"] for name in COLUMNS], "us"),
    "*slower:* a small script": ([LOADS["evalsha-16"][name]["cpu_us"] for name in COLUMNS], "us"),
    "*larger:* memory of a set": ([MEMORY[name]["set of 10 members"] for name in COLUMNS], "bytes"),
}


def two_digits(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.2g}"


def test_the_figures_of_the_readme_are_those_of_the_last_run() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", README, re.MULTILINE)
    found = {label: cells for label, *cells in rows if re.fullmatch(r"[\d.]+ (us|ms|bytes)", cells[0])}
    wanted = [[f"{two_digits(one)} {unit}" for one in figures] for figures, unit in FIGURES_OF_README.values()]

    assert [label.startswith(begin) for label, begin in zip(found, FIGURES_OF_README, strict=True)] == [True] * len(
        found
    )
    assert list(found.values()) == wanted
    plain, compiled = (two_digits(LOADS["cycle"][name]["ratio"]) for name in ("plain", "core"))
    assert f"uses {plain} times the CPU of the faster C server" in README
    assert f"(compiled, {compiled} times)" in README


# -- links ------------------------------------------------------------------------------------------------------------

LINKED = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
LINKED += sorted((ROOT / "docs").glob("*.md"))


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_there(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = page.parent / name if name else page
    return path.exists() and (not anchor or anchor in anchors_of(path))


def test_every_link_of_a_page_leads_to_a_file_and_a_heading_that_are_there() -> None:
    links = [(page, target) for page in LINKED for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))]
    inside = [(page, target) for page, target in links if not re.match(r"[a-z]+:", target)]

    assert len(inside) > 60
    assert [f"{page.name}: {target}" for page, target in inside if not is_there(page, target)] == []


def test_the_site_has_every_page() -> None:
    named = set(re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}

    assert named == pages | set(docs_site.ABOVE.values()) | {"api.md"}


def test_links_of_a_page_lead_into_the_site() -> None:
    page = docs_site.rewritten(ROOT / "README.md")

    assert "](testing.md)" in page
    assert "](architecture.md)" in page
    assert "](docs/" not in page
    assert "](LICENSE)" not in page
