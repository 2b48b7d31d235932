"""The kinds of hostile cases: each damages an input and returns a command, or asks the dashboard."""

from __future__ import annotations

import functools
import io
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
import pandas as pd
import tomli_w

from planner.contract.system import System
from planner.errors import PlannerError
from planner.io.layout import Layout
from planner.scenarios.catalogue import find_system, system_names
from tests import hostile
from tests.fuzzing.bases import SCENARIOS, bases, chosen_readers, documents, has_chosen_systems
from tests.fuzzing.crafted import OF_BYTES, craft_tables
from tests.fuzzing.faults import MAX_LINE, find_text_faults
from tests.models.flowrecords import exports
from tests.models.flowtables.problem import test_openflow
from tests.models.flowtables.problem import test_readers as test_classbench
from tests.models.flowtables.problem.evaluation import test_datapath
from tests.models.traffic.problem.readers import test_graphml, test_graphs, test_repetita, test_sndlib

OWN_FOLDERS: Final = {
    "analytics": ["analytics/own_data"],
    "brokering": ["brokering/own_data", "brokering/fig_3_7"],
    "capacity": ["capacity/own_data"],
    "cdnrouting": ["cdnrouting/own_data"],
    "coflows": ["coflows/own_data"],
    "membership": ["membership/own_data"],
    "multicast": ["multicast/own_data", "multicast/own_tree"],
    "livevideo": ["livevideo/sessions"],
    "queries": ["queries/own_data"],
    "rotors": ["rotors/own_data"],
    "consolidation": ["consolidation/own_data"],
    "contracts": ["contracts/own_data"],
    "fairshare": ["fairshare/own_data"],
    "topology": ["topology/own_data"],
    "flowtables": ["flowtables/own_data"],
    "geostore": ["geostore/own_data"],
    "updates": ["updates/diamond", "updates/repeater"],
}
"""Folders that shipped scenarios read."""
COFLOWS: Final = "4 3\n1 0 2 0 1 1 2:4.0\n2 50 1 3 2 3:9.0 0:1.0\n3 900 1 0 1 1:7\n"
FLOWS: Final = "start_us,source_rack,target_rack,bytes\n0,a,b,1000\n5,b,a,9000\n2500,a,c,100\n"
STEPS: Final = "step,source,target,rate_mbps\n0,a,b,1\n0,b,c,2\n1,a,b,3\n"
PREFIX_FILE: Final = "prefixes.csv"
PREFIXES: Final = "prefix,node\n" + "".join(f"{text},{node}\n" for text, node in exports.PREFIXES.items())
NETWORK: Final = {
    "links.csv": "tail,head,capacity_mbps\na,b,10\nb,c,10\nc,a,10\nb,a,10\n",
    "demands.csv": "source,target,rate_mbps\na,c,5\n",
}


WRITERS: Final[Mapping[str, Callable[[pd.DataFrame, io.BytesIO], Any]]] = {
    "feather": lambda frame, file: frame.to_feather(file),
    "xlsx": lambda frame, file: frame.to_excel(file, index=False),
    "json": lambda frame, file: frame.to_json(file, orient="records"),
    "csv.gz": lambda frame, file: frame.to_csv(file, index=False, compression="gzip"),
    "csv": lambda frame, file: frame.to_csv(file, index=False, sep=";", decimal=",", encoding="utf-16"),
}


def write_other_format(frame: pd.DataFrame, raw: bytes) -> tuple[bytes, str]:
    """Return the content of a file and its ending: the CSV file given, or a third of them in another format.

    The choice depends on the content, so that cases draw as they did when there were fewer formats.
    """
    draw = random.Random(raw)
    if draw.random() > 1 / 3:
        return raw, "csv"
    suffix = draw.choice(sorted(WRITERS))
    content = io.BytesIO()
    try:
        WRITERS[suffix](frame, content)
    except Exception:  # a library cannot write every mixture
        return raw, "csv"
    return content.getvalue(), suffix


