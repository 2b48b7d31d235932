"""Designs of a user's own: functions and `Design` objects beside a system's designs, in every verb."""

from __future__ import annotations

import functools
import json
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import pandas as pd
import pytest

import planner
from planner.contract.design import Decision, Design
from planner.contract.proof import Proof, Status
from planner.errors import DesignFailure, InputError, PlannerError, PlanRejected
from planner.options import Options
from planner.scenarios.user_designs import load_reference, make_design
from planner_models.traffic import SYSTEM
from tests.commands import planner as command

PROBLEM = SYSTEM.problem.from_tables(
    {
        "links": pd.DataFrame(
            {"tail": list("sasb"), "head": list("atbt"), "capacity_mbps": [10.0, 10.0, 5.0, 5.0]}
        ),
        "demands": pd.DataFrame({"source": ["s"], "target": ["t"], "rate_mbps": [12.0]}),
    }
)
FEASIBLE = Proof(status=Status.FEASIBLE)
ROUTE = {"source": "s", "target": "t", "path": ["s", "a", "t"], "rate_mbps": 12.0}
IN_GBPS = {"source": "s", "target": "t", "path": ["s", "a", "t"], "rate_gbps": 0.012}


def hops(problem: Any, *, share: float = 1.0) -> pd.DataFrame:
    """Send a share of each demand along a path of the fewest hops."""
    graph = nx.DiGraph(problem.to_networkx())
    rows = problem.demands.to_dict(orient="records")
    paths = [nx.shortest_path(graph, row["source"], row["target"]) for row in rows]
    return pd.DataFrame(
        [{**row, "path": path, "rate_mbps": row["rate_mbps"] * share}
         for row, path in zip(rows, paths, strict=True)]
    )  # fmt: skip


def raises(problem: Any) -> Any:
    """Raise an error."""
    return {}["nothing"]


def test_a_function_stands_beside_designs_checked_and_measured_as_they_are() -> None:
    result = planner.compare(PROBLEM, designs=["optimum", hops, "ecmp"])
    assert result.metrics.index.tolist() == ["optimum", "hops", "ecmp"]
    assert result.metrics.loc["hops", "max_utilization"] == pytest.approx(1.2)
    assert result.metrics.loc["hops", "share_of_bound"] == pytest.approx(10 / 12)
    assert not result["hops"].constraints.met
    assert result["hops"].entry.design.about == "Send a share of each demand along a path of the fewest hops."
    assert "hops delivers 10" in result.verdict
    assert "hops" in result._repr_html_()


@pytest.mark.parametrize(
    "returned",
    [
        hops,
        lambda _: {"routes": [ROUTE]},
        lambda problem: {"routes": hops(problem)},
        lambda _: [ROUTE],
        lambda _: {"routes": {name: [value] for name, value in ROUTE.items()}},
        lambda _: pd.DataFrame([IN_GBPS]),
        lambda problem: planner.check(problem, [ROUTE]).plan,
        lambda problem: Decision(plan=hops(problem), proof=FEASIBLE, guarantees=frozenset()),
        functools.partial(hops, share=1.0),
        Design(name="named", decide=hops, source="a test"),
    ],
)  # fmt: skip
def test_a_function_returns_a_plan_or_its_tables_in_any_form(returned: Callable[..., Any]) -> None:
    run = planner.compare(PROBLEM, designs={"mine": returned})["mine"]
    assert run.error is None
    assert run.metrics["max_utilization"] == pytest.approx(1.2)


def test_arguments_of_a_function_are_parameters() -> None:
    assert planner.solve(PROBLEM, design=hops, share=0.5).metrics["delivered_mbps"] == pytest.approx(6.0)
    result = planner.compare(PROBLEM, designs=[hops], changes={"designs.hops.share": 0.25})
    assert result["hops"].metrics["delivered_mbps"] == pytest.approx(3.0)
    with pytest.raises(InputError, match=r"designs\.hops\.share is 'much', must be a number"):
        planner.solve(PROBLEM, design=hops, share="much")
    with pytest.raises(InputError, match="no argument 'shares', and no parameter of design hops"):
        planner.solve(PROBLEM, design=hops, shares=1.0)


