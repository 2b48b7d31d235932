"""Conformance tests of every design with every value of each parameter and option that changes its search.

No plan beats a bound, whichever search found either; every plan keeps what it claims; a combination that is
refused is refused in one clear line. They run on the smallest problem that a system declares, and on random
variants of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from planner.contract.parameters import Parameter
from planner.contract.system import System
from planner.errors import InputError
from planner.options import Options
from planner.runs.run import Run
from planner.testing.bounds import check_bounds, check_optimum
from planner.testing.cases import Cases, Runs, check_refusal, tiny_problem
from planner.testing.parameter_values import values_to_try
from planner.testing.variants import limit_time, random_variant

VARIANTS: Final = 4
"""Random variants of the smallest problem that are tried with every value."""
OTHER_OPTIONS: Final[Sequence[Mapping[str, Any]]] = (
    {"service": "all"},
    {"gap": 0.1},
    {"time_limit_s": 0.01},
    {"seed": 7},
)


def search_cases(
    system: System, parameters: Mapping[str, Mapping[str, Any]], options: Options, variants: int = VARIANTS
) -> Cases:
    """Yield the tests of every design with every value of its parameters.

    variants  number of random problems beside the smallest one
    """
    for seed in range(variants + 1):
        searches = _searches(system, partial(_problem_of, system, seed), parameters, options)
        on = "smallest problem" if seed == 0 else f"random variant {seed}"
        for design in system.designs:
            yield f"{on}: {design.name} with every value", partial(searches.check, design.name)
        yield f"{on}: no plan of any value beats a bound", searches.check_bounds
        yield f"{on}: no plan of any value beats an optimum", searches.check_optimum


def check_searches(system: System, problem: Any) -> None:
    """Check every design with every value of its parameters on one problem, as `search_cases` do."""
    searches = _searches(system, partial(_same, problem), {}, Options(threads=1, seed=1))
    searches.check_bounds()
    searches.check_optimum()


def _searches(
    system: System,
    make: Callable[[], Any],
    parameters: Mapping[str, Mapping[str, Any]],
    options: Options,
) -> _Searches:
    return _Searches(Runs(system, make, parameters, limit_time(options)))


def _same(problem: Any) -> Any:
    return problem


def _problem_of(system: System, seed: int) -> Any:
    problem = tiny_problem(system)
    return random_variant(system, problem, seed) if seed else problem


class _Searches:
    """Runs of the designs of a system with every value of their parameters, each made once."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._made: dict[str, list[Run]] = {}

    def of(self, name: str) -> list[Run]:
        """Return the runs of a design that are not refused."""
        if name not in self._made:
            tried = [self._run(name, {}, self._options(more)) for more in ({}, *OTHER_OPTIONS)]
            tried += [run for parameter in self._parameters(name) for run in self._with(name, parameter)]
            self._made[name] = [run for run in tried if run is not None]
        return self._made[name]

    def check(self, name: str) -> None:
        """Check that every value of a design's parameters has a plan that keeps its claims, or is refused."""
        self.of(name)

    def check_bounds(self) -> None:
        """Check that no plan beats a bound, whichever values found either."""
        check_bounds(self.all())

    def check_optimum(self) -> None:
        """Check that no plan beats one that is proven optimal."""
        check_optimum(self.all())

    def all(self) -> list[Run]:
        """Return the runs of all designs."""
        return [run for design in self._runs.system.designs for run in self.of(design.name)]

    def _parameters(self, name: str) -> list[Parameter]:
        return list(self._runs.system.design(name).parameters.values())

    def _options(self, more: Mapping[str, Any]) -> Options:
        return replace(self._runs.options, **more)

    def _with(self, name: str, parameter: Parameter) -> Iterator[Run | None]:
        """Yield a run of each value; one that is refused alone is tried with each value of the others."""
        for value in values_to_try(parameter):
            run = self._run(name, {parameter.name: value})
            yield run
            if run is None:
                yield self._run_with_another(name, {parameter.name: value})

    def _run_with_another(self, name: str, values: Mapping[str, Any]) -> Run | None:
        """Return the first run of a value with a value of another parameter; None where all are refused."""
        for parameter in self._parameters(name):
            for value in values_to_try(parameter) if parameter.name not in values else ():
                if (run := self._run(name, {**values, parameter.name: value})) is not None:
                    return run
        return None

    def _run(self, name: str, values_given: Mapping[str, Any], options: Options | None = None) -> Run | None:
        """Return a run; None where it is refused in clear lines.

        raises  AssertionError with the values where anything else happens
        """
        values = ", ".join(f"{key}={value}" for key, value in values_given.items())
        try:
            return self._runs.fresh(name, options, values_given)
        except InputError as error:
            check_refusal(error, f"{name}({values})")
            return None
        except Exception as error:
            raise AssertionError(f"{name}({values}): {type(error).__name__}: {error}") from error
