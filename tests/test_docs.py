"""The documentation: commands parse, scenarios exist, Python runs, and the site builds without a warning."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

import planner
import planner_dashboard
from planner.contract.columns import match_columns
from planner.contract.synonyms import other_names
from planner.contract.units import unit_of
from planner.coordination import measurement
from planner.errors import InputError
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.shipped import scenario_names
from tests.commands import parse

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SPHINX = ROOT / ".venv-docs" / "bin" / "sphinx-build"
WRITTEN = sorted(
    path
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]
    if path.relative_to(DOCS.parent).parts[1:2]
    not in [("systems",), ("reference",), ("reproduced.md",), ("examples",)]
)
"""Pages that people write; the others are generated."""
SHORT = ("bring_your_own",)
"""Notebooks with fewer cells."""
EXECUTED = ("bring_your_own", "traffic")
"""Notebooks that each slow run executes; `make docs` and the exhaustive tests execute all."""
LONG = (
    "analytics",
    "brokering",
    "capacity",
    "cdnrouting",
    "coflows",
    "congestion",
    "consolidation",
    "contracts",
    "fairshare",
    "fibre_cut",  # of plans that are equally good, one machine takes another than the next
    "flowtables",
    "geostore",
    "livevideo",
    "membership",
    "multicast",
    "overload",
    "queries",
    "rotors",
    "routers",
    "routes",
    "through_time",
    "topology",
    "updates",
)
"""Pages whose commands take long, most of them of single systems: the exhaustive tests run them.

The other pages run each command of the tool."""
DRAWN = ("capacity", "circuits", "traffic", "updates")
"""Systems whose section of the gallery each slow run draws again; the exhaustive tests draw all."""
SEARCHES = {
    "own constraint": "howto/bring_your_own",
    "own design": "howto/bring_your_own",
    "networkx": "howto/python",
}
"""Searches of the site, and a page that must be among the first results."""
GUIDES = ("dashboard", "share", "through_time", "own_data")
"""Pages that name labels of the dashboard, in italics."""
LABEL = re.compile(r"(?<![*\w])\*([A-Z][^*]{2,60})\*(?!\*)")
DASHBOARD = Path(planner_dashboard.__file__).parent
NOTEBOOKS = sorted(path.stem for path in (DOCS / "notebooks").glob("*.md"))


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """The generator of pages, docs/generate.py."""
    description = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


def blocks(text: str, language: str) -> list[str]:
    """Return the contents of all fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the words of every line of the ```sh blocks, without comments."""
    for block in blocks(text, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_parses_and_its_scenarios_ship(path: Path) -> None:
    shipped = set(scenario_names())
    for words in command_lines(path.read_text(encoding="utf-8")):
        parse(words)
        for word in words[2:]:
            if re.fullmatch(rf"({'|'.join(system_names())})/\w+", word):
                assert word in shipped, shlex.join(words)


@pytest.mark.parametrize(
    "words",
    ["planner compare traffic/abilene --desings ecmp", "planner sovle traffic/abilene", "make demo"],
)
def test_a_wrong_command_is_found(words: str) -> None:
    with pytest.raises(Exception, match=r"desings|no such command|not a command"):
        parse(words.split())


def test_the_page_lists_every_system_whose_model_can_be_changed() -> None:
    page = (DOCS / "howto" / "bring_your_own.md").read_text(encoding="utf-8")
    table = page.partition("| system | variables |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)`[^|]* \| (.*) \| (.*) \|$", table, flags=re.MULTILINE)
    systems = {name: find_system(name) for name in system_names()}
    opened = {
        name
        for name, system in systems.items()
        if any(design.open_model is not None for design in system.designs)
    }
    assert {name for name, *_ in rows} == opened
    for name, variables, aims in rows:
        sample = systems[name].problem.sample
        assert sample is not None
        model = planner.model(sample())
        for goal_name, goal in model.goals.items():
            assert f"`{goal_name}={goal.value.upper()}`" in aims if goal.value else f"`{goal_name}`" in aims
        for block in model.variables:
            if model.variables[block].has_members:
                assert f"`{block}`" in variables
    for name in set(systems) - opened:
        sample = systems[name].problem.sample
        assert sample is not None
        with pytest.raises(InputError, match=r"that can be changed.*; those that have: .*traffic's optimum"):
            planner.model(sample())


@pytest.mark.parametrize("name", system_names())
def test_every_system_has_a_page(generate: ModuleType, name: str) -> None:
    page = generate.system_page(name)
    for heading in ("## Example scenario", "## Tables of a problem", "## Designs", "## Metrics"):
        assert heading in page
    assert blocks(page, "pycon"), "the example of the docstring"
    for words in command_lines(page):
        parse(words)
        assert words[2] in scenario_names()