def test_a_function_receives_options_and_the_previous_decision_by_name() -> None:
    received: dict[str, Any] = {}

    def mine(
        network: Any, options: Options = Options(), previous: Any = None, mode: Literal["a", "b"] = "a"
    ) -> Any:
        received.update(options=options, previous=previous, mode=mode)
        return hops(network)

    planner.solve(PROBLEM, design=mine, seed=7, previous="ecmp", mode="b")
    assert received["options"].seed == 7
    assert received["mode"] == "b"
    assert isinstance(received["previous"], Decision)


def test_claims_of_a_decision_are_not_trusted() -> None:
    def boast(problem: Any) -> Any:
        proof = Proof(status=Status.OPTIMAL, objective=12.0, metric="delivered_mbps", bound=12.0)
        return Decision(plan=hops(problem), proof=proof, guarantees=frozenset())

    with pytest.raises(PlanRejected, match="claimed 12"):
        planner.solve(PROBLEM, design=boast)


BAD: list[tuple[Any, type[PlannerError], str]] = [
    (lambda _: None, PlanRejected, "mine: returned nothing, must return a plan of traffic or"),
    (lambda _: "ab.csv", PlanRejected, "mine: returned the text 'ab.csv', must return a plan of traffic"),
    (lambda _: 3, InputError, "mine: its plan: is of type int, must be a plan of traffic, or tables"),
    (lambda _: {}, InputError, "mine: its plan: has no table of a plan; traffic has flows, routes"),
    (lambda _: {"route": [ROUTE]}, InputError, "mine: its plan: route: no such table"),
    (lambda _: [ROUTE | {"rate_mbps": -1.0}], InputError,
     "mine: its plan: routes row 1: rate_mbps is -1.0, must be at least 0"),
    (lambda _: [ROUTE | {"rate_mbps": float("nan")}], InputError, "mine: its plan: routes row 1"),
    (lambda _: [ROUTE | {"path": ["s", "x", "t"]}], PlanRejected,
     "mine: its plan: routes row 1: 'x' is no node of the network"),
    (lambda _: [{"source": "s", "target": "t", "rate_mbps": 1.0}], InputError,
     "mine: its plan: its columns source, target, rate_mbps fit the tables shed and moved; name the table"),
    (lambda _: pd.DataFrame({"a": [1]}), InputError,
     "mine: its plan: its columns a are those of no table of a plan; name the table"),
    (lambda _: planner.generate("circuits"), PlanRejected,
     "mine: its plan: is no plan of traffic: it has the table"),
    (raises, DesignFailure, "mine: raised KeyError: 'nothing' (test_user_designs.py line "),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "line"), BAD)
def test_what_is_no_plan_is_one_clear_line(function: Any, kind: type[PlannerError], line: str) -> None:
    with pytest.raises(kind) as caught:
        planner.solve(PROBLEM, design={"mine": function})
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
    result = planner.compare(PROBLEM, designs={"ecmp": {}, "mine": function})
    assert result["mine"].status == "failed"
    assert result["ecmp"].plan is not None


def test_an_error_of_a_function_is_the_cause_of_the_failure(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DesignFailure, match=r"in raises\)") as caught:
        planner.solve(PROBLEM, design=raises)
    assert isinstance(caught.value.__cause__, KeyError)
    planner.compare(PROBLEM, designs=[raises, "ecmp"])
    assert "in raises" in caplog.text
    assert "Traceback" in caplog.text


def without_problem() -> Any:
    """Take no problem."""


def annotated(problem: Any, much: "Unknown" = 1) -> Any:  # type: ignore[name-defined]  # noqa: F821, UP037
    """Have an annotation that nobody can read."""


@pytest.mark.parametrize(
    ("designs", "line"),
    [
        ([3], "designs: 3 is no name of a design"),
        ([lambda _: 1], "designs: <function"),
        ({"ecmp": hops}, "designs: ecmp: traffic has a design of this name; name yours otherwise"),
        ([hops, hops], "designs: two are called hops"),
        ({"x": 3}, "designs: x is 3, must be a mapping of its parameters, a Design or a function"),
        ({"a/b": hops}, "designs: name 'a/b' must be a plain name"),
        ([int], "designs: int is <class 'int'>, must be a Design or a function of a problem"),
        ([without_problem], "without_problem: must take the problem as its first argument"),
        ([annotated], "annotated: its arguments cannot be read: name 'Unknown' is not defined"),
        (["hosp", hops], "traffic: designs.hosp: no such design of traffic; did you mean 'hops'?"),
    ],
)
def test_bad_designs_are_one_clear_line(designs: Any, line: str) -> None:
    with pytest.raises(InputError) as caught:
        planner.compare(PROBLEM, designs=designs)
    assert caught.value.faults[0].startswith(line)


