"""Runs hostile cases against planner in a process of its own, and reports every crash, leak and escape.

A case is a number: it seeds everything that the case draws, so that each can be repeated alone with
`python -m tests.fuzzing NUMBER...`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import tomli_w

from planner.contract.design import Design
from planner.contract.parameters import parameters_of
from planner.contract.system import System
from planner.errors import PlannerError
from planner.io.table_files import find_tables, read_tables
from planner.options import Options
from planner.runs.run import evaluate
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Entry
from planner.scenarios.shipped import scenario_names
from tests import hostile
from tests.commands import planner
from tests.models.traffic.problem.readers import test_graphml, test_repetita, test_sndlib

CODES: Final = (0, 1, 2, 3, 4, 5, 6)
"""Exit codes that a user can act on; 70 is a fault of planner."""
MAX_LINES: Final = 60
MAX_LINE: Final = 2_000
MAX_OUTPUT: Final = 5_000
MAX_CPU_S: Final = 30.0
"""CPU time of a command, which may compile kernels."""
MEMORY_MB: Final = 4_096
SCENARIOS: Final = Path(__file__).parents[1] / "data" / "scenarios"
SMALL: Final = {"brokering": "brokering/own_data", "multicast": "multicast/own_tree"}
"""Shipped tables of systems that have a large sample, or one with few of the tables."""
OWN_FOLDERS: Final = {
    "brokering": ["brokering/own_data", "brokering/fig_3_7"],
    "multicast": ["multicast/own_data", "multicast/own_tree"],
    "livevideo": ["livevideo/sessions"],
}
"""Folders that shipped scenarios read."""
COFLOWS: Final = "4 3\n1 0 2 0 1 1 2:4.0\n2 50 1 3 2 3:9.0 0:1.0\n3 900 1 0 1 1:7\n"
FLOWS: Final = "start_us,source_rack,target_rack,bytes\n0,a,b,1000\n5,b,a,9000\n2500,a,c,100\n"
STEPS: Final = "step,source,target,rate_mbps\n0,a,b,1\n0,b,c,2\n1,a,b,3\n"
NETWORK: Final = {
    "links.csv": "tail,head,capacity_mbps\na,b,10\nb,c,10\nc,a,10\nb,a,10\n",
    "demands.csv": "source,target,rate_mbps\na,c,5\n",
}


class Sandbox:
    """A folder for each case within one that no case may touch.

    Writes are seen by an audit hook, and those of libraries that Python does not see by the folder's state.
    """

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="planner-fuzz-")).resolve()
        self.case = self.root / "case"
        self.escapes: list[str] = []
        self._is_watching = False
        self.temp = self.root / "temp"
        self.temp.mkdir()
        tempfile.tempdir = str(self.temp)
        for name in ("canary.txt", "plan/flows.csv", "plan/flows.parquet", "x/links.csv"):
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("untouched")
        self._allowed = (
            str(self.case),
            str(self.temp),
            os.environ.get("NUMBA_CACHE_DIR") or "/nonexistent",
            os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        )
        sys.addaudithook(self._audit)

    def __enter__(self) -> Path:
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir()
        os.chdir(self.case)
        self.escapes = []
        self._before = self._state()
        self._is_watching = True
        return self.case

    def __exit__(self, *_: object) -> None:
        self._is_watching = False
        os.chdir(self.root)
        if self._state() != self._before:
            self.escapes.append("files beside the folder asked for have changed")

    def _state(self) -> list[tuple[str, int, int]]:
        found = []
        for folder, folders, names in os.walk(self.root):
            if Path(folder) == self.root:
                folders[:] = [name for name in folders if name not in ("case", "temp")]
            for name in names:
                path = Path(folder, name)
                status = path.stat()
                found.append((str(path), status.st_size, status.st_mtime_ns))
        return sorted(found)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_watching or event not in WRITES:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else False
            if not (writes or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))):
                return
            paths = [path]
        else:
            paths = [one for one in arguments[:2] if isinstance(one, str | bytes | os.PathLike)]
        for one in paths:
            if isinstance(one, int):
                continue
            text = os.fsdecode(one)
            if "\0" in text or "__pycache__" in text or text == os.devnull:
                continue
            full = os.path.realpath(text)
            if not any(full == folder or full.startswith(folder + os.sep) for folder in self._allowed):
                self.escapes.append(f"{event} {full[:200]}")


WRITES: Final = frozenset(
    {
        *("open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"),
        *("shutil.rmtree", "os.chmod"),
    }
)


# --- bases that are damaged ---------------------------------------------------------------


OPTIONS: Final = Options(time_limit_s=2.0, seed=1, threads=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Base:
    """A system, and a tiny problem with as many tables as there are."""

    system: System
    problem: Any
    tables: Mapping[str, pd.DataFrame]

    @functools.cache  # noqa: B019 - bases last as long as the process
    def plan(self, design: Design[Any, Any]) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a design's plan on the tiny problem; none where it has no plan."""
        with contextlib.suppress(PlannerError):
            entry = Entry(label=design.name, design=design)
            run = evaluate(self.system, self.problem, entry, options=OPTIONS)
            if run.plan is not None:
                tables: Mapping[str, pd.DataFrame] = run.plan.to_tables()
                return tables
        return {}

    def draw_plan(self, draw: random.Random) -> Mapping[str, pd.DataFrame]:
        """Return the tables of the plan of one of its designs."""
        for design in draw.sample(self.system.designs, len(self.system.designs)):
            if tables := self.plan(design):
                return tables
        raise AssertionError(f"no design of {self.system.name} has a plan")