def rows_of(page: str) -> dict[str, dict[str, list[str]]]:
    """Return the cells of the rows of tables by their first cells, by the heading above."""
    result: dict[str, dict[str, list[str]]] = {}
    for section in page.split("\n## ")[1:]:
        rows = [
            re.split(r"(?<!\\) \| ", line.strip("|").strip())
            for line in section.splitlines()
            if line[:3] == "| `"
        ]
        result[section.partition("\n")[0]] = {row[0]: row[1:] for row in rows}
    return result


def test_the_table_of_inputs_has_every_column_as_it_is_declared(generate: ModuleType) -> None:
    sections = rows_of(generate.inputs_page())
    assert list(sections) == list(system_names())
    for name, rows in sections.items():
        tables = find_system(name).problem.tables
        columns = {
            f"`{table.name}.{column}`": (table, column) for table in tables for column in table.columns
        }
        assert [key for key in rows if "." in key] == list(columns)
        for key, (table, column) in columns.items():
            unit, others, absent, _ = (cell.strip() for cell in rows[key])
            declared = table.columns[column]
            assert (absent == "refused") == table.columns[column].required
            asked = [declared.mistaken_for] if declared.mistaken_for else []
            assert re.findall("`([^`]+)`", others) == [*asked, *other_names(table, column)]
            assert bool(unit) == (unit_of(column)[1] is not None)
            if table.columns[column].default is not None and not declared.when_absent:
                assert float(absent) == table.columns[column].default


def test_the_other_names_of_a_column_are_read_as_it(generate: ModuleType) -> None:
    count = 0
    for name in system_names():
        for table in find_system(name).problem.tables:
            for column in table.columns:
                unit = unit_of(column)[1]
                for other in other_names(table, column):
                    inputs = other if unit is None else f"{other} ({unit.symbol})"
                    remainder = [required for required in table.required_columns if required != column]
                    match = match_columns(table, [*remainder, inputs], where=table.name)
                    assert match.names.get(column) == inputs, (name, table.name, inputs)
                    count += 1
    assert count > 20


def test_every_command_has_its_help(generate: ModuleType) -> None:
    page = generate.command_page()
    for words, command in generate.commands():
        assert f"## {' '.join(words)}\n" in page
        assert all(
            option in page for parameter in command.params for option in parameter.opts if option[0] == "-"
        )