def test_a_design_of_the_system_may_be_given_itself() -> None:
    result = planner.compare(PROBLEM, designs=[SYSTEM.design("ecmp"), hops])
    assert [run.label for run in result] == ["ecmp", "hops"]
    renamed = planner.compare(PROBLEM, designs=[replace(SYSTEM.design("ecmp"), name="again")])
    assert renamed["again"].metrics == result["ecmp"].metrics


@pytest.mark.slow
def test_sweeps_run_a_function_once_until_it_changes(tmp_path: Path) -> None:
    factor = 0.5

    def mine(problem: Any, share: float = 1.0) -> Any:
        return hops(problem, share=share * factor)

    axes = {"problem.scale": [0.5, 1.0], "designs.mine.share": [0.5, 1.0]}
    arguments: dict[str, Any] = {"axes": axes, "designs": ["ecmp", mine], "workers": 1}
    first = planner.sweep(PROBLEM, tmp_path, **arguments)
    assert not first.failures
    assert first.made == 6
    delivered = first.runs.set_index(["label", "problem.scale", "designs.mine.share"])["delivered_mbps"]
    assert delivered["mine", 1.0, 0.5] == pytest.approx(3.0)
    assert planner.sweep(PROBLEM, tmp_path, **arguments).made == 0
    factor = 0.25
    assert planner.sweep(PROBLEM, tmp_path, **arguments).made == 4


def test_a_roll_does_not_continue_with_another_version_of_a_function(tmp_path: Path) -> None:
    factor = 0.5

    def mine(problem: Any) -> Any:
        return hops(problem, share=factor)

    for kept in (0, 2):
        rolled = planner.roll("traffic/abilene", windows=2, designs=[mine], out=tmp_path / "roll")
        assert sum(window.kept for window in rolled) == kept
    factor = 0.25
    with pytest.raises(InputError, match="was computed from another version of mine; name another folder"):
        planner.roll("traffic/abilene", windows=2, designs=[mine], out=tmp_path / "roll")


@pytest.mark.slow
def test_other_verbs_take_a_function() -> None:
    failures = planner.failures(PROBLEM, design=hops, workers=2)
    assert "hops" in str(failures)
    assert planner.explain(PROBLEM, design=hops).explanation
    rolled = planner.roll([PROBLEM, PROBLEM], designs=[hops])
    assert [window.exit_code for window in rolled] == [0, 0]


def test_a_function_is_sent_to_other_processes_with_its_digest() -> None:
    design = make_design(SYSTEM, "mine", lambda problem: hops(problem))
    again = pickle.loads(pickle.dumps(design))
    assert again.decide.digest == design.decide.digest  # type: ignore[attr-defined]
    assert again.run(PROBLEM).plan.links["utilization"].max() == pytest.approx(1.2)
    lock = threading.Lock()
    stuck = make_design(SYSTEM, "stuck", lambda _: lock)
    with pytest.raises(InputError, match="stuck: cannot be sent to a worker process"):
        pickle.dumps(stuck)


def test_a_design_that_changes_its_problem_changes_no_other_answer() -> None:
    def greedy(problem: Any) -> Any:
        problem.demands["rate_mbps"] = 1.0
        problem.rate_mbps[:] = 2.0
        return hops(problem)

    before = PROBLEM.demands["rate_mbps"].tolist()
    result = planner.compare(PROBLEM, designs=[greedy, "ecmp"])
    assert PROBLEM.demands["rate_mbps"].tolist() == before
    alone = planner.compare(PROBLEM, designs=["ecmp"])
    assert dict(result["ecmp"].metrics) == dict(alone["ecmp"].metrics)


