"""Rules of OpenFlow, read back: each header meets the rules of the plan, is counted and sent as it says."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowtables.problem.fields import WITH_PORTS, make_layout
from planner_models.flowtables.problem.openflow import read_rules
from planner_models.queries import SYSTEM
from planner_models.queries.plan.emulation import Table, read_tables
from planner_models.queries.plan.methods import AHEAD, METHODS
from planner_models.queries.plan.openflow_rules import MOST_QUERIES, write_rules
from planner_models.queries.plan.plan import Answers, from_tables, make_plan, read_methods
from planner_models.queries.plan.usage import SwitchUse
from planner_models.queries.problem.generators import frenetic, small, tabulate_queries
from planner_models.queries.problem.problem import Monitoring
from tests.models.flowtables.open_vswitch import BRIDGE, IS_THERE, find_program, start_switch
from tests.models.queries.random_problems import draw_problem

PROTOCOL = pd.DataFrame([("ip_proto", 8, "l3", 0)], columns=["field", "bits", "stage", "prefix"])


class Hit(NamedTuple):
    """What rules do with a packet: bits of cookies and metadata, and actions of the last table."""

    cookie: int
    marks: int
    actions: tuple[str, ...]


class Reader:
    """A switch that knows nothing but its file."""

    def __init__(self, text: str) -> None:
        rules, fields = read_rules(text, "rules")
        self.layout = make_layout(fields, with_registers=True)
        lines = text.splitlines()
        self.rules: dict[int, list[tuple[int, int, int, int, str]]] = {}
        for line, row in zip(rules.index, rules.itertuples(index=False), strict=True):
            cookie = re.match(r"cookie=(\w+)", lines[line])
            number = int(cookie[1], 16) if cookie else 0
            [(value, mask)] = self.layout.parse(row.match)
            entry = (int(row.priority), value, mask, number, row.action)
            self.rules.setdefault(int(row.table), []).append(entry)

    def receive(self, header: str) -> Hit:
        """Return what the rules do with a packet; each lookup must have one rule of the highest priority."""
        number = self.layout.parse_header(self.layout.drop_unused(header)[0])
        table: int | None = 0
        cookie, marks, sent, shift = 0, 0, 0, self.layout.shift.get("metadata", 0)
        actions: list[str] = []
        while table is not None:
            held = [rule for rule in self.rules[table] if (number ^ rule[1]) & rule[2] == 0]
            top = max(rule[0] for rule in held)
            [(_, _, _, own, action)] = [rule for rule in held if rule[0] == top]
            cookie, table = cookie | own, None
            for step in action.split():
                kind, _, value = step.partition(":")
                if kind == "goto":
                    table = int(value)
                elif kind == "set":
                    bits = int(value.partition("=")[2].partition("/")[0], 16)
                    marks, number = marks | bits, number | bits << shift
                else:
                    sent += step == "controller"
                    actions.append(step)
        assert sent <= 1
        return Hit(cookie, marks, tuple(actions))


def list_headers(problem: Monitoring, protocols: tuple[int, ...]) -> Iterator[str]:
    """Yield the headers of a small space; packets without ports have 0 there."""
    hosts, others = range(1, 4), product(range(2), range(1, 3))
    for port, source, (net, host), protocol in product(range(4), hosts, others, protocols):
        for target in (22, 80) if protocol in WITH_PORTS else (0,):
            yield (
                f"in_port={port} ip_src=10.0.0.{source} ip_dst=10.{net}.0.{host} ip_proto={protocol} "
                f"tp_dst={target}"
            )


def with_protocol(problem: Monitoring) -> Monitoring:
    """Return a random problem whose headers have a protocol, which some query asks for."""
    assert problem.fields is not None
    queries = problem.queries.copy()
    queries.loc[0, "where"] = "ip_proto=17 & tp_dst=80"
    queries.loc[1, "where"] = "ip_proto=1 | tp_dst=22"
    header = problem.flows["header"] + " ip_proto=6"
    fields = pd.concat([problem.fields, PROTOCOL], ignore_index=True)
    return replace(problem, fields=fields, queries=queries, flows=problem.flows.assign(header=header))


def draw_plan(problem: Monitoring, seed: int) -> Answers:
    """Return a plan with random methods for all queries."""
    random = np.random.default_rng(seed)
    uses = [SwitchUse(problem, switch) for switch in range(len(problem.switches))]
    methods = {
        (row, use.switch): str(random.choice(seen.methods)) for use in uses for row, seen in use.seen.items()
    }
    return make_plan(problem, methods, {row: query.every_s for row, query in enumerate(problem.asked)})


def compare(problem: Monitoring, plan: Answers, protocols: tuple[int, ...]) -> set[str]:
    """Require that the file of each switch does what its plan says of each header; return its methods."""
    texts = list(write_rules(problem, plan).values())
    used = set()
    for switch, text in enumerate(texts):
        reader, tables = Reader(text), [Table(rows) for rows in read_tables(problem, plan, switch)]
        method = {row: name for (row, s), name in read_methods(problem, plan.methods).items() if s == switch}
        bit = {row: 1 << number for number, row in enumerate(sorted(method))}
        used |= set(method.values())
        for header in list_headers(problem, protocols):
            number = problem.layout.parse_header(problem.layout.drop_unused(header)[0])
            hit = reader.receive(f"eth_type=0x0800 {header}")
            rows = [table.find(number) for table in tables]
            counts = {query for row in rows for query in row.counts}
            diverts = {query for row in rows for query in row.diverts}
            expected = sum(bit[query] for query in counts), sum(bit[query] for query in diverts)
            assert (hit.cookie & (1 << MOST_QUERIES) - 1, hit.cookie >> MOST_QUERIES) == expected
            assert hit.marks in (0, expected[1])
            action = next(
                (entry.action for entry in problem.program if (number ^ entry.value) & entry.mask == 0),
                problem.other_action,
            )
            outputs = [step for step in hit.actions if step not in ("controller", "drop")]
            assert outputs == ([] if action == "drop" else [action.replace("normal", "out:NORMAL")])
            assert ("controller" in hit.actions) == bool(diverts)
            inside = {query for query in method if problem.asked[query].predicate.holds(number)}
            assert {query for query in inside if method[query] == AHEAD} == counts
            assert inside - counts <= diverts
    return used


@pytest.mark.parametrize("seed", range(8))
def test_each_header_meets_the_rules_of_the_plan(seed: int) -> None:
    problem = draw_problem(seed)
    assert compare(problem, draw_plan(problem, seed), (6, 17)) <= set(METHODS)
    problem = with_protocol(problem)
    compare(problem, draw_plan(problem, seed), (1, 6, 17))


def test_random_plans_use_every_method_and_both_kinds_of_tables() -> None:
    used, pipelines = set(), set()
    for seed in range(8):
        problem = draw_problem(seed)
        used |= set(draw_plan(problem, seed).methods["method"])
        pipelines |= set(problem.limit("pipeline").tolist())
    assert used == set(METHODS)
    assert pipelines == {0.0, 1.0}


def test_a_switch_without_a_program_forwards_as_usual() -> None:
    problem = replace(draw_problem(3), rules=None)
    compare(problem, draw_plan(problem, 3), (6,))
    problem = problem.with_switches(pipeline=np.ones(2))
    compare(problem, draw_plan(problem, 3), (6,))
    nothing = make_plan(problem, {}, {})
    assert write_rules(problem, nothing)["s0.txt"].splitlines()[1:] == ["table=0,priority=0,actions=NORMAL"]


def test_bits_of_fields_without_masks_are_a_rule_for_each_value() -> None:
    problem = draw_problem(0)
    queries = problem.queries.assign(where="in_port=0/0x2").iloc[:1]
    switches = problem.switches.assign(matching="any", pipeline=0.0)
    problem = replace(problem, queries=queries, switches=switches)
    compare(problem, draw_plan(problem, 0), (6,))
    [text, _] = write_rules(problem, draw_plan(problem, 0)).values()
    assert "in_port=0," in text
    assert "in_port=1," in text


@pytest.mark.skipif(find_program("ovs-ofctl") is None, reason="needs Debian's openvswitch-common")
@pytest.mark.parametrize("name", ["specialization", "microflows", "controller"])
@pytest.mark.parametrize("pipeline", [0.0, 1.0])
def test_open_vswitch_parses_each_line_as_it_is(tmp_path: Path, name: str, pipeline: float) -> None:
    program = find_program("ovs-ofctl")
    assert program is not None
    for problem in (frenetic(hosts=4, packets=5), small()):
        problem = problem.with_switches(pipeline=np.full(len(problem.switches), pipeline))
        plan = SYSTEM.design(name).run(problem).plan
        assert plan is not None
        for text in write_rules(problem, plan).values():
            (tmp_path / "rules.txt").write_text(text)
            command = [program, "-O", "OpenFlow13", "parse-flows", str(tmp_path / "rules.txt")]
            parsed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
            assert not parsed.stderr, "such as a match that Open vSwitch changes"
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            assert parsed.stdout.count(" ADD ") == len(lines)


PACKET = (
    "in_port({port}),eth(src=02:00:00:00:00:0{port},dst=02:00:00:00:00:09),eth_type(0x0800),"
    "ipv4(src=10.0.0.{host},dst=10.0.9.9,proto={protocol},tos=0,ttl=64,frag=no),{name}(src={source},dst=99)"
)


@pytest.mark.slow
@pytest.mark.skipif(not IS_THERE, reason="needs Debian's openvswitch-switch")
@pytest.mark.parametrize("pipeline", [0.0, 1.0])
def test_open_vswitch_counts_the_packets_of_each_query(tmp_path: Path, pipeline: float) -> None:
    """Packets through a running switch, counted by bits of cookies, against the predicates of queries."""
    rows = [
        {"query": "web", "select": "counts", "where": "in_port=2 & tp_src=80", "every_s": 30.0},
        {"query": "not one", "select": "counts", "where": "ip_src!=10.0.0.1 & tp_src=80", "every_s": 30.0},
        {"query": "all", "select": "counts", "every_s": 30.0},
    ]
    problem = replace(frenetic(hosts=4, packets=5), queries=tabulate_queries(rows))
    problem = problem.with_switches(pipeline=np.array([pipeline]))
    plan = make_plan(problem, {(row, 0): AHEAD for row in range(3)}, dict.fromkeys(range(3), 30.0))
    [text] = write_rules(problem, plan).values()
    (tmp_path / "rules.txt").write_text(text)
    expected = [0, 0, 0]
    with start_switch(tmp_path, 2) as switch:
        switch.run("ovs-ofctl", "del-flows", BRIDGE)
        switch.run("ovs-ofctl", "-O", "OpenFlow13", "add-flows", BRIDGE, str(tmp_path / "rules.txt"))
        for port, host, (protocol, name), source in product(
            (1, 2), (1, 2, 3), ((6, "tcp"), (17, "udp")), (80, 81)
        ):
            packet = PACKET.format(port=port, host=host, protocol=protocol, name=name, source=source)
            switch.run("ovs-appctl", "netdev-dummy/receive", f"p{port}", packet)
            header = problem.layout.parse_header(
                f"in_port={port} ip_src=10.0.0.{host} ip_dst=10.0.9.9 ip_proto={protocol} tp_src={source} "
                "tp_dst=99"
            )
            for row, query in enumerate(problem.asked):
                expected[row] += query.predicate.holds(header)
        counted, deadline = [-1, -1, -1], time.monotonic() + 30
        while counted != expected and time.monotonic() < deadline:
            switch.run("ovs-appctl", "revalidator/purge")
            for row in range(3):
                bits = f"cookie={1 << row:#x}/{1 << row:#x}"
                answer = switch.run("ovs-ofctl", "-O", "OpenFlow13", "dump-aggregate", BRIDGE, bits)
                found = re.search(r"packet_count=(\d+)", answer)
                assert found is not None
                counted[row] = int(found[1])
    assert counted == expected
    assert 0 < expected[0] < expected[1] < expected[2] == 24


# --- bad input ----------------------------------------------------------------------------


def test_fields_that_openflow_does_not_have_are_named() -> None:
    problem = draw_problem(0)
    assert problem.fields is not None
    fields = problem.fields.replace("in_port", "inlet")
    queries = problem.queries.assign(where="", group_by="", split_when="")
    header = problem.flows["header"].str.replace("in_port", "inlet")
    rules = problem.rules.iloc[1:] if problem.rules is not None else None
    other = replace(problem, fields=fields, queries=queries, rules=rules,
                    flows=problem.flows.assign(header=header))  # fmt: skip
    with pytest.raises(InputError, match=r"^fields: 'inlet' is no field of OpenFlow that can be written"):
        write_rules(other, make_plan(other, {}, {}))


def test_actions_that_openflow_does_not_have_are_named() -> None:
    problem = draw_problem(0)
    assert problem.rules is not None
    problem = replace(problem, rules=problem.rules.assign(action=["out:2", "fluud"]))
    with pytest.raises(
        InputError, match=r"^plan: action 'fluud' of s0 cannot be written in OpenFlow: it is no action"
    ):
        write_rules(problem, make_plan(problem, {}, {}))


def test_more_queries_than_cookies_have_bits_are_refused() -> None:
    rows = [
        {"query": f"q{number}", "select": "counts", "where": "in_port=1", "every_s": 5.0}
        for number in range(MOST_QUERIES + 1)
    ]
    problem = replace(frenetic(hosts=4, packets=5), queries=tabulate_queries(rows))
    methods = {(row, 0): AHEAD for row in range(len(rows))}
    plan = make_plan(problem, methods, dict.fromkeys(range(len(rows)), 5.0))
    with pytest.raises(
        InputError, match=r"^plan: s1 answers 33 queries, must be at most 32: bits of cookies"
    ):
        write_rules(problem, plan)


def test_actions_before_other_tables_are_refused() -> None:
    problem = draw_problem(0).with_switches(pipeline=np.ones(2))
    tables = draw_plan(problem, 0).to_tables()
    rules = tables["rules"].copy()
    rules.loc[rules["table"] == 0, "action"] = "out:1"
    plan = from_tables(problem, {**tables, "rules": rules})
    with pytest.raises(InputError, match=r"^plan: table 0 of s0 acts on packets, and is not the last one"):
        write_rules(problem, plan)


def test_entries_that_a_switch_does_not_hold_get_a_warning() -> None:
    problem = frenetic(hosts=4, packets=5).with_switches(rules=np.array([2.0]))
    plan = make_plan(problem, {(0, 0): AHEAD}, {0: 30.0})
    notes: list[str] = []
    with observe_notes(notes.append):
        write_rules(problem, plan)
    assert [note for note in notes if note.startswith("warning: s1 holds 2 rules; ")], notes
