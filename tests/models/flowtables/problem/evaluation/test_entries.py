"""Problems of evaluated entries: what is read, noted and refused, and the designs on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowtables import SYSTEM, FlowTables, check
from planner_models.flowtables.designs.what_if import tabulate_consulted
from planner_models.flowtables.problem.readers import read_openflow

FOLDER = Path(__file__).parents[5] / "data/scenarios/flowtables/policies"
NAMED = """ table=Classify, priority=210,ip,in_port=p1 actions=load:0x2->NXM_NX_REG0[4..7],resubmit(,Forward)
 table=Forward, priority=190,ip,reg0=0x20/0xf0 actions=output:p2
"""


def read_policies() -> tuple[FlowTables, list[str]]:
    """Return the problem of the scenario, and the notes on it."""
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = read_openflow(
            path=FOLDER / "flows.txt", flows=FOLDER / "packets.csv", groups=FOLDER / "groups.txt",
            ports=FOLDER / "ports.txt",
        )  # fmt: skip
    return problem, notes


def test_tables_are_evaluated_and_all_designs_hold_their_entries() -> None:
    problem, notes = read_policies()
    assert problem.is_evaluated
    assert len(problem.flows) > 400
    assert any(
        "tables of flows.txt are numbered in its order: Classifier 0, ConntrackZone 1" in note
        for note in notes
    )
    assert any("400 connections are looked up" in note for note in notes)
    counts = {}
    for design in ("all", "least_specific", "pool", "microflows"):
        decision = SYSTEM.design(design).run(problem)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        counts[design] = len(decision.plan.megaflows)
    assert counts["all"] == len(problem.rules)
    assert counts["least_specific"] <= counts["all"] < counts["microflows"]
    consulted = problem.installed["consulted"]
    assert any("2: " in text and "ip_src" in text for text in consulted)
    assert not any("ip_src" in text.partition("2: ")[0] for text in consulted)
    [section] = tabulate_consulted(problem)
    assert section.frame["table"].tolist() == [2.0, 3.0, 4.0]
    again = FlowTables.from_tables(problem.to_tables())
    assert again.is_evaluated
    with pytest.raises(InputError, match="searches with fewer need the tables themselves"):
        SYSTEM.design("staged").run(problem)


def test_an_entry_beyond_the_evaluated_ones_is_rejected() -> None:
    problem, _ = read_policies()
    plan = SYSTEM.design("all").run(problem).plan
    assert plan is not None
    row = int(np.flatnonzero(plan.megaflows["action"] != "drop")[0])
    wider = plan.megaflows.assign(
        action=[("drop" if index == row else action) for index, action in enumerate(plan.megaflows["action"])]
    )
    rejected = type(plan)(megaflows=wider, masks=plan.masks, layout=plan.layout)
    assert len(check(problem, rejected))


def test_names_of_tables_and_ports_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "flows.txt").write_text(NAMED)
    (tmp_path / "flows.csv").write_text("header\nin_port=p1 ip\nin_port=p2 ip\n")
    (tmp_path / "show.txt").write_text(
        " 7(p1): addr:aa:55:aa:55:00:12\n     config:     0\n 9(p2): addr:aa\n"
    )
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = read_openflow(path=tmp_path / "flows.txt", flows=tmp_path / "flows.csv")
    assert problem.rules["table"].tolist() == [0.0, 1.0]
    assert "in_port=1" in problem.rules["match"][0]
    assert problem.rules["action"][1] == "out:2"
    assert notes[0].startswith(
        "assumed: tables of flows.txt are numbered in its order: Classify 0, Forward 1; pack"
    )
    assert "ports of flows.txt are numbered in its order: p1 1, p2 2" in notes[1]
    problem = read_openflow(
        path=tmp_path / "flows.txt", flows=tmp_path / "flows.csv", ports=tmp_path / "show.txt"
    )
    assert problem.rules["action"][1] == "out:9"


def test_packets_are_needed_and_headers_are_named_by_their_row(tmp_path: Path) -> None:
    (tmp_path / "flows.txt").write_text("ip actions=ct(commit),output:1\n")
    with pytest.raises(InputError, match=r"flows\.txt: has tracking.*: flows = \.\.\. is missing"):
        read_openflow(path=tmp_path / "flows.txt")
    (tmp_path / "flows.csv").write_text("header\nip\nip reg0=1\n")
    with pytest.raises(InputError, match=r"flows\.csv row 3: header 'ip reg0=1': a packet has no registers"):
        read_openflow(path=tmp_path / "flows.txt", flows=tmp_path / "flows.csv")