def test_a_design_that_ends_the_program_is_one_line(folder: Path) -> None:
    (folder / "ends_own.py").write_text("import sys\ndef ends(problem):\n    sys.exit(3)\n")
    result = command("compare", folder / "scenario.toml", "--designs", f"ecmp,{folder}/ends_own.py:ends")
    line = "ended the program by exit (ends_own.py line 3, in ends), must return a plan"
    assert (result.code, line in " ".join(result.out.split())) == (6, True)
    (folder / "at_once_own.py").write_text("import sys\nsys.exit(3)\n")
    result = command("solve", folder / "scenario.toml", "--design", f"{folder}/at_once_own.py:f")
    assert (result.code, "cannot be loaded: SystemExit: 3" in result.err) == (1, True)


def test_what_a_design_prints_is_no_part_of_the_answer(folder: Path) -> None:
    path = folder / "prints_own.py"
    path.write_text(
        f'print("loaded")\n{MINE}\ndef says(problem):\n    print("called")\n    return direct(problem)\n'
    )
    result = command("solve", folder / "scenario.toml", "--design", f"{path}:says", "--json")
    assert json.loads(result.out)
    assert "loaded" in result.err
    assert "called" in result.err


def test_the_annotation_of_the_problem_needs_no_meaning() -> None:
    def direct(problem: planner.Nothing, share: float = 1.0) -> Missing:  # type: ignore # noqa: F821
        return hops(problem, share=share)

    assert make_design(SYSTEM, "direct", direct).parameters.keys() == {"share"}

    def unclear(problem: Any, share: planner.Nothing = 1.0) -> Any:  # type: ignore
        return hops(problem, share=share)

    with pytest.raises(InputError, match=r"unclear: its arguments cannot be read: module 'planner' has no"):
        make_design(SYSTEM, "unclear", unclear)


# --- references on the command line -------------------------------------------------------

MINE = """
import json
import beside_mine

def direct(problem):
    rows = problem.demands.to_dict(orient="records")
    return [{**row, "path": [row["source"], *beside_mine.MIDDLE, row["target"]]} for row in rows]

NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "byo_mine.py").write_text(MINE)
    (tmp_path / "beside_mine.py").write_text('MIDDLE = ["a"]\n')
    (tmp_path / "broken_byo.py").write_text("x = 1\n1 / 0\n")
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\ns,a,10\na,t,10\ns,b,5\nb,t,5\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    (tmp_path / "scenario.toml").write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n')
    return tmp_path


def test_a_file_is_named_on_the_command_line(folder: Path) -> None:
    reference = f"{folder}/byo_mine.py:direct"
    result = command("compare", folder / "scenario.toml", "--designs", f"ecmp,{reference}", "--json")
    assert result.code == 0, result.err
    runs = {run["design"]: run for run in json.loads(result.out)["runs"]}
    assert runs["direct"]["metrics"]["max_utilization"] == pytest.approx(1.2)
    assert command("solve", folder / "scenario.toml", "--design", reference).code == 0


def test_a_helper_that_changes_makes_another_digest(folder: Path) -> None:
    digests = []
    for middle in ("a", "b", "a"):
        (folder / "beside_mine.py").write_text(f'MIDDLE = ["{middle}"]\n')
        _, direct = load_reference(f"{folder}/byo_mine.py:direct")
        digests.append(make_design(SYSTEM, "direct", direct).decide.digest)  # type: ignore[attr-defined]
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize(
    ("reference", "line"),
    [
        ("nowhere.py:f", "nowhere.py: no such file"),
        ("byo_mine.py:indirect", "byo_mine.py has no 'indirect'"),
        ("byo_mine.py:NUMBER", "byo_mine.py:NUMBER: is of type int, must be a Design or a function"),
        ("byo_mine.py:", "must be FILE.py:FUNCTION or MODULE:FUNCTION"),
        ("broken_byo.py:f", "cannot be loaded: ZeroDivisionError: division by zero (broken_byo.py line 2)"),
    ],
)
def test_bad_references_are_one_clear_line(folder: Path, reference: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        load_reference(f"{folder}/{reference}")
    assert line in str(caught.value)
    with pytest.raises(InputError, match="no_such_module: cannot be imported"):
        load_reference("no_such_module:f")


def test_text_of_a_scenario_never_becomes_code(folder: Path) -> None:
    scenario = folder / "scenario.toml"
    scenario.write_text(scenario.read_text() + f'[designs.mine]\ndesign = "{folder}/byo_mine.py:direct"\n')
    result = command("compare", scenario)
    assert result.code == 1
    assert "no such design of traffic" in result.err
