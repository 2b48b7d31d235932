"""Table `rules`: what is read and what is refused."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.traffic import Traffic
from planner_models.traffic.problem.adjustments import adjust

LINKS = pd.DataFrame(
    [("A", "B", 10.0), ("B", "C", 10.0), ("A", "D", 10.0), ("D", "C", 10.0)],
    columns=["tail", "head", "capacity_mbps"],
)
DEMANDS = pd.DataFrame([("A", "C", 12.0), ("B", "C", 1.0)], columns=["source", "target", "rate_mbps"])


def with_rules(*rows: dict[str, Any]) -> Traffic:
    return Traffic.from_tables({"links": LINKS, "demands": DEMANDS, "rules": pd.DataFrame(list(rows))})


def test_rules_are_read() -> None:
    problem = with_rules(
        {"rule": "avoid", "node": "D"},
        {"rule": "use", "source": "A", "tail": "B", "head": "C"},
        {"rule": "avoid", "source": "A", "target": "C", "path": "A > B > C"},
    )
    assert [rule.nodes for rule in problem.parsed_rules] == [(2,), (1, 3), (0, 1, 3)]  # A, B, D, C
    assert [rule.is_use for rule in problem.parsed_rules] == [False, True, False]
    assert [rule.demands(problem).tolist() for rule in problem.parsed_rules] == [[0, 1], [0], [0]]
    assert len(adjust(problem, fail_links=("B->C",)).parsed_rules) == 3


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"rule": "avoit", "node": "A"}, "rule 'avoit' is not avoid or use; did you mean 'avoid'?"),
        ({"rule": "use", "node": "Ax"}, "node 'Ax' is no node of the network; did you mean 'A'?"),
        ({"rule": "use", "source": "Q", "node": "A"}, "source 'Q' is no node of the network"),
        ({"rule": "use"}, "must name a node, a link (tail and head) or a path; has none"),
        ({"rule": "use", "node": "A", "path": "A > B"}, "must name a node, a link (tail and head) or a path"),
        ({"rule": "use", "tail": "A"}, "head is empty: a link needs tail and head"),
        ({"rule": "use", "tail": "A", "head": "A"}, "tail and head are both 'A', must differ"),
        ({"rule": "use", "tail": "A", "head": "C"}, "there is no link A > C"),
        ({"rule": "use", "path": "A > C"}, "path goes A > C, where there is no link"),
        ({"rule": "use", "path": "A"}, "path is 'A', must be two nodes at least, such as A > B"),
        ({"rule": "avoid", "path": "A > B > A"}, "path passes a node twice"),
        ({"rule": "use", "source": "A", "target": "A", "node": "B"}, "source and target are both 'A'"),
    ],
)
def test_faults_are_one_line(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError) as refused:
        with_rules({"rule": "avoid", "node": "D"}, row)
    assert len(refused.value.faults) == 1
    assert refused.value.faults[0].startswith(f"rules row 2: {fault}")