def test_docstrings_become_markdown(generate: ModuleType) -> None:
    text = "\n".join(
        [
            r"Solve $x$.",
            "",
            r"$$\max x \quad\text{s.t.}\quad x \le 1,\quad",
            r"x \ge 0$$",
            "",
            "rate_mbps  offered rate, Mbit/s,",
            "           of each demand",
            "gap        relative gap",
            "",
            ">>> 1 + 1",
            "2",
        ]
    )
    assert generate.markdown(text).split("\n\n") == [
        "Solve $x$.",
        "$$\n\\max & x \\\\\n\\text{s.t.} & x \\le 1 \\\\\n& x \\ge 0\n$$",
        "- `rate_mbps`: offered rate, Mbit/s,\n  of each demand\n- `gap`: relative gap",
        "```pycon\n>>> 1 + 1\n2\n```",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [ROOT / "README.md", DOCS / "howto" / "python.md"], ids=lambda path: path.name
)
def test_the_python_of_a_page_runs(path: Path) -> None:
    result = blocks(path.read_text(encoding="utf-8"), "python")
    assert result
    evaluation = subprocess.run(
        [sys.executable, "-c", "\n".join(result)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert evaluation.returncode == 0, evaluation.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.exhaustive] if path.stem in LONG else [])
        for path in [ROOT / "README.md", DOCS / "start.md", *sorted((DOCS / "howto").glob("*.md"))]
    ],
)
def test_the_outputs_that_a_page_shows_are_those_of_its_commands(path: Path) -> None:
    """`python docs/outputs.py` brings them up to date."""
    result = subprocess.run(
        [sys.executable, str(DOCS / "outputs.py"), "--check", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_the_readme_states_the_measured_value_of_coordination() -> None:
    """Each figure of its section follows from the released measurements."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    designs, curves = measurement.load_release()
    rows = {(row["system"], row["design"]): row for row in designs.to_dict(orient="records")}
    share = {key: row["share"] for key, row in rows.items()}
    at_age = {
        (row["system"], row["design"], row["value"]): row["share"]
        for row in curves[curves["kind"] == "age"].to_dict(orient="records")
    }
    best = designs.groupby("system")["share"].max().astype(float)
    words = {8: "eight", 9: "nine", 10: "ten", 13: "thirteen"}
    multicluster, marketplace = rows["brokering", "multicluster"], rows["brokering", "marketplace"]
    reaction = designs[(designs["mechanism"] == "reaction") & (designs["system"] != "updates")]
    blind, local = rows["cdnrouting", "react_blind"], rows["traffic", "localflow"]
    live = [share["livevideo", name] for name in ("cdn", "cdn_1s", "distributed")]
    cpu = [rows["flowtables", name]["performance"] for name in ("least_specific", "microflows")]
    assert round(cpu[0] / cpu[1]) == 4
    assert rows["cdnrouting", "cdn_options"]["share_low"] > 0
    assert set(designs["draws"]) <= {21, 30}
    for phrase in (
        f"in {words[int((best >= 0.99).sum())]} of {words[len(best)]} systems",
        f"{best['livevideo']:.1%} in live video, {best['consolidation']:.0%} where machines are placed",
        f"{best['coflows']:.0%} for coflows",
        f"{best['circuitflows']:.0%} for TCP flows packet by packet, and {best['flowtables']:.0%} for",
        f"at most {reaction['share'].astype(float).max():.0%}, and {max(live):.0%} in live video",
        f"avoid {share['updates', 'decentral']:.0%} of the traffic",
        f"achieves {blind['share']:.0%} of the gain in the median of {blind['draws']} draws",
        f"and from {blind['share_low']:.0%} to {blind['share_high']:.0%}",
        f"it achieves {share['cdnrouting', 'cdn_options']:.0%}, and never loses",
        f"achieves {multicluster['share']:.0%} of that gain{measurement.describe_range(multicluster)}",
        f"and {marketplace['share']:.0%} with them{measurement.describe_range(marketplace)}",
        f"loses {-local['share']:.0%} in the median of {local['draws']} draws",
        f"half an hour old still achieves {at_age['brokering', 'best_lookup', 1800.0]:.0%}",
    ):
        assert phrase in text, phrase
    guide = " ".join((DOCS / "howto" / "coordinate.md").read_text(encoding="utf-8").split())
    assert f"between {blind['share_low']:.0%} and {blind['share_high']:.0%}" in guide
    assert at_age["traffic", "optimum", 900.0] < 0
    assert at_age["fairshare", "optimum", 600.0] < 0
    assert at_age["livevideo", "centralized", 40.0] < 0
    assert min(value for key, value in at_age.items() if key[:2] == ("livevideo", "hybrid")) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [pytest.param(name, marks=[] if name in DRAWN else pytest.mark.exhaustive) for name in system_names()],
)
def test_the_gallery_is_what_the_product_draws(system: str) -> None:
    """`python docs/gallery.py` brings it up to date."""
    result = subprocess.run(
        [sys.executable, str(DOCS / "gallery.py"), "--check", system],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_gallery_has_a_question_a_picture_and_a_command_for_each_system() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    sections = text.split("\n### ")[1:]
    systems = {find_system(name).label: find_system(name) for name in system_names()}
    assert {section.partition("\n")[0] for section in sections} == set(systems)
    for section in sections:
        system = systems[section.partition("\n")[0]]
        assert f"**{system.question}**" in section
        assert f"planner solve {system.name}/" in section
        assert (DOCS / "pictures" / "gallery" / f"{system.name}.svg").is_file()


def test_an_excerpt_may_leave_out_lines_anywhere() -> None:
    """Where dots stand for lines that are left out, also for the first and the last."""
    description = importlib.util.spec_from_file_location("docs_outputs", DOCS / "outputs.py")
    assert description is not None
    assert description.loader is not None
    outputs = sys.modules["docs_outputs"] = importlib.util.module_from_spec(description)
    description.loader.exec_module(outputs)
    lines = "one 1\ntwo 2\nthree 3\nfour 4\n"
    for text, now in [
        ("one 7\n...\n", "one 1\n...\n"),
        ("...\nfour 7\n", "...\nfour 4\n"),
        ("two 7\n...\nfour 7\n", "two 2\n...\nfour 4\n"),
    ]:
        assert outputs.excerpt(outputs.Shown(0, 0, text, "planner", False), lines) == now
    with pytest.raises(outputs.Differs, match="prints no line like 'five'"):
        outputs.excerpt(outputs.Shown(0, 0, "five\n...\n", "planner", False), lines)


class Links(HTMLParser):
    """Collects the links of a page, and the anchors that others may link to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)
                if tag != "a":
                    self.loaded.append(value)


def write_notebooks(folder: Path, *arguments: str) -> None:
    """Write pages of notebooks into a folder, by the command of the documentation."""
    command = [sys.executable, str(DOCS / "execute.py"), "--out", str(folder), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert result.returncode == 0, result.stderr[-3_000:]


def test_every_system_has_a_notebook() -> None:
    assert set(NOTEBOOKS) == {*system_names(), "coordination", "capacity_planning", *SHORT}


@pytest.mark.slow(minutes=0.5)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in EXECUTED else [pytest.mark.exhaustive]) for name in NOTEBOOKS],
)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    """It has pictures, and names no path of this machine."""
    write_notebooks(tmp_path, name)
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert (4 if name in SHORT else 7) <= len(blocks(text, "python")) <= 15
    assert "Plotly.newPlot" in text
    for position in (str(ROOT), str(Path.home()), tempfile.gettempdir()):
        assert f"{position}/" not in text


