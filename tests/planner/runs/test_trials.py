"""Every verb sees the problem that a scenario describes: one adjustment at a time, of all systems."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from planner.contract.parameters import Parameter, parameters_of
from planner.contract.system import System
from planner.contract.tables import digest
from planner.errors import InputError
from planner.io.layout import TableFile
from planner.io.table_files import write_table
from planner.runs.trials import Trials
from planner.scenarios import sources
from planner.scenarios.arguments import as_scenario
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Scenario, from_document, without_failures
from planner.scenarios.sources import read_files
from tests.models.traffic.networks import both_ways, network


@functools.cache
def sample(name: str) -> Any:
    kind = find_system(name).problem
    return kind.sample() if kind.sample is not None else kind.presets["small"]()


def values_to_try(parameter: Parameter) -> Iterator[Any]:
    """Yield values of an adjustment beside its default, as a scenario writes them."""
    schemas = parameter.schema.get("anyOf", [parameter.schema])
    for schema in schemas:
        if "enum" in schema:
            yield from (value for value in schema["enum"] if value != parameter.default)
        elif schema.get("type") == "boolean":
            yield not parameter.default
        elif schema.get("type") == "integer":
            yield 1
        elif schema.get("type") == "number":
            yield 0.5


def scenarios(system: System, folder: Path, changes: Mapping[str, Any]) -> Iterator[Scenario]:
    """Yield scenarios of the same problem: from tables, and in memory."""
    problem = sample(system.name)
    for name, frame in problem.to_tables().items():
        if not (path := folder / f"{name}.parquet").exists():
            write_table(frame, path)
    written = {"source": "tables", "path": ".", **changes}
    yield from_document({"system": system.name, "problem": written}, name="tables", folder=folder)
    yield as_scenario(problem, changes={f"problem.{key}": value for key, value in changes.items()})


def require_one_problem(scenario: Scenario, folder: Path, *, try_actions: bool) -> None:
    """Check that trials adjust the same problem, and name the elements that it has.

    try_actions  adjust it by each action on an element too
    """
    problem = scenario.make_problem()
    trials = Trials.of(scenario)
    assert digest(trials.make_problem(trials.adjustments).to_tables()) == digest(problem.to_tables())
    unfailed = without_failures(scenario)
    full = problem if unfailed is None else unfailed.make_problem()
    refused: list[str] = []
    for kind in scenario.system.problem.elements:
        names = list(kind.names(full))
        for action in kind.actions[:2]:
            tried = [name for _, item, name in trials.candidates(action.role, [kind]) if item is action]
            assert set(tried) <= set(names)
            assert len(tried) == len(names) or unfailed is not None
        for action in kind.actions if names and try_actions else ():
            for name in names[:1]:
                try:
                    made = trials.make_problem(action.apply(trials.adjustments, name))
                except InputError as error:  # such as the last replica of all, said in its own words
                    refused.append(str(error))
                    continue
                section = action.apply({**trials.adjustments}, name)
                remainder = {
                    key: value for key, value in scenario.raw["problem"].items() if key not in section
                }
                again = from_document(
                    {"system": scenario.system.name, "problem": {**remainder, **section}},
                    name="again",
                    folder=folder,
                    problem=scenario.problem,
                )
                assert digest(again.make_problem().to_tables()) == digest(made.to_tables()), (action, name)
    assert not [line for line in refused if "no such" in line or "matches no" in line]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "rotors" else pytest.mark.slow) for name in system_names()],
)
def test_trials_are_of_the_problem_of_the_scenario(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = find_system(name)
    problems: dict[str, Any] = {}

    def read_once(system: System, files: Mapping[str, TableFile], faults: Sequence[str] = ()) -> Any:
        """Return the problem of files that never change, read at the first call."""
        key = repr(files)
        if faults or key not in problems:
            problems[key] = read_files(system, files, faults)
        return problems[key]

    monkeypatch.setattr(sources, "read_files", read_once)
    tried = 0
    changes: list[dict[str, Any]] = [{}]
    for parameter in parameters_of(system.problem.adjust).values():
        changes += [{parameter.name: value} for value in values_to_try(parameter)]
    for change in changes:
        for scenario in scenarios(system, tmp_path, change):
            try:
                scenario.make_problem()
            except InputError:  # a value that this problem cannot have
                continue
            structural = scenario.problem is None and not any(isinstance(v, float) for v in change.values())
            require_one_problem(scenario, tmp_path, try_actions=structural)
            tried += 1
    assert tried >= 2


def test_elements_of_opposite_links_are_upgraded_and_fail_as_lines(tmp_path: Path) -> None:
    rows = [("a", "b", 10.0), ("b", "c", 10.0)]
    demands = [("a", "c", 14.0), ("c", "a", 14.0)]
    one_way = network(rows, demands)
    change = {"problem.both_directions": True}
    trials = Trials.of(as_scenario(one_way, changes=change))
    both = Trials.of(as_scenario(network(both_ways(rows), demands)))
    for role in ("failure", "upgrade"):
        kinds = [kind for kind in trials.system.problem.elements if kind.with_role(role)]
        names = [name for _, _, name in trials.candidates(role, kinds)]
        assert names == [name for _, _, name in both.candidates(role, kinds)]
        assert "a<->b" in names
    upgraded = trials.make_problem({**trials.adjustments, "capacity_factors": {"a<->b": 2.0}})
    assert sorted(upgraded.capacity_mbps.tolist()) == [10.0, 10.0, 20.0, 20.0]


def test_the_same_links_fail_at_random_whatever_else_fails() -> None:
    rows = [(f"n{k}", f"n{(k + 1) % 12}", 10.0) for k in range(12)]
    problem = network(both_ways(rows), [("n0", "n6", 1.0)])
    drawn = as_scenario(problem, changes={"problem.fail_random_links": 2}).make_problem()
    lost = set(problem.link_labels) - set(drawn.link_labels)
    assert len(lost) == 4
    trials = Trials.of(as_scenario(problem, changes={"problem.fail_random_links": 2}))
    kinds = [kind for kind in trials.system.problem.elements if kind.name == "link"]
    names = [name for _, _, name in trials.candidates("failure", kinds)]
    assert len(names) == 10
    for name in names:
        made = trials.make_problem({**trials.adjustments, "fail_links": [name]})
        assert lost < set(problem.link_labels) - set(made.link_labels)
        assert len(made.links) == len(drawn.links) - 2
