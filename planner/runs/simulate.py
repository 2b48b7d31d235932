"""Simulations in time: the designs of a scenario control a running system, side by side."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.contract.metrics import Metric
from planner.contract.parameters import check_parameters
from planner.contract.simulation import Simulation, SimulationResult
from planner.contract.system import System
from planner.errors import InputError, PlannerError
from planner.io.file_replacement import replace_text
from planner.io.table_files import write_table
from planner.options import Options
from planner.runs.files import make_folder
from planner.runs.run import entries, prepare
from planner.scenarios.scenario import Entry, Scenario, load

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedDesign:
    """One design that controlled a simulation; `error` says why there is no result."""

    entry: Entry
    result: SimulationResult | None = None
    seconds: float | None = None
    error: PlannerError | None = None

    @property
    def label(self) -> str:
        """The design's label in the scenario."""
        return self.entry.label


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedDesigns:
    """Several designs in simulations of one problem."""

    system: System
    problem: Any
    metrics: tuple[Metric, ...]
    runs: tuple[SimulatedDesign, ...]

    @property
    def exit_code(self) -> int:
        """0 when every simulation ended, otherwise that of the first that failed."""
        return next((run.error.exit_code for run in self.runs if run.error is not None), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `--json` prints it."""
        runs = [
            {
                "design": run.label,
                "mechanism": str(run.entry.design.mechanism),
                "seconds": run.seconds,
                "metrics": dict(run.result.metrics) if run.result else {},
                "decisions": _outcomes(run.result) if run.result else {},
                **({"error": str(run.error)} if run.error else {}),
            }
            for run in self.runs
        ]
        return {"system": self.system.name, "problem": {"size": self.problem.size()}, "runs": runs}


def _outcomes(result: SimulationResult) -> dict[str, int]:
    return {str(outcome): int(count) for outcome, count in result.rounds["outcome"].value_counts().items()}


def simulate(
    scenario: Scenario | str | Path,
    *,
    designs: Sequence[str] | None = None,
    options: Options | None = None,
) -> SimulatedDesigns:
    """Simulate a scenario in time once for each design, which controls it.

    designs  those named, all of the scenario's, or all of the system's that can control a simulation
    raises   InputError, also where the system has no simulation in time. A design that fails is recorded
             with its error and does not stop the others
    """
    loaded = scenario if isinstance(scenario, Scenario) else load(scenario)
    loaded = loaded if options is None else replace(loaded, options=options)
    system = loaded.system
    simulation = system.studies.simulation
    if simulation is None:
        raise InputError(f"{system.name}: this system has no simulation in time")
    chosen = _controllers(loaded, simulation, designs)
    what = f"the simulation of {system.name}"
    _, faults = check_parameters(
        simulation.run, loaded.raw.get("simulation", {}), where="simulation", what=what
    )
    if faults:
        raise InputError(*(f"{loaded.name}: {fault}" for fault in faults))
    problem = loaded.make_problem()
    runs = tuple(_run(simulation, problem, entry, loaded) for entry in chosen)
    return SimulatedDesigns(system=system, problem=problem, metrics=simulation.metrics, runs=runs)


def _controllers(scenario: Scenario, simulation: Simulation, designs: Sequence[str] | None) -> list[Entry]:
    """Return the designs to simulate; raise InputError for one that cannot control a simulation."""
    able = simulation.designs or tuple(design.name for design in scenario.system.designs)
    chosen = entries(scenario, designs)
    if designs is None and not scenario.designs:
        return [entry for entry in chosen if entry.design.name in able]
    faults = [
        f"designs.{entry.label}: {entry.design.name} cannot control a simulation in time; valid: "
        + ", ".join(able)
        for entry in chosen
        if entry.design.name not in able
    ]
    if faults:
        raise InputError(*faults)
    return chosen


def _run(simulation: Simulation, problem: Any, entry: Entry, scenario: Scenario) -> SimulatedDesign:
    prepare(scenario.system, entry, scenario.options)
    start = time.perf_counter()
    try:
        result = simulation.run(
            problem,
            design=entry.design,
            information=entry.information,
            decision_parameters=entry.parameters,
            options=scenario.options,
            **scenario.simulation,
        )
    except PlannerError as error:
        log.warning("%s: %s", entry.label, error)
        return SimulatedDesign(entry=entry, error=error)
    return SimulatedDesign(entry=entry, result=result, seconds=time.perf_counter() - start)


def save(result: SimulatedDesigns, scenario: Scenario, out: Path, table_format: str) -> None:
    """Write `out/scenario.toml` and `out/<design>/<table>` for each table that a simulation recorded."""
    make_folder(out)
    replace_text(out / "scenario.toml", scenario.to_toml(out))
    for run in result.runs:
        if run.result is not None:
            folder = make_folder(out / run.label)
            for name, frame in {**run.result.tables, "rounds": run.result.rounds}.items():
                write_table(frame, folder / f"{name}.{table_format}")
