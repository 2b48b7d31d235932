"""Each whole number that a generator takes has an upper limit: none makes a problem that never ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from planner.contract.parameters import parameters_of
from planner.scenarios.catalogue import find_system, system_names

SEEDS: Final = ("seed", "failure_seed", "churn_seed", "arrangement")
"""Parameters that seed draws, where any number is as good."""


def unlimited(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the whole numbers of a JSON schema that have no upper limit."""
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and not {"maximum", "exclusiveMaximum"} & schema.keys():
            yield schema
        for part in schema.values():
            yield from unlimited(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from unlimited(part)


@pytest.mark.parametrize("name", system_names())
def test_whole_numbers_of_generators_have_an_upper_limit(name: str) -> None:
    problem = find_system(name).problem
    makers = {**problem.sources, **problem.presets, **problem.series}
    assert [
        (source, parameter.name)
        for source, make in makers.items()
        for parameter in parameters_of(make).values()
        if parameter.name not in SEEDS and any(unlimited(parameter.schema))
    ] == []
