"""Tables of an ordered keyspace: what they mean as arrays, and faults by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.geostore.problem import generators, key_generators


def test_tables_are_read_as_arrays() -> None:
    problem = generators.small()
    keys = problem.keyspace
    assert keys is not None
    assert keys.kops.tolist() == [1.2, 0.4, 0.3, 0.8]
    assert keys.scans.tolist() == [[0, 2]]
    assert keys.transactions.first.tolist() == [0, 2, 4]
    assert keys.transactions.touched.tolist() == [0, 3, 1, 2]
    assert keys.today is not None
    assert keys.today.tolist() == [0, 0, 1, -1]
    assert keys.weights.messages == pytest.approx(0.1 / 30)


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ("scans", {"first": "m-r", "last": "a-f"}, "first is 'm-r', must not be behind last, 'a-f'"),
        ("scans", {"last": "m-s"}, "'m-s' is no range; did you mean 'm-r'"),
        ("transactions", {"ranges": "a-f + a-f"}, "names a range twice"),
        ("transactions", {"ranges": "a-f + g-k"}, "'g-k' is no range"),
        ("ranges", {"server": "frist"}, "no server"),
        ("ranges", {"kops": 0.0}, "kops are all 0"),
        ("ranges", {"kops": -1.0}, "kops"),
        ("servers", {"kops": 0.0}, "must be greater than 0"),
    ],
)
def test_wrong_values_are_named(table: str, columns: dict[str, Any], message: str) -> None:
    problem = generators.small()
    with pytest.raises(InputError, match=message.replace("?", ".")):
        replace(problem, **{table: getattr(problem, table).assign(**columns)})


@pytest.mark.parametrize(
    ("missing", "message"),
    [("servers", "ranges: has rows, which need a table servers"), ("ranges", "need a table ranges")],
)
def test_tables_that_need_each_other(missing: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(generators.small(), **{missing: None})


def test_a_keyspace_without_servers_today() -> None:
    problem = generators.small()
    assert problem.ranges is not None
    keys = replace(problem, ranges=problem.ranges.assign(server="")).keyspace
    assert keys is not None
    assert keys.today is None
    assert (
        replace(
            problem,
            ranges=pd.DataFrame(columns=problem.ranges.columns),
            servers=None,
            scans=None,
            transactions=None,
        ).keyspace
        is None
    )


@pytest.mark.parametrize("popularity", ["zipf", "lognormal", "transactions"])
def test_the_preset_has_the_load_that_it_is_told(popularity: str) -> None:
    size = {"ranges": 300, "servers": 6, "transactions": 500}
    problem = key_generators.keyspace(popularity=popularity, load=0.4, **size)
    keys = problem.keyspace
    assert keys is not None
    assert keys.kops.sum() / keys.server_kops.sum() == pytest.approx(0.4)
    assert (len(keys.transactions.per_s) == 500) == (popularity == "transactions")
