"""Conformance of our systems, and that the conformance tests catch what is wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.metrics import Headline
from planner.contract.proof import Proof, RankProof, Status
from planner.scenarios.catalogue import find_system, system_names
from planner.sweeps import sweep
from planner.testing import check_system
from planner.testing.cases import Case
from planner.testing.systems import conformance_cases
from planner.testing.variants import SEEDS
from planner_models.traffic.designs import ecmp
from planner_models.traffic.problem.problem import Traffic
from tests.planner.runs.toy_system import Admitted, Link, admit, toy
from tests.planner.sweeps.in_process_workers import open_in_process
from tests.planner.testing.quick_parameters import QUICK_PARAMETERS

SMALL: Mapping[str, Callable[[Any], Any]] = {
    "analytics": lambda presets: presets["small"](),
    "brokering": lambda presets: presets["world"](clients=100, places=12, seed=1),
    "capacity": lambda presets: presets["small"](),
    "cdnrouting": lambda presets: presets["small"](),
    "circuitflows": lambda presets: presets["mixed"](racks=4, rings=1, horizon_us=10_000.0),
    "circuits": lambda presets: presets["skewed"](racks=6, large=1, small=2, seed=1),
    "coflows": lambda presets: presets["mapreduce"](racks=4, coflows=6, seed=1),
    "livevideo": lambda presets: presets["heavy_tail"](
        videos=12, edges=4, sources=1, reflectors=3, groups=10, requests_per_video=3.0, seed=1
    ),
    "membership": lambda presets: presets["small"](),
    "multicast": lambda presets: presets["datacenter"](
        k=4, aggregation_copies=1, tenants=3, groups=40, table_size=12
    ),
    "queries": lambda presets: presets["small"](),
    "rotors": lambda presets: presets["small"](),
    "fairshare": lambda presets: presets["small"](),
    "consolidation": lambda presets: presets["small"](),
    "contracts": lambda presets: presets["small"](),
    "flowtables": lambda presets: presets["small"](),
    "geostore": lambda presets: presets["small"](),
    "topology": lambda presets: presets["small"](),
    "traffic": lambda presets: presets["fat_tree"](k=4, seed=1),
    "updates": lambda presets: presets["small"](),
}
"""A small problem of each system, from its presets."""


def cases_of(name: str) -> list[Case]:
    """Return the conformance tests of a system; those of one system share their runs."""
    system = find_system(name)
    return conformance_cases(
        system, problems=[SMALL[name](system.problem.presets)], parameters=QUICK_PARAMETERS.get(name)
    )


LONG = ("robust: is drawn, and explained", "resize_tuned: is drawn, and explained")
"""Ends of the names of conformance tests that take most of a minute: the design runs again for every link."""

EXHAUSTIVE = (
    "verbs: sweep: the adjusted",
    "verbs: explain: the adjusted",
    "searches: random",
    *(f"variants: random variant {seed}" for seed in SEEDS[1:]),
)
"""Beginnings of the names of conformance tests that repeat slow ones on another problem."""

FOR_FEW = ("is drawn, and explained", "the number of threads changes nothing")
"""Ends of the names of conformance tests that each slow run makes of a system's first designs only."""

PROMPT = ("rotors",)
"""Systems whose designs take a few seconds together, with compiling and every value of their parameters."""

WITH_DESIGNS = (
    "decides, and its plan keeps what it claims",
    "its plan's tables make the same plan again",
    "decides the same again",
    "the number of threads changes nothing",
    "is drawn, and explained",
    "each action has a plan",
    "frames are drawn in order of time",
    "no plan beats a bound",
    "no plan beats the optimum",
    "the reference model has the optimum",
)
"""Ends of the names of conformance tests that run designs."""


def first_designs(name: str) -> tuple[str, ...]:
    """Return beginnings of the names of tests of a system's first design and of its default design."""
    system = find_system(name)
    names = {system.default_design.name, *(design.name for design in system.designs[:1])}
    return tuple(f"problem 0: {design}: " for design in names)