def write_tables(draw: random.Random, tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write tables, a few of them damaged, in any format."""
    folder.mkdir(exist_ok=True)
    damaged = set(draw.sample(sorted(tables), min(len(tables), draw.choice([1, 1, 2]))))
    for name, inputs in tables.items():
        frame = hostile.damage_table(draw, inputs) if name in damaged else inputs
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
        if suffix == "csv":
            raw, suffix = write_other_format(frame, raw)
        if name in damaged and draw.random() < 0.15:
            raw = hostile.damage_bytes(draw, raw)
        (folder / f"{name}.{suffix}").write_bytes(raw)


def scenario_of_tables(system: System) -> str:
    return tomli_w.dumps({"system": system.name, "problem": {"source": "tables", "path": "."}})


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


def of_crafted(draw: random.Random, folder: Path) -> Command:
    """Give a reader a file that was made to stop it; check the scenario that reads it."""
    if not chosen_readers() and (has_chosen_systems() or draw.random() < 0.7):
        base = draw.choice(bases())
        for name, content in craft_tables(draw, base.tables).items():
            (folder / name).write_bytes(content)
        (folder / "s.toml").write_text(scenario_of_tables(base.system))
        return ["check", "s.toml"]
    return _read_file(draw, folder, draw.choice(OF_BYTES))


def of_files(draw: random.Random, folder: Path) -> Command:
    """Damage the file of a reader; check the scenario that reads it."""
    return _read_file(draw, folder, hostile.damage_bytes)


def _read_file(draw: random.Random, folder: Path, damage: Callable[[random.Random, bytes], bytes]) -> Command:
    name, content, problem = draw.choice([file for file in _files() if _is_chosen(file[2])])
    for other, text in NETWORK.items():
        (folder / other).write_text(text)
    if draw.random() < 0.95:
        content = damage(draw, content)
    (folder / name).write_bytes(content)
    document = {"system": problem.pop("system"), "problem": {**problem, "path": name}}
    if document["problem"].get("prefixes") == PREFIX_FILE:
        (folder / PREFIX_FILE).write_text(PREFIXES)
    if name == "net.graph":
        demands = test_repetita.DEMANDS.encode()
        (folder / "net.demands").write_bytes(
            hostile.damage_bytes(draw, demands) if draw.random() < 0.5 else demands
        )
    if name == "lab.gml":
        matrix = io.BytesIO()
        np.save(matrix, test_graphs.MATRIX)
        (folder / "matrix.npy").write_bytes(hostile.damage_bytes(draw, matrix.getvalue()))
    (folder / "s.toml").write_text(tomli_w.dumps(document))
    if document["problem"]["source"] in (
        "matrices",
        "coflow_windows",
        "flow_windows",
        "flow_record_series",
        "sessions",
    ):
        return ["roll", "s.toml", "--out", "out", "--time-limit", 1]
    return ["check", "s.toml"]


def _is_chosen(problem: Mapping[str, Any]) -> bool:
    readers = chosen_readers()
    return not readers or f"{problem['system']}/{problem['source']}" in readers


def reader_names() -> list[str]:
    """Return the readers of single files that hostile cases know, such as `traffic/sndlib`."""
    return sorted({f"{problem['system']}/{problem['source']}" for _, _, problem in _files()})


def _files() -> list[tuple[str, bytes, dict[str, Any]]]:
    matrix = np.array([[0.0, 3.0, 1e6], [5.0, 0.0, 2.0], [1.0, 1.0, 0.0]])
    text, binary = io.BytesIO(), io.BytesIO()
    np.savetxt(text, matrix, delimiter=",")
    np.save(binary, matrix)
    zoo = test_graphml.document(test_graphml.ZOO).encode()
    edges = b"source_rack,target_rack,bits\na,b,1000\nb,a,9000\n"
    circuits = {"system": "circuits"}
    traffic = {"system": "traffic"}
    switch = {"system": "flowtables", "connections": 20}
    steps = {**traffic, "source": "matrices", "network": "s_net.toml"}
    result: list[tuple[str, bytes, dict[str, Any]]] = [
        ("net.graphml", zoo, {**traffic, "source": "graphml", "total_mbps": 100.0}),
        ("net.gml", test_graphs.GML.encode(), {**traffic, "source": "graph", "total_mbps": 100.0}),
        ("lab.gml", test_graphs.GML.encode(), {**traffic, "source": "graph", "matrix": "matrix.npy"}),
        ("net.gexf", test_graphs.GEXF.encode(), {**traffic, "source": "graph", "total_mbps": 100.0}),
        ("net.dot", test_graphs.DOT.encode(), {**traffic, "source": "graph", "total_mbps": 100.0}),
        ("net.json", test_graphs.node_link().encode(), {**traffic, "source": "graph", "total_mbps": 100.0}),
        ("lab.yml", test_graphs.CONTAINERLAB.encode(), {**traffic, "source": "graph", "total_mbps": 100.0}),
        ("net.n2p", test_graphs.N2P.encode(), {**traffic, "source": "net2plan"}),
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
        ("rules.txt", test_openflow.DUMP.encode(), {**switch, "source": "openflow"}),
        ("dump.txt", test_datapath.LINES.encode(), {"system": "flowtables", "source": "datapath"}),
        ("filters.txt", test_classbench.FILTERS.encode(), {**switch, "source": "classbench"}),
    ]
    packets = [(ms, flow, 100) for flow in exports.FLOWS for ms in (0, 10)]
    records = {"source": "flow_records", "prefixes": PREFIX_FILE, "sampling": 1}
    series = {**traffic, **records, "source": "flow_record_series", "network": "."}
    captures = {"c.pcap": exports.pcap(packets), "c.pcapng": exports.pcapng(packets)}
    texts = {name: write(exports.FLOWS) for name, write in exports.WRITERS.values()}
    for file, content in {**texts, **captures}.items():
        result.append((file, content, {**traffic, **records, "network": "."}))
        result.append((file, content, {**circuits, **records}))
    return [*result, ("day.csv", exports.nfdump_old(), series)]


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
    item, two, three = words
    commands: list[Command] = [
        ["list", item],
        ["solve", item],
        ["solve", "s.toml", "--design", item],
        ["check", "s.toml", "--set", f"{item}={two}"],
        ["check", "s.toml", "--set", f"problem.{item}={two}"],
        ["check", "s.toml", "--plan", item],
        ["compare", "s.toml", "--designs", f"{item},{two}"],
        ["generate", item, "--out", "out"],
        ["generate", "traffic", "--preset", item, "--out", "out"],
        ["generate", "traffic", "--set", f"{draw.choice(['k', 'pairs', item])}={two}", "--out", "out"],
        ["sweep", "s.toml", "--set", f"{item}={two},{three}", "--out", "store", "--dry-run"],
        ["runs", item],
        ["reproduce", item],
        ["recipes", "--resources", item, "--separation", two],
        ["explain", "s.toml", "--with", f"{item}={two}", "--previous", three],
        ["simulate", "s.toml", "--set", f"simulation.{item}={two}"],
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
    item, two = str(hostile.value(draw)), str(hostile.value(draw))
    operator = draw.choice(["=", "!=", "<", ">=", "~", "in", "is", ""])
    joined = draw.choice(["and", "or", ")", "(", ""])
    filters: Command = [
        "--where",
        f"{draw.choice(['system', 'gap', item])} {operator} {two} {joined} gap < {item}",
    ]
    columns: Command = ["--columns", draw.choice(["all", "system,gap", item])]
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
                        digest=f"{index:016x}", scenario="s", label="d", system="traffic", design="ecmp",
                        mechanism="none", status="optimal", exit_code=0, gap=index / 10,
                        metrics={"delivered_mbps": 1.0 * index}, settings={"problem.scale": index},
                        messages=[("reason", "none")],
                    )
                    for index in range(20)
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
        return find_text_faults(str(error)[:MAX_LINE])
    return []


def _compared_systems(system: System, content: bytes) -> list[str]:
    """Return the systems that an upload is compared with: its own and two others, one time in ten all.

    Comparing with all takes most of the time of an upload. The choice depends on the content, so that cases
    draw as they did before.
    """
    draw = random.Random(content)
    names = system_names()
    if draw.random() < 0.1:
        return names
    others = draw.sample(names, 2)
    return [name for name in names if name == system.name or name in others]


def of_uploads(draw: random.Random, folder: Path) -> list[str]:
    """Give damaged tables under hostile names to the page "Your data"; return what is wrong with it."""
    from planner_dashboard.own_data import intake, tasks

    base = draw.choice(bases())
    files = []
    for name, inputs in base.tables.items():
        frame = hostile.damage_table(draw, inputs) if draw.random() < 0.4 else inputs
        content = frame.to_csv(index=False).encode("utf-8", "surrogatepass")
        if draw.random() < 0.2:
            content = hostile.damage_bytes(draw, content)
        file = f"{name}.csv" if draw.random() < 0.8 else draw.choice(hostile.TEXTS) + ".csv"
        files.append(intake.GivenFile(name=file, content=content))
    lines: list[str] = []
    content = b"".join(file.content for file in files)
    try:
        with mock.patch.object(tasks, "system_names", return_value=_compared_systems(base.system, content)):
            taken = tasks.take_files(files, folder)
        lines += [*taken.faults, *taken.notes]
        reading = taken.recognition.reading(base.system.name)
        pairs = zip(taken.sheets, reading.choices, strict=True) if reading else ()
        selected = {choice.table: (sheet, Layout()) for sheet, choice in pairs if choice.table}
        read = tasks.read_sheets(base.system.name, selected)
        lines += [line for share in (*read.notes.values(), *read.faults.values()) for line in share]
        lines += tasks.check_tables(base.system.name, read.frames, {}, folder).faults
    except PlannerError as error:
        lines += str(error).splitlines()
    return find_text_faults("\n".join(lines))


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
