"""Parameters are read from signatures, checked, and put in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from planner.contract.parameters import REQUIRED, check_parameters, parameters_of, spread


def solver(
    problem: Any,
    *,
    mode: Annotated[Literal["fast", "exact"], Field(description="how")] = "fast",
    paths: Annotated[Annotated[int, Field(gt=0)] | Literal["any"], Field(description="which")] = "any",
    share: Annotated[float, Field(ge=0, le=1, description="how much")] = 0.5,
    table: Annotated[Path | None, Field(description="a file")] = None,
    names: tuple[str, ...] = (),
    quiet: bool = False,
    rings: Annotated[tuple[int, ...], Field(min_length=1, max_length=2)] = (1,),
    options: Any = None,
    previous: Any = None,
) -> object:
    return mode, paths, share, table, names, quiet, rings


def check(**given: Any) -> tuple[dict[str, Any], list[str]]:
    return check_parameters(solver, given, where="designs.s", what="design s", folder=Path("/base"))


def test_what_the_engine_hands_over_is_no_parameter() -> None:
    assert list(parameters_of(solver)) == ["mode", "paths", "share", "table", "names", "quiet", "rings"]


def test_words() -> None:
    assert {name: parameter.values for name, parameter in parameters_of(solver).items()} == {
        "mode": "fast | exact",
        "paths": "integer > 0 | any",
        "share": "number >= 0 <= 1",
        "table": "file | none",
        "names": "list of text",
        "quiet": "true | false",
        "rings": "list of integer",
    }
    assert parameters_of(solver)["share"].about == "how much"
    assert parameters_of(solver)["share"].default == 0.5


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"mode": "exact"}, {"mode": "exact"}),
        ({"paths": 3}, {"paths": 3}),
        ({"paths": "any"}, {"paths": "any"}),
        ({"share": 1}, {"share": 1.0}),
        ({"names": ["a", "b"]}, {"names": ("a", "b")}),
        ({"table": "x/links.csv"}, {"table": Path("/base/x/links.csv")}),
        ({"table": "/abs/links.csv"}, {"table": Path("/abs/links.csv")}),
        ({"quiet": True}, {"quiet": True}),
    ],
)
def test_right_values(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert check(**given) == (expected, [])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"moed": "fast"}, "designs.s.moed: no such parameter of design s; did you mean 'mode'?"),
        ({"mode": "exat"}, "designs.s.mode is 'exat', must be fast | exact; did you mean 'exact'?"),
        ({"mode": 3}, "designs.s.mode is 3, must be fast | exact"),
        ({"paths": 0}, "designs.s.paths is 0, must be integer > 0 | any"),
        ({"paths": 2.5}, "designs.s.paths is 2.5, must be integer > 0 | any"),
        ({"share": 1.5}, "designs.s.share is 1.5, must be less than or equal to 1"),
        ({"share": "0.5"}, "designs.s.share is '0.5', must be a number"),
        ({"share": float("nan")}, "designs.s.share is nan, "),
        ({"share": True}, "designs.s.share is true, must be a number"),
        ({"quiet": 1}, "designs.s.quiet is 1, must be true or false"),
        ({"names": "a"}, "designs.s.names is 'a', must be a list"),
        ({"names": ["a", 3]}, "designs.s.names is ['a', 3], item 2 must be text"),
        ({"rings": []}, "designs.s.rings is [], must have at least 1 item"),
        ({"rings": [1, 2, 3]}, "designs.s.rings is [1, 2, 3], must have at most 2 items"),
        ({"table": 3}, "designs.s.table is 3, must be the name of a file"),
    ],
)
def test_wrong_values(given: dict[str, Any], fault: str) -> None:
    values, faults = check(**given)
    assert values == {}
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_all_faults_at_once() -> None:
    assert len(check(moed=1, share=2, paths=-1)[1]) == 3


def test_a_parameter_without_default_is_needed() -> None:
    def read(name: Annotated[str, Field(description="which network")], *, seed: int = 0) -> object:
        return name, seed

    assert parameters_of(read)["name"].default is REQUIRED
    _, faults = check_parameters(read, {}, where="problem", what="source 'x'")
    assert faults == ["problem.name: is missing; source 'x' needs it (which network)"]


@dataclass(frozen=True, kw_only=True)
class Links:
    """A group of parameters; one of them has no default."""

    rate_mbps: Annotated[float, Field(gt=0, description="rate of each link, Mbit/s")]
    factors: dict[str, float] = field(default_factory=dict)
    seed: int = 0


@spread(links=Links)
def grid(problem: Any, *, nodes: int = 4, links: Links, hops: int = 2) -> tuple[int, Links, int]:
    """Build a grid."""
    return nodes, links, hops


@spread(links=Links(rate_mbps=10.0))
def ring(*, links: Links) -> Links:
    return links


def test_fields_of_a_group_are_parameters_in_its_position() -> None:
    assert {name: parameter.default for name, parameter in parameters_of(grid).items()} == {
        "nodes": 4,
        "rate_mbps": REQUIRED,
        "factors": {},
        "seed": 0,
        "hops": 2,
    }
    assert parameters_of(grid)["rate_mbps"].about == "rate of each link, Mbit/s"
    assert grid.__doc__ == "Build a grid."
    assert grid(None, rate_mbps=1.0, hops=3) == (4, Links(rate_mbps=1.0), 3)


def test_defaults_of_a_group_are_those_of_its_object() -> None:
    assert parameters_of(ring)["rate_mbps"].default == 10.0
    assert ring() == Links(rate_mbps=10.0)
    assert ring(seed=1) == Links(rate_mbps=10.0, seed=1)


def test_errors_of_a_group_are_those_of_parameters() -> None:
    assert check_parameters(grid, {"rate_mbps": 0, "sede": 1}, where="problem", what="preset 'grid'") == (
        {},
        [
            "problem.rate_mbps is 0, must be greater than 0",
            "problem.sede: no such parameter of preset 'grid'; did you mean 'seed'?",
        ],
    )
    _, faults = check_parameters(grid, {}, where="problem", what="preset 'grid'")
    assert faults == ["problem.rate_mbps: is missing; preset 'grid' needs it (rate of each link, Mbit/s)"]
    with pytest.raises(TypeError, match="rate_mbps"):
        grid(None)
    with pytest.raises(TypeError, match="links"):
        ring(links=Links(rate_mbps=1.0))