@functools.cache
def bases() -> tuple[Base, ...]:
    """Return a base of each system."""
    return tuple(map(_base, map(find_system, system_names())))


def _base(system: System) -> Base:
    kind = system.problem
    if system.name in SMALL:
        found = find_tables(kind.tables, SCENARIOS / SMALL[system.name], kind.optional_tables)
        problem = kind.from_tables(read_tables(kind.tables, found))
    else:
        assert kind.sample is not None
        problem = kind.sample()
    return Base(system=system, problem=problem, tables=problem.to_tables())


@functools.cache
def documents() -> list[dict[str, Any]]:
    """Return scenarios of small problems with every preset and every design."""
    import tomllib

    brokering = {"clients": 200, "places": 20, "city_cdns": 3, "windows": 2}
    circuits = {"racks": 4, "horizon_us": 20_000.0, "writers": 4, "file_mb": 4.0}
    multicast = {"k": 4, "tenants": 2, "groups": 20, "largest_tenant": 12, "events": 5}
    livevideo = {"videos": 20, "edges": 6, "sources": 2, "reflectors": 2, "viewers": 50.0, "games": 1}
    traffic = {"tors": 4, "aggregations": 2, "intermediates": 2, "hosts_per_tor": 2, "pairs": 10}
    small: dict[str, Any] = {**brokering, **circuits, **multicast, **livevideo, **traffic}
    found = []
    for base in bases():
        system = base.system
        designs = {design.name: {} for design in system.designs}
        for name, make in system.problem.presets.items():
            given = {key: small[key] for key in parameters_of(make) if key in small}
            problem = {"source": "generate", "preset": name, **given}
            found.append({"system": system.name, "problem": problem, "designs": designs})
    for name in scenario_names():
        document = tomllib.loads((SCENARIOS / f"{name}.toml").read_text())
        problem = document["problem"]
        if problem.get("source") == "generate":
            makers = find_system(document["system"]).problem.presets
            known = parameters_of(makers[problem["preset"]])
            problem |= {key: size for key, size in small.items() if key in known}
        elif problem.get("source") in ("topohub", "day"):
            continue
        found.append(document)
    return found


