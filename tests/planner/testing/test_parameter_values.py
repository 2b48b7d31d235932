"""Values of parameters to try: every choice, none, both booleans, and numbers within their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from planner.contract.parameters import check_parameters, parameters_of
from planner.scenarios.catalogue import find_system, system_names
from planner.testing.parameter_values import values_to_try


def design(
    problem: Any,
    *,
    method: Literal["auto", "exact"] = "auto",
    is_strict: bool = True,
    rounds: Annotated[int | None, Field(ge=0)] = None,
    share: Annotated[float, Field(gt=0, le=1)] = 0.5,
    queues: Annotated[int, Field(gt=2, le=64)] = 10,
    shifts: tuple[int, ...] = (1,),
    folder: Path | None = None,
    steps: Annotated[int, Field(ge=0)] = 20_000,
) -> None:
    """Declare a parameter of each kind."""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("method", ["exact"]),
        ("is_strict", [False]),
        ("rounds", [0, 1, 2]),
        ("share", [0.125, 1.0]),
        ("queues", [3, 20, 64]),
        ("shifts", [[1, 2]]),
        ("folder", []),
        ("steps", [0, 1, 2, 5_000, 40_000]),
    ],
)
def test_values_are_those_that_may_change_a_search(name: str, values: list[Any]) -> None:
    assert values_to_try(parameters_of(design)[name]) == values


@pytest.mark.parametrize("system", system_names())
def test_every_value_is_valid_and_no_choice_is_left_out(system: str) -> None:
    for item in find_system(system).designs:
        for parameter in item.parameters.values():
            values = values_to_try(parameter)
            for value in values:
                inputs = {parameter.name: value}
                assert not check_parameters(item.decide, inputs, where="design", what=item.name)[1]
            choices = [
                share for share in parameter.schema.get("anyOf", [parameter.schema]) if "enum" in share
            ]
            declared = {choice for share in choices for choice in share["enum"]}
            assert all(choice in [*values, parameter.default] for choice in declared)
