"""Draw the figures of how-to pages from shipped scenarios, without a browser.

python docs/figures.py [NAME...]        default: all
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

import planner
from planner.contract.drawing import Curve, Points
from planner.reports.drawing_svg import drawing_svg
from planner.reports.pdf import png

PICTURES: Final = Path(__file__).parent / "pictures"
SCENARIOS: Final = Path(__file__).parents[1] / "data" / "scenarios"
WIDTH: Final = 1_400
MOVES: Final = (0, 5, 10, 20, 40, 60, 100, 200)
"""Limits on links made anew, of the figure on what moving links gains."""
THREE_REPLICAS: Final = 3
"""Replicas of each partition, among which routers choose, of the figure on messages."""


def draw_crossover() -> Curve:
    """Return the share of the demand that designs deliver, from uniform to skewed demand."""
    scenario = "rotors/crossover"
    values = tomllib.loads((SCENARIOS / f"{scenario}.toml").read_text())["sweep"]["problem.skew"]
    designs = ["two_hop", "valiant", "direct", "scheduled"]
    frame = _measure(scenario, "problem.skew", values, "served_share", designs=designs, factor=100.0)
    title = "Demand that is delivered, by the share that goes to a few partners"
    return Curve(title=title, frame=frame, units=dict.fromkeys(frame.columns[1:], "%"))


def draw_topology_gain() -> Curve:
    """Return the demand that designs carry relative to today, by the number of links that may be added."""
    frame = _measure("topology/jupiter", "problem.move_limit", MOVES, "demand_scale")
    title = "Times the demand that is carried, by links made anew"
    return Curve(title=title, frame=frame, units={"move_limit": "links"})


def draw_messages() -> Points:
    """Return the share of the bound that designs reach, against the messages of their control planes."""
    result = planner.compare(
        "fairshare/coordination",
        designs=["unmodified", "static_rates", "fq_pp", "fq_pp_rs", "fq_pp_wa",
                 "fq_pp_wa_flow", "pisces", "optimum"],
        changes={"problem.replicas": THREE_REPLICAS},
    )  # fmt: skip
    bound = result["optimum"].proof.bound
    frame = result.metrics[["messages", "min_share"]].astype(float).rename_axis("design").reset_index()
    share = frame.pop("min_share") * 100.0 / bound
    frame["share of the bound"] = share
    title = "Least share of a tenant, of the proven bound, by messages of control planes"
    return Points(title=title, frame=frame, units={"share of the bound": "%"})


def _measure(
    scenario: str,
    parameter: str,
    values: Sequence[Any],
    metric: str,
    *,
    designs: Sequence[str] | None = None,
    factor: float = 1.0,
) -> pd.DataFrame:
    """Return a metric of a scenario's designs, times a factor, for each value of a parameter."""
    rows = []
    for value in values:
        result = planner.compare(scenario, designs=designs, changes={parameter: value})
        measured = result.metrics[metric].astype(float).to_dict()
        rows.append(
            {parameter.split(".")[-1]: value}
            | {str(name): factor * number_ for name, number_ in measured.items()}
        )
    return pd.DataFrame(rows)


FIGURES: Final[dict[str, Callable[[], Curve | Points]]] = {
    "fairshare_messages": draw_messages,
    "rotors_crossover": draw_crossover,
    "topology_gain": draw_topology_gain,
}


def main(names: list[str]) -> None:
    """Write the pictures of some figures."""
    for name in names or FIGURES:
        (PICTURES / f"{name}.png").write_bytes(png(drawing_svg(FIGURES[name](), WIDTH), WIDTH))


if __name__ == "__main__":
    main(sys.argv[1:])