def write_tables(draw: random.Random, tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write tables, a few of them damaged, as CSV or Parquet."""
    folder.mkdir(exist_ok=True)
    damaged = set(draw.sample(sorted(tables), min(len(tables), draw.choice([1, 1, 2]))))
    for name, given in tables.items():
        frame = hostile.damage_table(draw, given) if name in damaged else given
        content = io.BytesIO()
        suffix = "csv"
        if draw.random() < 0.25:
            suffix = "parquet"
            try:
                frame.to_parquet(content, index=False)
            except Exception:  # pyarrow cannot write every mixture
                content, suffix = io.BytesIO(), "csv"
        if suffix == "csv":
            content.write(frame.to_csv(index=False).encode("utf-8", "surrogatepass"))
        raw = content.getvalue()
        if name in damaged and draw.random() < 0.15:
            raw = hostile.damage_bytes(draw, raw)
        (folder / f"{name}.{suffix}").write_bytes(raw)


def scenario_of_tables(system: System) -> str:
    return tomli_w.dumps({"system": system.name, "problem": {"source": "tables", "path": "."}})


# --- kinds of cases -----------------------------------------------------------------------

Command = list[object]


def of_tables(draw: random.Random, folder: Path) -> Command:
    """Damage the tables of a problem; check or solve it."""
    base = draw.choice(bases())
    write_tables(draw, base.tables, folder)
    (folder / "s.toml").write_text(scenario_of_tables(base.system))
    if draw.random() < 0.6:
        return ["check", "s.toml"]
    design = draw.choice(base.system.designs).name
    command: Command = ["solve", "s.toml", "--design", design, "--time-limit", 1]
    return command + (["--out", "out"] if draw.random() < 0.3 else [])


def of_files(draw: random.Random, folder: Path) -> Command:
    """Damage the file of a reader; check the scenario that reads it."""
    name, content, problem = draw.choice(_files())
    for other, text in NETWORK.items():
        (folder / other).write_text(text)
    if draw.random() < 0.95:
        content = hostile.damage_bytes(draw, content)
    (folder / name).write_bytes(content)
    document = {"system": problem.pop("system"), "problem": {**problem, "path": name}}
    if name == "net.graph":
        demands = test_repetita.DEMANDS.encode()
        (folder / "net.demands").write_bytes(
            hostile.damage_bytes(draw, demands) if draw.random() < 0.5 else demands
        )
    (folder / "s.toml").write_text(tomli_w.dumps(document))
    if document["problem"]["source"] in ("matrices", "coflow_windows", "flow_windows", "sessions"):
        return ["roll", "s.toml", "--out", "out", "--time-limit", 1]
    return ["check", "s.toml"]


def _files() -> list[tuple[str, bytes, dict[str, Any]]]:
    matrix = np.array([[0.0, 3.0, 1e6], [5.0, 0.0, 2.0], [1.0, 1.0, 0.0]])
    text, binary = io.BytesIO(), io.BytesIO()
    np.savetxt(text, matrix, delimiter=",")
    np.save(binary, matrix)
    zoo = test_graphml.document(test_graphml.ZOO).encode()
    edges = b"source_rack,target_rack,bits\na,b,1000\nb,a,9000\n"
    circuits = {"system": "circuits"}
    traffic = {"system": "traffic"}
    steps = {**traffic, "source": "matrices", "network": "s_net.toml"}
    found: list[tuple[str, bytes, dict[str, Any]]] = [
        ("net.graphml", zoo, {**traffic, "source": "graphml", "total_mbps": 100.0}),
        ("net.xml", test_sndlib.XML.encode(), {**traffic, "source": "sndlib"}),
        ("net.txt", test_sndlib.TEXT.encode(), {**traffic, "source": "sndlib"}),
        ("net.graph", test_repetita.GRAPH.encode(), {**traffic, "source": "repetita"}),
        ("steps.csv", STEPS.encode(), {**steps, "network": "."}),
        ("m.csv", text.getvalue(), {**circuits, "source": "matrix"}),
        ("m.npy", binary.getvalue(), {**circuits, "source": "matrix"}),
        ("edges.csv", edges, {**circuits, "source": "edges"}),
        ("flows.csv", FLOWS.encode(), {**circuits, "source": "flows"}),
        ("flows.csv", FLOWS.encode(), {**circuits, "source": "flow_windows"}),
        ("trace.txt", COFLOWS.encode(), {**circuits, "source": "coflow"}),
        ("trace.txt", COFLOWS.encode(), {**circuits, "source": "coflow_windows"}),
    ]
    return found


def of_scenarios(draw: random.Random, folder: Path) -> Command:
    """Damage a scenario's document or text; check it, or solve or export a design of it."""
    document = draw.choice(documents())
    text = ""
    if draw.random() < 0.8:
        document = hostile.damage_document(draw, document)
    try:
        text = tomli_w.dumps(document)
    except (TypeError, ValueError, OverflowError):  # None is no value of TOML
        text = json.dumps(document, default=str).replace(":", " =")
    content = text.encode("utf-8", "surrogatepass")
    if draw.random() < 0.3:
        content = hostile.damage_bytes(draw, content)
    for name in OWN_FOLDERS.get(str(document.get("system")), ()):
        shutil.copytree(SCENARIOS / name, folder / Path(name).name)
    (folder / "s.toml").write_bytes(content)
    kind = draw.random()
    changes: Command = []
    if draw.random() < 0.3:
        key = draw.choice(
            ["problem.scale", "problem.seed", "designs.x.y", "solver.gap", draw.choice(hostile.TEXTS)]
        )
        changes = ["--set", f"{key}={hostile.value(draw)}"]
    if kind < 0.75:
        return ["check", "s.toml", *changes]
    designs = list(document.get("designs") or {}) if isinstance(document.get("designs"), dict) else []
    design: Command = ["--design", draw.choice(designs)] if designs and draw.random() < 0.9 else []
    if kind < 0.85:
        return ["export", "s.toml", *design, *changes, "--out", draw.choice(["m.lp", "m.mps", "x/m.lp", "m"])]
    out: Command = ["--out", "out"] if draw.random() < 0.5 else ["--html", "r.html"]
    return ["solve", "s.toml", *design, *changes, "--time-limit", 1, *out]


def of_plans(draw: random.Random, folder: Path) -> Command:
    """Damage the tables of a plan; check it."""
    base = draw.choice(bases())
    for name, frame in base.tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    (folder / "s.toml").write_text(scenario_of_tables(base.system))
    write_tables(draw, base.draw_plan(draw), folder / "plan")
    return ["check", "s.toml", "--plan", "plan", *draw.choice([[], ["--json"]])]


def of_words(draw: random.Random, folder: Path) -> Command:
    """Call commands with hostile words."""
    for name, text in NETWORK.items():
        (folder / name).write_text(text)
    (folder / "s.toml").write_text(scenario_of_tables(find_system("traffic")))
    words = [str(hostile.value(draw)) for _ in range(3)]
    one, two, three = words
    commands: list[Command] = [
        ["list", one],
        ["solve", one],
        ["solve", "s.toml", "--design", one],
        ["check", "s.toml", "--set", f"{one}={two}"],
        ["check", "s.toml", "--set", f"problem.{one}={two}"],
        ["check", "s.toml", "--plan", one],
        ["compare", "s.toml", "--designs", f"{one},{two}"],
        ["generate", one, "--out", "out"],
        ["generate", "traffic", "--preset", one, "--out", "out"],
        ["generate", "traffic", "--set", f"{draw.choice(['k', 'pairs', one])}={two}", "--out", "out"],
        ["sweep", "s.toml", "--set", f"{one}={two},{three}", "--out", "store", "--dry-run"],
        ["runs", one],
        ["reproduce", one],
        ["recipes", "--resources", one, "--separation", two],
        ["explain", "s.toml", "--with", f"{one}={two}", "--previous", three],
        ["simulate", "s.toml", "--set", f"simulation.{one}={two}"],
    ]
    return draw.choice(commands)


def of_stores(draw: random.Random, folder: Path) -> Command:
    """Filter a store by hostile words, or damage its file."""
    store = folder / "store"
    store.mkdir()
    content = _store()
    if draw.random() < 0.5:
        content = hostile.damage_bytes(draw, content)
    (store / "runs.sqlite").write_bytes(content)
    one, two = str(hostile.value(draw)), str(hostile.value(draw))
    operator = draw.choice(["=", "!=", "<", ">=", "~", "in", "is", ""])
    joined = draw.choice(["and", "or", ")", "(", ""])
    filters: Command = [
        "--where",
        f"{draw.choice(['system', 'gap', one])} {operator} {two} {joined} gap < {one}",
    ]
    columns: Command = ["--columns", draw.choice(["all", "system,gap", one])]
    sort: Command = ["--sort", draw.choice(["gap", "-gap", two])]
    options = draw.choice([[], filters, columns, sort, [*columns, *sort], ["--csv", "runs.csv"], ["--json"]])
    return ["runs", "store", *options]


@functools.cache
def _store() -> bytes:
    """Return the file of a small store."""
    from planner.store.record import Record
    from planner.store.store import Store

    with tempfile.TemporaryDirectory() as folder:
        with Store(folder, write=True) as store:
            store.add(
                [
                    Record(
                        digest=f"{place:016x}", scenario="s", label="d", system="traffic", design="ecmp",
                        mechanism="none", status="optimal", exit_code=0, gap=place / 10,
                        metrics={"delivered_mbps": 1.0 * place}, settings={"problem.scale": place},
                        messages=[("reason", "none")],
                    )
                    for place in range(20)
                ]
            )  # fmt: skip
        return (Path(folder) / "runs.sqlite").read_bytes()


def of_addresses(draw: random.Random, folder: Path) -> list[str]:
    """Ask the dashboard by a hostile address; return what is wrong with its answer."""
    from planner_dashboard.question import UPLOADED, Question, form_fields, unchanged_scenario

    names = ["traffic/abilene", "multicast/own_tree", "brokering/own_data", "circuits/own_data", UPLOADED]
    query: dict[str, list[str]] = {
        "scenario": [draw.choice(names) if draw.random() < 0.9 else str(hostile.value(draw))]
    }
    if draw.random() < 0.4:
        query["upload"] = [draw.choice(["0" * 16, "../x", str(folder), "/etc", str(hostile.value(draw))])]
    if draw.random() < 0.4:
        query["designs"] = [draw.choice(["ecmp", "optimum,ecmp", ",,", str(hostile.value(draw))])]
    keys = [
        "problem.scale",
        "problem.fail_links",
        "solver.gap",
        "solver.time_limit_s",
        "problem.path",
        "problem.source",
    ]
    query["set"] = [
        f"{draw.choice([*keys, str(hostile.value(draw))])}={hostile.value(draw)}"
        for _ in range(draw.randrange(3))
    ]
    try:
        question = Question.from_query(query)
        if question is None:
            return []
        scenario = unchanged_scenario(
            question.source(folder / question.upload if question.upload else folder)
        )
        question.check(form_fields(scenario))
        loaded = question.load(folder)
        if any(key.rpartition(".")[2] in ("path", "source") for key in question.changes):
            return ["an address names a file"]
        question.command(), question.python(), question.to_query()
        loaded.to_toml(folder)
    except PlannerError as error:
        return _faults_of_text(str(error)[:MAX_LINE])
    return []


def of_uploads(draw: random.Random, folder: Path) -> list[str]:
    """Upload damaged tables under hostile names; return what is wrong with the answer."""
    from planner_dashboard import uploads

    base = draw.choice(bases())
    files = []
    for name, given in base.tables.items():
        frame = hostile.damage_table(draw, given) if draw.random() < 0.4 else given
        content = frame.to_csv(index=False).encode("utf-8", "surrogatepass")
        if draw.random() < 0.2:
            content = hostile.damage_bytes(draw, content)
        file = f"{name}.csv" if draw.random() < 0.8 else draw.choice(hostile.TEXTS) + ".csv"
        table = name if draw.random() < 0.9 else draw.choice(hostile.TEXTS)
        files.append(uploads.UploadedFile(name=file, table=table, content=content))
    try:
        uploads.store_tables(base.system.name, files, folder)
    except PlannerError as error:
        uploads.faulty_rows(str(error).splitlines(), files)
        return _faults_of_text(str(error))
    return []


KINDS: Final[Mapping[str, tuple[int, Callable[[random.Random, Path], Any]]]] = {
    "tables": (25, of_tables),
    "files": (17, of_files),
    "scenarios": (20, of_scenarios),
    "plans": (15, of_plans),
    "words": (6, of_words),
    "stores": (4, of_stores),
    "addresses": (10, of_addresses),
    "uploads": (3, of_uploads),
}


# --- running ------------------------------------------------------------------------------

_sandbox: Sandbox | None = None


def run_case(number: int) -> list[str]:
    """Run a case; return what planner did wrong, one line each."""
    global _sandbox
    if _sandbox is None:
        bases(), documents()
        _sandbox = Sandbox()
        _limit_memory()
    draw = random.Random(number)
    (kind,) = draw.choices(list(KINDS), [weight for weight, _ in KINDS.values()])
    faults: list[str] = []
    command: Any = None
    seconds = 0.0
    with _sandbox as folder:
        before = dict(np.geterr())
        try:
            command = KINDS[kind][1](draw, folder)
            if kind in ("addresses", "uploads"):
                faults += command
            else:
                start = time.process_time()
                done = planner(*command)
                seconds = time.process_time() - start
                if done.code not in CODES:
                    faults.append(f"exit code {done.code}: {done.err.strip()[-300:]}")
                faults += _faults_on_terminal(done.out) + _faults_on_terminal(done.err)
                faults += _faults_of_text(done.out, most=MAX_OUTPUT) + _faults_of_text(done.err)
                if any(_sandbox.temp.iterdir()):
                    faults.append(f"leaves temporary files: {sorted(_sandbox.temp.iterdir())[:3]}")
                    shutil.rmtree(_sandbox.temp)
                    _sandbox.temp.mkdir()
        except BaseException:
            faults.append("raises " + traceback.format_exc()[-1500:])
        if dict(np.geterr()) != before:
            faults.append("NumPy's error state is changed")
    if seconds > MAX_CPU_S:
        faults.append(f"takes {seconds:.0f} s of CPU time")
    faults += _sandbox.escapes
    words = "" if kind in ("addresses", "uploads") else " ".join(str(word)[:80] for word in command or ())
    return [f"case {number} ({kind}: {words!r}): {fault}" for fault in faults]


def _faults_on_terminal(text: str) -> list[str]:
    """Return the control characters that a text would send to a terminal."""
    found = sorted({letter for letter in text if unicodedata.category(letter) == "Cc" and letter != "\n"})
    return [f"control characters {found} in {text[:200]!r}"] if found else []


def _faults_of_text(text: str, most: int = MAX_LINES) -> list[str]:
    """Return what no message may have: tracebacks, warnings of libraries, pages of lines, endless lines."""
    faults = []
    if "Traceback (most recent call last)" in text or "Warning:" in text:
        faults.append(f"a traceback or warning: {text[-400:]!r}")
    lines = text.splitlines()
    if len(lines) > most:
        faults.append(f"{len(lines)} lines")
    longest = max(lines, key=len, default="")
    if len(longest) > MAX_LINE and most == MAX_LINES:
        faults.append(f"a line of {len(longest)} letters: {longest[:100]!r}")
    return faults


def _limit_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MB << 20, MEMORY_MB << 20))


def main() -> None:
    """Run the cases of the command line, each in this process, with the time it takes."""
    for text in sys.argv[1:]:
        first, _, last = text.partition("-")
        for number in range(int(first), int(last or first) + 1):
            start = time.perf_counter()
            faults = run_case(number)
            sys.__stdout__.write("".join(f"{fault}\n" for fault in faults) or f"{number} ")
            if time.perf_counter() - start > 3:
                sys.__stdout__.write(f"case {number}: {time.perf_counter() - start:.1f} s\n")
            sys.__stdout__.flush()


if __name__ == "__main__":
    main()
