"""Random variants of a small problem: other numbers and names in its tables, and rows that are absent.

On each of them every design answers, its plan keeps what it claims, and no plan beats a bound or an optimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.system import System
from planner.errors import InputError
from planner.options import Options
from planner.testing.bounds import check_bounds, check_optimum
from planner.testing.cases import Cases, Runs, check_refusal, tiny_problem
from planner.testing.plans import check_run

FACTORS: Final = (0.25, 0.5, 1.0, 1.5, 3.0)
SHARE_OF_ZEROS: Final = 0.1
SEEDS: Final = (1, 2, 3, 4, 5, 6)
TIME_LIMIT_S: Final = 0.5
"""Time of each run, where the options have none: a bound is valid whenever its search ends."""


def variant_cases(system: System, parameters: Mapping[str, Mapping[str, Any]], options: Options) -> Cases:
    """Yield the tests of all designs on random variants of the smallest problem, with usual parameters."""
    for seed in SEEDS:
        runs = Runs(system, partial(_make_variant, system, seed), parameters, limit_time(options))
        yield f"random variant {seed}: designs keep their claims and bounds", partial(check_variant, runs)


def check_variant(runs: Runs) -> None:
    """Check that every design answers or refuses clearly, and that no plan beats a bound or an optimum."""
    answers = []
    for design in runs.system.designs:
        try:
            check_run(runs, design.name)
        except InputError as error:
            check_refusal(error, design.name)
            continue
        except Exception as error:
            raise AssertionError(f"{design.name}: {type(error).__name__}: {error}") from error
        answers.append(runs.of(design.name))
    check_bounds(answers)
    check_optimum(answers)


def limit_time(options: Options) -> Options:
    """Return options with a short time limit where they have none."""
    return options if options.time_limit_s else replace(options, time_limit_s=TIME_LIMIT_S)


def _make_variant(system: System, seed: int) -> Any:
    return random_variant(system, tiny_problem(system), seed)


def random_variant(system: System, problem: Any, seed: int) -> Any:
    """Return a problem with other numbers and fewer rows; a change that the system refuses is not made."""
    rng = np.random.default_rng(seed)
    tables: dict[str, pd.DataFrame] = {name: frame.copy() for name, frame in problem.to_tables().items()}
    made = system.problem.from_tables(tables)
    for table in system.problem.tables:
        if table.name not in tables or not len(tables[table.name]):
            continue
        names = [name for name in table.columns if name in tables[table.name]]
        for name in (*names, None):
            frame = tables[table.name]
            if name is None:
                other = _without_a_row(frame, rng)
            elif pd.api.types.is_numeric_dtype(frame[name]):
                other = _with_numbers(frame, name, rng)
            else:
                other = _with_names(frame, name, rng)
            if other is None:
                continue
            try:
                made = system.problem.from_tables({**tables, table.name: other})
            except InputError:
                continue
            tables[table.name] = other
    return made


def _with_numbers(frame: pd.DataFrame, name: str, rng: np.random.Generator) -> pd.DataFrame | None:
    """Return a table with other numbers in a column: scaled, some of them 0, or in another order."""
    values = frame[name].to_numpy(dtype=float)
    is_whole = bool(np.all(np.floor(values[~np.isnan(values)]) == values[~np.isnan(values)]))
    if rng.random() < 0.3:
        return frame.assign(**{name: rng.permutation(values)})
    if is_whole and rng.random() < 0.5:
        return None
    factors = rng.choice(FACTORS, len(values))
    if rng.random() < 0.3:
        factors[rng.random(len(values)) < SHARE_OF_ZEROS] = 0.0
    scaled = np.round(values * factors) if is_whole else values * factors
    return frame.assign(**{name: scaled})


def _with_names(frame: pd.DataFrame, name: str, rng: np.random.Generator) -> pd.DataFrame | None:
    """Return a table with the names of a column in another order, every other time."""
    if rng.random() < 0.5:
        return None
    return frame.assign(**{name: frame[name].iloc[rng.permutation(len(frame))].to_numpy()})


def _without_a_row(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame | None:
    """Return a table without one of its rows, every other time; None where it has one row only."""
    if len(frame) < 2 or rng.random() < 0.5:
        return None
    remaining = np.arange(len(frame)) != rng.integers(len(frame))
    shorter: pd.DataFrame = frame[remaining].reset_index(drop=True)
    return shorter
