"""Series of demand matrices: read step by step; only rates differ between the problems."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner.runs.rolling import roll
from planner_models.traffic import Traffic
from planner_models.traffic.problem import series
from planner_models.traffic.problem.readers import sndlib
from tests.models.traffic.networks import both_ways, network

NET = network(both_ways([("a", "b", 9.0), ("b", "c", 9.0), ("c", "a", 9.0)]), [("a", "b", 1.0)])
PAIRS = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")]


def table(steps: int, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    rows = [
        (str(step), *pair, float(random.integers(0, 5)))
        for step in range(steps)
        for pair in PAIRS
        if random.random() < 0.8 or pair == PAIRS[0]
    ]
    return pd.DataFrame(rows, columns=["step", "source", "target", "rate_mbps"])


def save(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
@pytest.mark.parametrize("rows", [series.ROWS_PER_READ, 3])
def test_each_step_is_the_matrix_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, rows: int
) -> None:
    monkeypatch.setattr(series, "ROWS_PER_READ", rows)  # steps may lie across two parts of the file
    frame = table(20)
    result = dict(series.read(save(frame, tmp_path / name), network=NET))
    assert list(result) == [str(step) for step in range(20)]
    for step, problem in result.items():
        current = frame[frame["step"] == step].set_index(["source", "target"])["rate_mbps"]
        got = problem.demands.set_index(["source", "target"])["rate_mbps"]
        assert got[got > 0].sort_index().equals(current[current > 0].sort_index())
        fresh = Traffic(nodes=problem.nodes, links=problem.links, demands=problem.demands)
        assert fresh.targets.tolist() == problem.targets.tolist()
        assert (fresh.distance == problem.distance).all()


@pytest.mark.slow
def test_four_thousand_steps_take_the_memory_of_a_few(tmp_path: Path) -> None:
    steps = 4000
    frame = pd.concat([table(40)] * (steps // 40), ignore_index=True)
    frame["step"] = np.repeat(np.arange(steps), 1)[
        (frame["step"] != frame["step"].shift()).cumsum().to_numpy() - 1
    ].astype(str)
    path = save(frame, tmp_path / "long.parquet")
    total = frame["rate_mbps"].sum()
    del frame
    result = series.read(path, network=NET)
    tracemalloc.start()
    count, carried = 0, 0.0
    peak_early = 0
    for count, (_, problem) in enumerate(result, start=1):
        carried += float(problem.rate_mbps.sum())
        if count == 50:
            peak_early = tracemalloc.get_traced_memory()[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == steps
    assert carried == pytest.approx(total)
    assert peak < 2 * peak_early


def test_a_design_rolls_through_a_series(tmp_path: Path) -> None:
    results = series.read(save(table(6), tmp_path / "s.csv"), network=NET)
    result = roll(results, designs={"optimum": {"objective": "utilization"}})
    assert len(result) == 6
    assert all(window.plan is not None for window in result)
    assert [window.label for window in result] == [label for label, _ in results]


def test_time_is_read_as_step_and_busiest_has_every_demand(tmp_path: Path) -> None:
    frame = table(5).rename(columns={"step": "time"})
    result = series.read(save(frame, tmp_path / "s.csv"), network=NET)
    largest = frame.groupby(["source", "target"])["rate_mbps"].max()
    got = result.busiest.demands.set_index(["source", "target"])["rate_mbps"]
    assert got.sort_index().equals(largest.sort_index())
    assert len(list(result)) == len(result) == 5


def test_a_folder_of_sndlib_files(tmp_path: Path) -> None:
    def matrices() -> Iterator[tuple[str, Traffic]]:
        for step in range(3):
            yield f"m-{step}", NET.with_rates(np.array([step + 1.0]))

    for name, problem in matrices():
        sndlib.write(problem.to_tables(), tmp_path / f"{name}.xml")
    result = series.read(tmp_path)
    assert [(step, problem.rate_mbps.tolist()) for step, problem in result] == [
        ("m-0", [1.0]), ("m-1", [2.0]), ("m-2", [3.0]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step,source,target\n1,a,b\n", "s.csv: column 'rate_mbps' is missing"),
        ("step,source,target,rate_mbps\n1,a,z,1\n", "s.csv row 2: target 'z' is no node of the network"),
        ("step,source,target,rate_mbps\n1,a,b,-1\n", "s.csv row 2: rate_mbps is -1.0, must be at least 0"),
        (
            "step,source,target,rate_mbps\n1,a,b,1\n2,a,b,1\n1,b,c,1\n",
            "s.csv row 4: step '1' comes again, its rows must be consecutive",
        ),
        ("step,source,target,rate_mbps\n1,a,b,1\n1,a,b,2\n", "step '1' has a->b more than once"),
        (
            "step,source,target,rate_mbps\n1,a,a,1\n",
            "s.csv row 2: source and target are both 'a', must differ",
        ),
        ("", "s.csv: is empty, must begin with a line of column names"),
        ("step,source,target" + "," * 70_000, "s.csv: has 70,003 columns, must have at most 1,000"),
    ],
)
def test_each_error_of_a_series_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        list(series.read(path, network=NET))
    assert str(caught.value).startswith(message)


def test_a_table_needs_a_network_and_a_folder_needs_files(tmp_path: Path) -> None:
    path = save(table(1), tmp_path / "s.csv")
    with pytest.raises(InputError, match="holds demands only; a table of them needs a network"):
        series.read(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no SNDlib files"):
        series.read(tmp_path / "empty", network=NET)


def test_percentile_of_each_demand(tmp_path: Path) -> None:
    rows = [(str(step), "a", "b", float(step)) for step in range(1, 11)]
    rows += [(str(step), "b", "c", 5.0) for step in (1, 2)]
    frame = pd.DataFrame(rows, columns=["step", "source", "target", "rate_mbps"]).sort_values("step")
    folder = tmp_path / "net"
    folder.mkdir()
    NET.links.to_csv(folder / "links.csv", index=False)
    path = save(frame, tmp_path / "month.csv")
    for percentile, expected in ((100, [10.0, 5.0]), (90, [9.0, 5.0]), (80, [8.0, 0.0]), (85, [9.0, 5.0])):
        problem = series.read_percentile(path=path, network=folder, percentile=percentile)
        rates = dict(zip(problem.demand_labels, problem.rate_mbps.tolist(), strict=True))
        assert [rates["a->b"], rates["b->c"]] == expected


@pytest.mark.parametrize("rows", [series.ROWS_PER_READ, 2])
def test_missing_steps_and_rates_without_a_row_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(series, "ROWS_PER_READ", rows)
    lines = [(300, "a", "b", 1.0), (300, "b", "c", 1.0), (600, "a", "b", 2.0), (1200, "a", "b", 4.0)]
    frame = pd.DataFrame(lines, columns=["time", "source", "target", "rate_mbps"])
    notes: list[str] = []
    with observe_notes(notes.append):
        result = series.read(save(frame, tmp_path / "s.csv"), network=NET)
    assert [label for label, _ in result] == ["300", "600", "1200"]
    assert len(result) == 3
    assert [note for note in notes if "s.csv: " in note and "columns" not in note] == [
        "warning: s.csv: 1 window is missing (900): the 3 windows with rows count, no zeros are added",
        "assumed: s.csv: a demand has rate 0 in a step without a row for it: 2 of 6 rates",
    ]


def test_whole_steps_without_gaps_say_nothing(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        [(step, *pair, 1.0) for step in (1, 2, 3) for pair in PAIRS],
        columns=["step", "source", "target", "rate_mbps"],
    )
    notes: list[str] = []
    with observe_notes(notes.append):
        series.read(save(frame, tmp_path / "s.csv"), network=NET)
    assert not [note for note in notes if note.startswith(("warning: ", "assumed: "))]
