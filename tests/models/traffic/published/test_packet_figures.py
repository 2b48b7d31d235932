"""Figures by packets: comparisons of runs, means and errors over seeds, and the values that ship."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from benchmarks.packet_figures import read_store, select_seeds, summarize_rows
from planner.contract.simulation import SimulationResult
from planner.runs.reproduction import read_published
from planner.runs.shipped_verdicts import load_shipped
from planner_models.traffic.published.packet_figures import (
    FIGURES,
    INTERVALS_S,
    Size,
    above,
    at_interval,
    below,
    completion_above,
    find_crossing,
    growth,
    run_seed,
    summarize,
)

SHIPPED = ("figure_7", "figure_10", "figure_11")


def result(mbps: float, flows: pd.DataFrame | None = None) -> SimulationResult:
    """Return a run with a throughput, and flows."""
    return SimulationResult(
        metrics={"throughput_mbps": mbps},
        tables={} if flows is None else {"flows": flows},
        rounds=pd.DataFrame(),
    )


def flow_table(rows: list[tuple[int, str, float, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["flow", "source", "start_s", "end_s"])


def at_intervals(mbps: list[float]) -> dict[str, SimulationResult]:
    return {at_interval("LocalFlow", s): result(m) for s, m in zip(INTERVALS_S, mbps, strict=True)}


def test_throughput_is_compared_in_percent() -> None:
    runs = {"a": result(80.0), "b": result(100.0), "ECMP": result(50.0)}
    assert below("a", "b")(runs) == pytest.approx(20)
    assert above("a", "ECMP")(runs) == pytest.approx(60)
    assert growth("LocalFlow")({**runs, **at_intervals([50, 60, 70, 100])}) == pytest.approx(100)


def test_completion_times_are_of_the_flows_that_ended_in_both() -> None:
    """The second flow of x and the first of y, whatever their numbers and the order of the rows."""
    base = flow_table([(0, "x", 0, math.nan), (1, "y", 0, 2), (2, "x", 1, 3)])
    other = flow_table([(9, "x", 2, 5), (0, "x", 0, 1), (5, "y", 0, 3)])
    runs = {"base": result(1.0, base), "other": result(1.0, other)}
    assert completion_above("other", "base")(runs) == pytest.approx(50)


@pytest.mark.parametrize(
    ("mbps", "base", "crossing_ms"),
    [
        ([0, 10, 30, 40], 10 + 20 / 3, 100 * 10 ** (-1 / 3)),
        ([0, 0, 0, 20], 20, 1.0),
        ([0, 1, 2, 3], 20, math.nan),
        ([30, 30, 30, 30], 20, math.nan),
    ],
)
def test_the_interval_of_a_crossing_is_interpolated(
    mbps: list[float], base: float, crossing_ms: float
) -> None:
    """From 100 to 10 ms the first goes from 10 to 30, and a third of that at a third of the logarithm."""
    runs = {**at_intervals(mbps), "PacketScatter": result(base)}
    assert find_crossing(runs, "PacketScatter") == pytest.approx(crossing_ms, nan_ok=True)


def test_means_have_the_standard_errors_of_their_seeds() -> None:
    figure = FIGURES["figure_11"]
    seeds: list[Mapping[str, float]] = [
        {**dict.fromkeys(figure.runs, 100.0 + seed), **dict.fromkeys(figure.values, value)}
        for seed, value in enumerate([10.0, 12.0, 17.0])
    ]
    values = summarize("figure_11", figure.full, seeds)
    assert values.values["traf_f11_lf"] == pytest.approx(13.0)
    assert values.notes["traf_f11_lf"].startswith("standard error 2.1 over 3 seeds by packets, k = 8")
    assert values.shortened == frozenset()
    assert summarize("figure_11", figure.quick, seeds[:1], is_short=True).shortened == {
        *figure.values,
        *figure.missing,
    }


@pytest.mark.parametrize("name", FIGURES)
def test_rows_are_published_and_statements_in_words(name: str) -> None:
    figure, published = FIGURES[name], read_published("traffic")
    rows = {*figure.values, *figure.statements, *figure.missing}
    assert rows <= set(published)
    assert {row for row in rows if published[row]["unit"] == "text"} == set(figure.statements)


@pytest.mark.parametrize("name", SHIPPED)
def test_values_that_ship_are_the_means_of_the_stored_seeds(name: str) -> None:
    size, shipped = FIGURES[name].full, load_shipped()[f"traffic/{name}"]
    rows = select_seeds(read_store(), name, size)
    assert sorted(set(rows["seed"])) == list(range(1, 1 + size.seeds))
    ours = {row.id: row.ours for row in shipped.reproduction.rows if row.id}
    assert shipped.run == "full"
    values = summarize_rows(name, size, rows).values
    assert set(shipped.reproduction.target.rows) == set(values)
    for row, value in values.items():
        assert ours[row] == (value if value is None else pytest.approx(value)), row


@pytest.mark.slow
def test_a_small_figure_has_the_signs_of_the_paper() -> None:
    """Hashing loses a quarter and more to splitting, on 16 hosts."""
    values = run_seed("figure_4", Size(k=4, seconds=0.4, seeds=1), 1)
    assert values["traf_f4_ecmp"] > 25
    assert values["traf_f4_ps"] < 15
    assert np.isfinite(list(values.values())).all()
