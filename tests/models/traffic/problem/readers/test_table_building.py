"""Node labels: encoding as one word, and uniqueness."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.traffic.problem.readers import Tables, graphml, repetita, sndlib, table_building
from planner_models.traffic.problem.readers.table_building import gravity_demands, keep_largest

ODD = [
    "New York",
    'say "hi"',
    "a,b",
    "<&>",
    "100%",
    "50%20",
    "(x) #1",
    "São Paulo",
    "北京",
    "NA",
    " padded ",
    "1",
]
MBPS = st.floats(1e-3, 1e7)
# XML and CSV files cannot represent control characters, nor UTF-8 files single surrogates
PRINTABLE = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), min_size=1
)
ANY = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
WRITERS: list[tuple[Callable[..., None], str]] = [
    (repetita.write, "net.graph"),
    (graphml.write, "net.graphml"),
    (sndlib.write, "net.xml"),
    (sndlib.write, "net.txt"),
]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_label_is_encoded_as_one_word(label: str) -> None:
    word = table_building.encode(label)
    assert word.split() == [word]
    assert not set("()#") & set(word)
    assert table_building.decode(word) == label


@given(st.lists(st.sampled_from(["", " ", "a", "b", "a (1)", "1", "2"]), max_size=6))
def test_labels_are_unique(names: list[str]) -> None:
    made = table_building.make_unique(names, [str(index) for index in range(len(names))])
    assert len(set(made)) == len(names)
    assert all(label.strip() for label in made)
    assert all(
        label == name
        for label, name in zip(made, names, strict=True)
        if names.count(name) == 1 and name.strip()
    )


def test_gravity_is_proportional_to_masses_and_the_same_for_a_seed() -> None:
    tail, head = np.array([0, 1, 1, 2, 0, 2]), np.array([1, 0, 2, 1, 2, 0])
    source, target, share = gravity_demands(nodes=3, tail=tail, head=head, seed=7)
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 2),
        (2, 0),
        (2, 1),
    ]
    assert share.sum() == pytest.approx(1)
    # sent x received: the product around the triangle is the same either way
    assert share[0] * share[3] * share[4] == pytest.approx(share[1] * share[5] * share[2])
    assert np.array_equal(share, gravity_demands(nodes=3, tail=tail, head=head, seed=7)[2])
    assert not np.array_equal(share, gravity_demands(nodes=3, tail=tail, head=head, seed=8)[2])


def test_gravity_draws_no_demand_without_a_path() -> None:
    # 0 -> 1 -> 2 one way, 3 without links
    source, target, _ = gravity_demands(nodes=4, tail=np.array([0, 1]), head=np.array([1, 2]), seed=0)
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == {(0, 1), (0, 2), (1, 2)}


def test_gravity_of_no_links_is_empty() -> None:
    none = np.array([], dtype=np.intp)
    assert [len(share) for share in gravity_demands(nodes=2, tail=none, head=none, seed=0)] == [0, 0, 0]


@given(st.lists(st.integers(0, 5).map(float), max_size=9), st.integers(1, 12))
def test_largest_keeps_the_largest_in_their_order(rates: list[float], pairs: int) -> None:
    rate = np.array(rates)
    selected = keep_largest(rate, pairs)
    assert len(selected) == min(pairs, len(rates))
    assert sorted(selected.tolist()) == selected.tolist()
    assert sorted(rate[selected], reverse=True) == sorted(rates, reverse=True)[: len(selected)]
    assert keep_largest(rate, None).tolist() == list(range(len(rates)))


@st.composite
def tables(draw: st.DrawFn, label: st.SearchStrategy[str] = PRINTABLE, symmetric: bool = False) -> Tables:
    """Draw small networks with odd labels; with parallel links of different capacity unless `symmetric`."""
    named = label.filter(lambda text: bool(text.strip()))
    nodes = draw(st.lists(st.sampled_from(ODD) | named, min_size=2, max_size=5, unique=True))
    pair = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)).filter(lambda ends: ends[0] != ends[1])
    links: list[Any] = draw(
        st.lists(st.tuples(pair, MBPS, st.floats(0.5, 1e4), st.floats(1e-3, 1e3)), max_size=6)
    )
    if symmetric:
        links = [link for ends, *values in links for link in ((ends, *values), (ends[::-1], *values))]
    demands = draw(st.lists(st.tuples(pair, MBPS), max_size=5, unique_by=lambda demand: demand[0]))
    degrees = st.lists(st.floats(0.001, 89.999), min_size=len(nodes), max_size=len(nodes))
    position = {"latitude": draw(degrees), "longitude": draw(degrees)} if draw(st.booleans()) else {}
    first, second = (pd.Series([ends[i] for ends, *_ in links], dtype="str") for i in (0, 1))
    return {
        "nodes": pd.DataFrame({"node": pd.Series(nodes, dtype="str"), **position}),
        "links": pd.DataFrame(
            {
                "tail": first,
                "head": second,
                "capacity_mbps": np.array([link[1] for link in links], dtype=float),
                "weight": np.array([link[2] for link in links], dtype=float),
                "cost": np.array([link[2] for link in links], dtype=float),
                "latency_ms": np.array([link[3] for link in links], dtype=float),
            }
        ),
        "demands": pd.DataFrame(
            {
                "source": pd.Series([ends[0] for ends, _ in demands], dtype="str"),
                "target": pd.Series([ends[1] for ends, _ in demands], dtype="str"),
                "rate_mbps": np.array([rate for _, rate in demands], dtype=float),
            }
        ),
    }


def require_same(made: Tables, read: Tables, *, without: tuple[str, ...] = ()) -> None:
    """Assert equality to the last bit, except for columns that the format does not have."""
    for name, table in made.items():
        selected = [column for column in table if column not in without]
        if table.empty:  # no value, no column where the format writes 0 for unknown
            selected = [column for column in selected if column in read[name]]
        pd.testing.assert_frame_equal(read[name], table[selected], check_exact=True)


def in_folder(test: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        test(Path(folder))


@given(tables(label=ANY))
def test_repetita(made: Tables) -> None:
    def round_trip(folder: Path) -> None:
        repetita.write(made, folder / "net.graph")
        read = repetita.read(folder / "net.graph")
        require_same(made, read, without=("cost",))

    in_folder(round_trip)


@given(tables())
def test_graphml(made: Tables) -> None:
    def round_trip(folder: Path) -> None:
        graphml.write(made, folder / "net.graphml", demands=folder / "demands.csv")
        if made["demands"].empty:
            return  # a demands file without rows is an error
        require_same(made, graphml.read(folder / "net.graphml", demands=folder / "demands.csv"))

    in_folder(round_trip)


@given(tables(), st.sampled_from(["bps", "kbps", "mbps", "gbps"]))
def test_sndlib_xml(made: Tables, unit: Any) -> None:
    def round_trip(folder: Path) -> None:
        sndlib.write(made, folder / "net.xml", link_direction="directed", unit=unit)
        read = sndlib.read(folder / "net.xml", link_direction="directed", unit=unit)
        require_same(made, read, without=("weight", "latency_ms"))

    in_folder(round_trip)


@given(tables(label=ANY), st.sampled_from(["bps", "kbps", "mbps", "gbps"]))
def test_sndlib_text(made: Tables, unit: Any) -> None:
    def round_trip(folder: Path) -> None:
        sndlib.write(made, folder / "net.txt", link_direction="directed", unit=unit)
        read = sndlib.read(folder / "net.txt", link_direction="directed", unit=unit)
        require_same(made, read, without=("weight", "latency_ms"))

    in_folder(round_trip)


@given(tables(symmetric=True), st.sampled_from(["xml", "native"]))
def test_sndlib_writes_opposite_links_as_one(made: Tables, syntax: Any) -> None:
    def round_trip(folder: Path) -> None:
        sndlib.write(made, folder / "net", syntax=syntax)
        read = sndlib.read(folder / "net", link_direction="bidirected")
        columns = ["tail", "head", "capacity_mbps", "cost"]
        if made["links"].empty:
            assert read["links"].empty
        else:
            assert sorted(read["links"][columns].values.tolist()) == sorted(
                made["links"][columns].values.tolist()
            )
        pd.testing.assert_frame_equal(read["demands"], made["demands"], check_exact=True)

    in_folder(round_trip)


def small() -> Tables:
    return {
        "nodes": pd.DataFrame({"node": ["a", "b"]}),
        "links": pd.DataFrame({"tail": ["a"], "head": ["b"], "capacity_mbps": [10.0]}),
        "demands": pd.DataFrame({"source": ["a"], "target": ["b"], "rate_mbps": [1.0]}),
    }


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_ends_that_are_no_nodes_are_errors(write: Callable[..., None], name: str, tmp_path: Path) -> None:
    made = small()
    made["links"].loc[0, "head"] = "B"
    made["demands"].loc[0, "source"] = "x"
    made["nodes"].loc[1, "node"] = ""
    with pytest.raises(InputError) as caught:
        write(made, tmp_path / name)
    assert caught.value.faults == (
        "nodes row 2: node is empty",
        "links row 1: head is 'B', must be a node; valid: , a",
        "demands row 1: source is 'x', must be a node; valid: , a",
        "demands row 1: target is 'b', must be a node; valid: , a",
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("write", "name"), WRITERS)
def test_a_missing_folder_is_an_error(write: Callable[..., None], name: str, tmp_path: Path) -> None:
    path = tmp_path / "missing" / name
    with pytest.raises(InputError) as caught:
        write(
            small(),
            path,
            **({} if name != "net.xml" and name != "net.txt" else {"link_direction": "directed"}),
        )
    assert str(caught.value) == f"{path}: cannot be written (No such file or directory)"


@pytest.mark.parametrize(
    ("write", "parameters"), [(graphml.write, {}), (sndlib.write, {"link_direction": "directed"})]
)
def test_control_characters_in_xml_are_an_error(
    write: Callable[..., None], parameters: dict[str, Any], tmp_path: Path
) -> None:
    made = small()
    made["nodes"].loc[0, "node"] = made["links"].loc[0, "tail"] = made["demands"].loc[0, "source"] = "a\x01"
    with pytest.raises(InputError) as caught:
        write(made, tmp_path / "net.xml", **parameters)
    assert str(caught.value) == r"'a\x01': character '\x01' has no place in XML"


def test_sndlib_links_without_an_opposite_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        sndlib.write(small(), tmp_path / "net.xml")
    assert str(caught.value) == (
        "links row 1: 'a' to 'b' has no opposite of the same capacity and cost; "
        "set link_direction = 'directed'"
    )