def marks_of(name: str, case: Case) -> list[pytest.MarkDecorator]:
    """Return whether a conformance test is a slow one, or one that only `make test-exhaustive` runs."""
    is_smallest = case.name.startswith("searches: smallest")
    if case.name.endswith(FOR_FEW) and not case.name.startswith(first_designs(name)):
        return [pytest.mark.exhaustive]
    if case.name.endswith(LONG) or case.name.startswith(EXHAUSTIVE):
        return [pytest.mark.exhaustive]
    if case.name.startswith(("searches: ", "variants: ", "verbs: ")) and not (is_smallest and name in PROMPT):
        return [pytest.mark.slow]
    if case.name.startswith("rows: ") and name not in PROMPT:
        return [pytest.mark.slow]
    if name not in PROMPT and case.name.endswith(WITH_DESIGNS):
        return [pytest.mark.slow]
    return []


BY_A_PROCESS = ("rotors", "traffic")
"""Systems that the slow tests sweep by a worker process; the others by one in this process."""


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(
            name,
            case,
            id=f"{name}: {case.name}",
            marks=marks_of(name, case),
        )
        for name in system_names()
        for case in cases_of(name)
    ],
)
def test_our_systems_conform(name: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.name.startswith("verbs: sweep: ") and name not in BY_A_PROCESS:
        monkeypatch.setattr(sweep, "open_workers", open_in_process)
    case.run()


def lying(problem: Traffic) -> Decision[Any]:
    """Claim an objective value that the plan does not have."""
    plan = ecmp.route(problem).plan
    proof = Proof(status=Status.OPTIMAL, objective=99.0, bound=99.0, metric="concurrent_flow")
    return Decision(plan=plan, proof=proof)


def too_tight(problem: Traffic) -> Decision[Any]:
    """Claim a bound that every other design beats."""
    proof = Proof(status=Status.UNDECIDED, bound=1e-3, metric="concurrent_flow")
    return Decision(plan=None, proof=proof)


def murmuring(problem: Traffic) -> Decision[Any]:
    """Report progress in a metric of another system."""
    progress.report("served_mbps", 1.0, 2.0)
    return ecmp.route(problem)


@pytest.mark.parametrize(
    ("decide", "line"),
    [
        (murmuring, "reports its progress in served_mbps, which is no metric"),
        (lying, "lying: decides, and its plan keeps what it claims: PlanRejected"),
        (too_tight, "beats the bound"),
    ],
)
def test_false_claims_are_found(decide: Callable[..., Any], line: str) -> None:
    system = find_system("traffic")
    ours = next(design for design in system.designs if design.name == "ecmp")
    false = dataclasses.replace(ours, name=decide.__name__, decide=decide, model=None)
    wrong = dataclasses.replace(system, designs=(ours, false))
    for case in conformance_cases(wrong, problems=[SMALL["traffic"](system.problem.presets)]):
        if f": {false.name}: " not in case.name and "no plan beats a bound" not in case.name:
            continue
        try:
            case.run()
        except Exception as error:  # a test fails by any error
            if line in f"{case.name}: {type(error).__name__}: {error}":
                return
    pytest.fail(f"no test says: {line}")


def test_tests_that_fail_are_listed_by_name() -> None:
    system = dataclasses.replace(toy(), problem=dataclasses.replace(toy().problem, presets={}))
    with pytest.raises(
        AssertionError, match="system 'toy' fails:\ndeclaration: names are unique: "
    ) as raised:
        check_system(system, problems=[Link(2.0, 1.0)])
    assert "a system needs a preset" in str(raised.value)


def test_a_plan_with_violations_beats_no_optimum_in_the_headline_metric() -> None:
    """Headlines are comparable also where a plan overloads a link."""
    system = toy()
    sends = Headline(metric="sent_mbps", verb="sends")
    metrics = (dataclasses.replace(system.metric("sent_mbps"), better="more"),)
    plan = dataclasses.replace(
        system.plan, headline=sends, metrics=metrics, measure=lambda _, plan, __: vars(plan)
    )

    def admit_most(problem: Link) -> Decision[Admitted]:
        decision = admit(problem)
        return dataclasses.replace(decision, proof=dataclasses.replace(decision.proof, metric="sent_mbps"))

    optimum = dataclasses.replace(system.design("admit"), name="optimum", decide=admit_most)
    wrong = dataclasses.replace(system, plan=plan, designs=(optimum, system.design("flood")))
    cases = conformance_cases(wrong, problems=[Link(2.0, 1.0)])
    case = next(case for case in cases if case.name == "problem 0: no plan beats the optimum")
    with pytest.raises(AssertionError, match=r"flood: sent_mbps 2\.0 beats the optimum 1\.0"):
        case.run()


@pytest.mark.parametrize("is_proven", [False, True])
def test_the_optimum_is_the_best_in_the_ranks_that_it_proves(is_proven: bool) -> None:
    """Plans that deliver the same may shed less than an optimum that proves what it delivers only."""
    ranks = (RankProof("delivered_mbps", 1.0, 1.0), RankProof("shed_mbps", 1.0, 1.0))

    def decide(problem: Link) -> Decision[Admitted]:
        decision = admit(problem)
        proof = dataclasses.replace(decision.proof, ranks=ranks if is_proven else ())
        return dataclasses.replace(decision, proof=proof)

    system = toy(then="shed_mbps")
    optimum = dataclasses.replace(system.design("admit"), name="optimum", decide=decide)
    wrong = dataclasses.replace(system, designs=(optimum, system.design("flood")))
    cases = conformance_cases(wrong, problems=[Link(2.0, 1.0)])
    case = next(case for case in cases if case.name == "problem 0: no plan beats the optimum")
    line = r"flood: .*shed_mbps 0\.0 beats the optimum 1\.0, 1\.0"
    with pytest.raises(AssertionError, match=line) if is_proven else nullcontext():
        case.run()


@pytest.mark.parametrize(("name", "line"), [("admit", "returns a plan"), ("idle", "proves no bound")])
def test_a_design_declared_to_bound_only_bounds(name: str, line: str) -> None:
    def idle(problem: Link) -> Decision[Any]:
        return Decision(plan=None, proof=Proof(status=Status.UNDECIDED))

    system = toy(decide=idle)
    declared = system.design("own" if name == "idle" else name)
    wrong = dataclasses.replace(system, designs=(dataclasses.replace(declared, is_bound=True),))
    cases = conformance_cases(wrong, problems=[Link(2.0, 1.0)])
    case = next(case for case in cases if case.name.endswith("its plan keeps what it claims"))
    with pytest.raises(AssertionError, match=line):
        case.run()


def by_index(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Read contracts in the order of the frame's index, as code that takes it for a number would."""
    return find_system("contracts").problem.from_tables(
        {**tables, "contracts": tables["contracts"].sort_index().reset_index(drop=True)}
    )


def filling_gaps(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Read windows that have no rows as windows of no traffic."""
    problem = find_system("contracts").problem.from_tables(tables)
    windows = np.arange(1, problem.traffic["window"].max() + 1)
    grid = pd.MultiIndex.from_product([windows, problem.regions], names=["window", "region"])
    traffic = problem.traffic.set_index(["window", "region"]).reindex(grid, fill_value=0.0).reset_index()
    return dataclasses.replace(problem, traffic=traffic)


def without_units(tables: Mapping[str, pd.DataFrame]) -> Any:
    """Read columns by the beginning of their names, whatever their unit."""
    ours = find_system("contracts").problem.tables[1]
    frame = tables["contracts"]
    renamed = {
        inputs: name
        for inputs in frame
        for name in ours.columns
        if "capacity" in name and str(inputs).lower().startswith("capacity")
    }
    return find_system("contracts").problem.from_tables(
        {**tables, "contracts": frame.rename(columns=renamed)}
    )


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (by_index, "row numbers: contracts"),
        (filling_gaps, "windows: window"),
        (without_units, "other units and names: contracts"),
    ],
)
def test_readers_that_misread_are_found(read: Callable[..., Any], name: str) -> None:
    system = find_system("contracts")
    wrong = dataclasses.replace(system, problem=dataclasses.replace(system.problem, from_tables=read))
    problem = SMALL["contracts"](system.problem.presets)
    for item, fails in ((system, False), (wrong, True)):
        case = next(case for case in conformance_cases(item, problems=[problem]) if case.name.endswith(name))
        if fails:
            with pytest.raises(AssertionError):
                case.run()
        else:
            case.run()