def test_notebook_files_are_those_of_their_sources() -> None:
    """`python docs/execute.py --files` brings them up to date."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import execute; from pathlib import Path\n"
    code += "for path in sorted(execute.SOURCES.glob('*.md')):\n"
    code += "    file = path.with_suffix('.ipynb')\n"
    code += "    assert file.read_text(encoding='utf-8') == execute.notebook_file(path), file\n"
    result = subprocess.run(
        [sys.executable, "-c", code, str(DOCS)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow(minutes=1)
@pytest.mark.skipif(not SPHINX.exists(), reason="`make docs` sets up Sphinx")
def test_the_site_builds_and_no_internal_link_is_broken(generate: ModuleType, tmp_path: Path) -> None:
    """Notebooks are shown without their outputs; other tests run them."""
    generate.main()
    write_notebooks(DOCS / "examples", "--without-outputs")
    site = tmp_path / "site"
    build = [
        str(SPHINX),
        "-q",
        "-W",
        "--keep-going",
        "-E",
        "-d",
        str(tmp_path / "trees"),
        str(DOCS),
        str(site),
    ]
    result = subprocess.run(build, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    pages = {path: Links() for path in site.rglob("*.html")}
    for path, links in pages.items():
        links.feed(path.read_text(encoding="utf-8"))
    assert {f"{name}.html" for name in system_names()} <= {path.name for path in pages}
    for path, links in pages.items():
        for link in links.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                assert link not in links.loaded, f"{path.name} loads {link} from another machine"
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            assert target.exists(), f"{path.name}: {link}"
            if address.fragment and target in pages:
                assert unquote(address.fragment) in pages[target].anchors, f"{path.name}: {link}"

    for query, page in SEARCHES.items():
        assert page in pages_with_title(site, query), query


def pages_with_title(site: Path, query: str) -> set[str]:
    """Return the pages whose headings have all words of a search, which the site lists first.

    Words that are in every text, such as "own", do not count.
    """
    words = re.search(
        r"stopwords = new Set\((\[.*?\])\)", (site / "_static/language_data.js").read_text("utf-8")
    )
    assert words is not None
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    rows = [index["titleterms"].get(word, []) for word in query.split() if word not in json.loads(words[1])]
    numbers = [{row} if isinstance(row, int) else set(row) for row in rows]
    return {index["docnames"][number] for number in set.intersection(*numbers)}


def shown_labels() -> set[str]:
    """Return the texts of the pages' sources, and the names of actions on elements of all systems."""
    texts = {
        node.value
        for path in DASHBOARD.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    kinds = [kind for name in system_names() for kind in find_system(name).problem.elements]
    return texts | {action.name for kind in kinds for action in kind.actions}


@pytest.mark.parametrize("page", GUIDES)
def test_each_label_of_the_guide_is_on_a_page(page: str) -> None:
    text = (DOCS / "howto" / f"{page}.md").read_text(encoding="utf-8")
    labels = {" ".join(label.split()) for label in LABEL.findall(text)}
    assert labels or page in ("through_time", "own_data")
    assert labels <= shown_labels()


@pytest.mark.slow(minutes=0.5)
def test_pictures_of_the_dashboard_show_the_verdicts_of_today() -> None:
    """By `python docs/dashboard_pictures.py --check`, which asks the question of each picture again."""
    command = [sys.executable, str(DOCS / "dashboard_pictures.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    shown = json.loads((DOCS / "pictures" / "dashboard" / "verdicts.json").read_text(encoding="utf-8"))
    assert shown


def test_each_promise_about_security_names_tests_that_exist() -> None:
    """Every row of the tables on the page on security names a test, and every test that it names is there."""
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    assert len(named) >= 20
    assert not sorted(name for name in named if not (ROOT / name).is_file())
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("|---")]
    promises = [row for row in rows if not row.startswith(("| surface |", "| reader |"))]
    assert len(promises) >= 25
    assert not [row for row in promises if "`tests/" not in row]
