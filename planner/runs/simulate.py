"""Simulations in time: the designs of a scenario control a running system, side by side."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner import clock
from planner.contract.metrics import Metric
from planner.contract.notes import notes_of
from planner.contract.parameters import check_parameters, parameters_of
from planner.contract.simulation import Simulation, SimulationResult
from planner.contract.system import System
from planner.errors import InputError, PlannerError
from planner.formatting import number, sizes
from planner.io.table_files import write_table
from planner.options import OPTION_NAMES, Algorithm, Options, Service
from planner.runs.evaluation import entries
from planner.runs.files import make_folder, save_scenario
from planner.runs.result import Result, aligned, metric_columns
from planner.runs.verdict import simulation_sentences
from planner.scenarios.arguments import (
    Designs,
    Source,
    as_scenario,
    labels_of,
    require_known,
    solver_options,
    verb,
)
from planner.scenarios.scenario import Entry, Scenario

log = logging.getLogger(__name__)

MOST_SUMMARIZED: Final = 8
"""Metrics in the text of a simulation."""


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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SimulatedDesigns(Result):
    """Several designs in simulations of one problem."""

    system: System
    problem: Any
    metrics: tuple[Metric, ...]
    runs: tuple[SimulatedDesign, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each design: mechanism, time, and the metrics of the simulation."""
        columns = [
            {"design": run.label, "mechanism": str(run.entry.design.mechanism), "seconds": run.seconds}
            for run in self.runs
        ]
        rows = [
            {**row, **metric_columns(self.metrics, run.result.metrics if run.result else {}, row)}
            for row, run in zip(columns, self.runs, strict=True)
        ]
        return pd.DataFrame(rows).set_index("design")

    @property
    def verdict(self) -> str:
        """Return the results of the simulation for each design, the best one first, in plain sentences."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the verdict, the best design first."""
        rows_of = {run.label: run.result.metrics for run in self.runs if run.result is not None}
        errors = {run.label: run.error for run in self.runs if run.error is not None}
        return simulation_sentences(self.system, rows_of, errors)

    def summary(self) -> list[str]:
        """Return the verdict and the first metrics of each design."""
        values = [run.result.metrics if run.result else {} for run in self.runs]
        rows = [("", *(run.label for run in self.runs))]
        rows += [
            (
                f"{metric.label}, {metric.unit}" if metric.unit else metric.label,
                *(number(metrics.get(metric.name)) for metrics in values),
            )
            for metric in self.metrics[:MOST_SUMMARIZED]
        ]
        head = f"{self.system.name}: {sizes(self.problem.size())}, simulated in time"
        errors = [f"{run.label}: {run.error}" for run in self.runs if run.error is not None]
        return [self.verdict, head, *errors, *aligned(rows)]

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
        notes = notes_of(self.problem)
        return {
            "system": self.system.name,
            "problem": {"size": self.problem.size(), **({"notes": notes} if notes else {})},
            "verdict": self.verdict,
            "runs": runs,
        }


def _outcomes(result: SimulationResult) -> dict[str, int]:
    return {str(outcome): int(count) for outcome, count in result.rounds["outcome"].value_counts().items()}


@verb
def simulate(
    problem: Source,
    *,
    designs: Designs | None = None,
    changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str | None = None,
    algorithm: Algorithm | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    seed: int | None = None,
    service: Service | None = None,
    frames: bool = False,
    **parameters: Any,
) -> SimulatedDesigns:
    """Simulate a problem in time once for each design, which controls it.

    Parameters
    ----------
    designs
        As in `compare`; default: all of the scenario, or all of the system that can control a simulation.
    parameters
        Of the simulation by name, as in a scenario's [simulation], such as until_s=60. One that is named
        as an argument here goes into `changes`: changes={"simulation.seed": 1}.
    frames
        Whether to draw the system as it runs, see `SimulationResult.frames`; figures stay the same;
        default: no.

    Returns
    -------
    SimulatedDesigns
        For each design the metrics of the simulation, and its measurements over time.

    Raises
    ------
    InputError
        Also where the system has no simulation in time. A design that fails is recorded with its error
        and does not stop the others; a wrong input that every design names alike is raised.
    """
    settings = solver_options(
        options, backend=backend, algorithm=algorithm, time_limit_s=time_limit_s, gap=gap, threads=threads,
        seed=seed, service=service,
    )  # fmt: skip
    loaded = as_scenario(problem, designs=designs, options=settings)
    loaded = _set_parameters(loaded, parameters, changes or {})
    simulation = _simulation_of(loaded.system)
    selected = _controllers(loaded, simulation, labels_of(designs))
    _require_parameters(loaded, simulation)
    made = loaded.make_problem()
    runs = tuple(_run(simulation, made, entry, loaded, frames) for entry in selected)
    _report_errors(runs)
    return SimulatedDesigns(system=loaded.system, problem=made, metrics=simulation.metrics, runs=runs)


