"""Statements of Foster et al. 2013 (Frenetic) on queries, and the functions that find ours.

Reproduction targets of system `queries`, declared in `data/published/queries.toml`. The paper prints examples
and their cost, and no measurement of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from planner.contract.targets import Study, TargetValues, read_targets
from planner_models.queries.designs import DESIGNS
from planner_models.queries.plan.check import Evaluation, evaluate
from planner_models.queries.plan.interpreter import select_packets
from planner_models.queries.plan.methods import count_own, find_region, list_region
from planner_models.queries.plan.plan import Answers
from planner_models.queries.problem.generators import frenetic, tabulate_queries
from planner_models.queries.problem.problem import ROUND_TRIP_MS, Monitoring
from planner_models.queries.problem.schema import ANY, EXACT, PREFIX

ADDRESS_BITS: Final = (1, 3, 8)
"""Bits of addresses for which all groups are installed ahead."""
SETTING: Final = "a setting of an example"
WILD: Final = "ip_dst=90.*.70.60"
REPEATER: Final = ((1.0, "in_port=1", "out:2", 0.0), (1.0, "in_port=2", "out:1", 0.0))
"""Rules of a repeater: priority, match, action, table."""


def find_queries(study: Study) -> TargetValues:  # noqa: ARG001 - the signature of `find`
    problem = frenetic()
    _, plan = _answer(problem, "unfolding")
    histogram = problem.query_names.index("traffic histogram")
    negated = problem.query_names.index("web but one host")
    learned = problem.asked[problem.query_names.index("MAC learning")]
    hosts, alone = _measure_histogram()
    return TargetValues(
        values={
            "qry_negation_rules": float(count_own(list_region(problem.asked[negated].entries))),
            "qry_ahead_rules": [_count_ahead(bits) for bits in ADDRESS_BITS]
            == [2**bits for bits in ADDRESS_BITS],
            "qry_unfold_rules": alone.observed[0].installed == hosts,
            "qry_unfold_first": alone.observed[0].to_controller / hosts,
            "qry_limit": _count_limited(),
            "qry_mac_packets": len(select_packets(problem, learned)) == _count_appearances(problem)
            and len(plan.observed[0].selected[problem.asked.index(learned)]) == _count_appearances(problem),
            "qry_polls": alone.polls[0] * problem.asked[histogram].every_s / hosts,
        },
        notes={
            "qry_negation_rules": "entries of the predicate; the packets that no rule holds need none",
            "qry_ahead_rules": f"for addresses of {', '.join(map(str, ADDRESS_BITS))} bits",
            "qry_unfold_rules": f"{hosts} sources send, and as many rules are installed",
            "qry_unfold_first": "where no further packet of a source arrives within the round trip",
            "qry_limit": "five packets reach the controller within the round trip, one reaches the program",
            "qry_mac_packets": "20 hosts, a server, and a host that moves; interpreted and emulated",
            "qry_every": SETTING,
        },
    )


def _answer(problem: Monitoring, design: str) -> tuple[Answers, Evaluation]:
    """Return the plan of a design, and it as emulated."""
    plan = next(candidate for candidate in DESIGNS if candidate.name == design).run(problem).plan
    assert plan is not None
    return plan, evaluate(problem, plan)


def _make_problem(
    query: dict[str, object],
    headers: Sequence[str],
    *,
    matching: str = PREFIX,
    packets: float = 1.0,
    length_s: float = 0.0,
    fields: pd.DataFrame | None = None,
    rules: pd.DataFrame | None = None,
) -> Monitoring:
    """Return one query on a switch with much space, and flows of some headers, a second apart."""
    return Monitoring(
        queries=tabulate_queries([query]),
        switches=pd.DataFrame(
            {
                "switch": ["s"], "rules": [10_000.0], "exact_rules": [10_000.0], "packets_per_s": [1e6],
                "polls_per_s": [1e6], "matching": [matching],
            }
        ),
        flows=pd.DataFrame(
            {
                "switch": "s", "header": list(headers), "packets": packets, "packet_bytes": 100.0,
                "start_s": [float(second) for second in range(len(headers))], "length_s": length_s,
            }
        ),
        fields=fields,
        rules=rules,
    )  # fmt: skip


def _count_ahead(bits: int) -> int:
    """Return the rules ahead of a histogram by addresses of some bits."""
    fields = pd.DataFrame([("address", bits, "l3", 1)], columns=["field", "bits", "stage", "prefix"])
    query: dict[str, object] = {"query": "q", "select": "bytes", "group_by": "address", "every_s": 1.0}
    plan, _ = _answer(_make_problem(query, ["address=0"], fields=fields), "proactive")
    return len(plan.rules)


def _measure_histogram() -> tuple[int, Evaluation]:
    """Return the number of sources that send, and the histogram alone as emulated."""
    problem = frenetic()
    query = {"query": "q", "select": "bytes", "where": "srcport=80", "group_by": "srcip", "every_s": 60.0}
    headers = [text for text in problem.flows["header"] if "in_port=2" in text and "tcp_src=80 " in text]
    made = _make_problem(query, headers, packets=10.0, length_s=30.0)
    return len(headers), _answer(made, "unfolding")[1]


def _count_limited() -> float:
    """Return the packets that the program gets where five reach the controller before the rule is there."""
    query: dict[str, object] = {"query": "q", "select": "packets", "group_by": "srcmac", "limit": 1.0}
    problem = _make_problem(query, ["eth_src=02:00:00:00:00:01"], packets=5.0, length_s=ROUND_TRIP_MS / 2e3)
    _, evaluation = _answer(problem, "unfolding")
    assert evaluation.observed[0].to_controller == 5
    return float(len(evaluation.observed[0].selected[0]))


def _count_appearances(problem: Monitoring) -> int:
    """Return the times that a source appears port_of another port than before, from the table of flows."""
    layout, (headers, header_of) = problem.layout, problem.headers
    mac, port = layout.full_mask(["eth_src"]), layout.full_mask(["in_port"])
    port_of: dict[int, int] = {}
    count = 0
    for row in problem.packets[0].header.tolist():
        header = headers[row]
        count += port_of.get(header & mac) != header & port
        port_of[header & mac] = header & port
    assert len(header_of) == len(problem.flows)
    return count


def find_runtime(study: Study) -> TargetValues:  # noqa: ARG001 - the signature of `find`
    monitor: dict[str, object] = {
        "query": "q", "select": "bytes", "where": "inport=2 & srcport=80", "every_s": 30.0
    }  # fmt: skip
    header = "in_port=2 tcp_src=80"
    rules = pd.DataFrame(REPEATER, columns=["priority", "match", "action", "table"])
    plan, evaluation = _answer(_make_problem(monitor, [header], rules=rules), "proactive")
    wild: dict[str, object] = {"query": "q", "select": "bytes", "where": WILD, "every_s": 30.0}
    ahead, _ = _answer(_make_problem(wild, ["ip_dst=90.80.70.60"], matching=ANY), "proactive")
    return TargetValues(
        values={
            "qry_composed_rules": float(len(plan.rules)),
            "qry_monitor_packets": float(evaluation.observed[0].to_controller),
            "qry_over_any": float(len(ahead.rules)),
            "qry_over_prefix": _find_diverted(wild, PREFIX) == ["ip_dst=90.0.0.0/8"],
            "qry_over_exact": _find_diverted(wild, EXACT) == [""],
            "qry_specialized": _is_specialized(wild),
            "qry_blowup": [_count_joint(n1, n2) for n1, n2 in ((2, 3), (4, 8))] == [6, 32],
        },
        notes={
            "qry_controller_ms": f"{SETTING}; the default of controller.round_trip_ms",
            "qry_specialized": "further packets of the address meet its rule, others go to the controller",
            "qry_blowup": "groups of two queries on different fields, all pairs of which send",
        },
    )


def _find_diverted(query: dict[str, object], matching: str) -> list[str]:
    """Return the matches of the rules that divert packets of a query."""
    problem = _make_problem(query, ["ip_dst=90.80.70.60"], matching=matching)
    region = find_region(problem, problem.asked[0], 0)
    return [problem.layout.format_match(value, mask) for value, mask, holds in region if holds]


def _is_specialized(query: dict[str, object]) -> bool:
    """Return whether one rule for a packet's address keeps its like, and no others, from the controller."""
    addresses = ["90.80.70.60", "90.80.70.60", "90.1.2.3", "91.80.70.60"]
    problem = _make_problem(query, [f"ip_dst={address}" for address in addresses])
    _, evaluation = _answer(problem, "unfolding")
    observed = evaluation.observed[0]
    return (observed.installed, observed.to_controller, evaluation.wrong) == (2, 2, [])


def _count_joint(first: int, second: int) -> int:
    """Return the rules for arriving packets of two queries on different fields."""
    headers = [f"ip_src=10.0.0.{n1} tp_dst={n2}" for n1 in range(first) for n2 in range(second)]
    problem = _make_problem({"query": "q", "select": "bytes", "group_by": "ip_src", "every_s": 1.0}, headers)
    queries = tabulate_queries(
        [
            {"query": "sources", "select": "bytes", "group_by": "ip_src", "every_s": 1.0},
            {"query": "ports", "select": "bytes", "group_by": "tp_dst", "every_s": 1.0},
        ]
    )
    both = Monitoring(queries=queries, switches=problem.switches, flows=problem.flows)
    return _answer(both, "unfolding")[1].observed[0].installed


TARGETS: Final = read_targets("queries", {"queries": find_queries, "runtime": find_runtime})