def _simulation_of(system: System) -> Simulation:
    """Return the simulation in time of a system; raise InputError where it has none."""
    simulation = system.studies.simulation
    if simulation is None:
        hint = system.studies.hint("simulate")
        raise InputError(f"{system.name}: this system has no simulation in time{hint}")
    return simulation


def _set_parameters(
    scenario: Scenario, parameters: Mapping[str, Any], changes: Mapping[str, Any]
) -> Scenario:
    """Return the scenario with changes and parameters of the simulation; InputError for an unknown one."""
    simulation = _simulation_of(scenario.system)
    argument_names = [*parameters_of(simulation.run), *OPTION_NAMES, "designs", "changes", "frames"]
    require_known("simulate", parameters, argument_names, f"the simulation of {scenario.system.name}")
    of_simulation = {f"simulation.{name}": value for name, value in parameters.items()}
    return as_scenario(scenario, changes={**changes, **of_simulation})


def _require_parameters(scenario: Scenario, simulation: Simulation) -> None:
    """Raise InputError where a scenario's parameters of the simulation are missing or wrong."""
    section = scenario.raw.get("simulation", {})
    what = f"the simulation of {scenario.system.name}"
    _, faults = check_parameters(simulation.run, section, where="simulation", what=what)
    if faults:
        raise InputError(*(f"{scenario.name}: {fault}" for fault in faults))


def _controllers(scenario: Scenario, simulation: Simulation, designs: list[str] | None) -> list[Entry]:
    """Return the designs to simulate; raise InputError for one that cannot control a simulation."""
    able = simulation.designs or tuple(design.name for design in scenario.system.designs)
    if designs is None and not scenario.designs:
        return entries(scenario, [design.name for design in scenario.system.designs if design.name in able])
    selected = entries(scenario, designs)
    faults = [
        f"designs.{entry.label}: {entry.design.name} cannot control a simulation in time; valid: "
        + ", ".join(able)
        for entry in selected
        if entry.design.name not in able
    ]
    if faults:
        raise InputError(*faults)
    return selected


def _run(
    simulation: Simulation, problem: Any, entry: Entry, scenario: Scenario, frames: bool
) -> SimulatedDesign:
    drawn = {"frames": True} if frames and simulation.has_frames else {}
    start = clock.wall_now()
    try:
        result = simulation.run(
            problem,
            design=entry.design,
            information=entry.information,
            decision_parameters=entry.parameters,
            options=scenario.options,
            **drawn,
            **scenario.simulation,
        )
    except PlannerError as error:
        return SimulatedDesign(entry=entry, error=error)
    return SimulatedDesign(entry=entry, result=result, seconds=clock.wall_now() - start)


def save(result: SimulatedDesigns, scenario: Scenario, out: Path, table_format: str) -> None:
    """Write `out/scenario.toml` and `out/<design>/<table>` for each table that a simulation recorded."""
    save_scenario(scenario, out)
    for run in result.runs:
        if run.result is not None:
            folder = make_folder(out / run.label)
            for name, frame in {**run.result.tables, "rounds": run.result.rounds}.items():
                write_table(frame, folder / f"{name}.{table_format}")


def _report_errors(runs: Sequence[SimulatedDesign]) -> None:
    """Log the error of each design; raise it where it is an input error that all of them have."""
    errors = [run.error for run in runs]
    if errors and isinstance(errors[0], InputError) and len({str(error) for error in errors}) == 1:
        raise errors[0]  # a fault of the problem, not of a design
    for run in runs:
        if run.error is not None:
            log.warning("%s: %s", run.label, run.error)
