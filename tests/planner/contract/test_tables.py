"""Tables: rules, defaults, rows by name, round trips and digests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import pandas as frames

from planner.contract import tables
from planner.contract.table import Table, choice, label, number
from planner.contract.tables import collect_tables, digest, is_valid, row_name, validate, validate_tables
from planner.errors import InputError
from planner.io.layout import Layout, TableFile
from planner.io.table_files import find_tables, read_table, read_tables, write_table
from planner.io.text_files import read_text

PARTS = Table(
    name="parts",
    about="a part",
    columns={
        "part": label("its name"),
        "mass_kg": number("mass", more_than=0),
        "share": number("share", at_least=0, at_most=1, optional=True, default=0.5),
        "note": number("rest", optional=True),
    },
    key=("part",),
)


CELLS = {
    "part": st.sampled_from(["a", "b", "", 7, 7.0, None, "nan"]),
    "kind": st.sampled_from(["old", "new", "", None, "other"]),
    "mass_kg": st.sampled_from([1.0, 2, 0.0, -1.0, np.nan, np.inf, "3", "4 kg"]),
    "count": st.sampled_from([0.0, 1e-9, 2.0, 2.5, np.nan, 1e9]),
    "step": st.sampled_from([1.0, 2.0, np.nan]),
    "spare": st.none(),
}


@given(data=st.data(), compact=st.booleans(), rows=st.integers(0, 4), may_be_empty=st.booleans())
@settings(max_examples=150)
def test_the_quick_check_says_what_the_whole_one_says(
    data: st.DataObject, compact: bool, rows: int, may_be_empty: bool
) -> None:
    columns = {
        "part": label("", may_be_blank=data.draw(st.booleans())),
        "kind": choice("", ["old", "new"], optional=True, may_be_blank=True),
        "mass_kg": number("", more_than=0, optional=True, default=1.0),
        "count": number("", at_least=0, least=1e-6, whole=True, optional=True, may_be_blank=True),
        "step": number("", optional=True, may_be_blank=True),
    }
    key = data.draw(st.sampled_from([(), ("part",), ("part", "step"), ("part", "kind")]))
    table = Table(name="t", about="", columns=columns, key=key, compact=compact, may_be_empty=may_be_empty)
    names = data.draw(st.lists(st.sampled_from(sorted(CELLS)), unique=True, min_size=1))
    inputs = pd.DataFrame(
        {name: data.draw(st.lists(CELLS[name], min_size=rows, max_size=rows)) for name in names}
    )
    with mock.patch.object(tables, "is_valid", return_value=False):
        try:
            valid = validate(table, inputs)
        except InputError:
            assert not is_valid(table, inputs)
            return
        again = validate(table, valid)
    assert is_valid(table, valid) or not rows  # no rows of categories have no type
    pd.testing.assert_frame_equal(validate(table, valid), again, check_exact=True)
    if is_valid(table, inputs):
        pd.testing.assert_frame_equal(inputs, valid, check_exact=True)


def test_defaults_types_and_order() -> None:
    frame = validate(PARTS, pd.DataFrame({"mass_kg": [1, 2], "part": [7, "b"]}))
    assert frame.columns.tolist() == ["part", "mass_kg", "share"]
    assert frame["part"].tolist() == ["7", "b"]
    assert frame["mass_kg"].dtype == float
    assert frame["share"].tolist() == [0.5, 0.5]
    assert PARTS.signature() == "parts(part, mass_kg, share?, note?)"


def test_only_shares_are_written_in_percent() -> None:
    table = Table(name="t", about="", columns={"part": number("", at_most=1, share=True), "size": number("")})
    frame = pd.DataFrame({"part": ["50%", " 12.5 %", 0.25, "1"], "size": [1.0, 2.0, 3.0, 4.0]})
    assert validate(table, frame)["part"].tolist() == [0.5, 0.125, 0.25, 1.0]
    with pytest.raises(InputError) as info:
        validate(table, pd.DataFrame({"part": ["150%", "x%"], "size": [1.0, 2.0]}))
    assert info.value.faults == ("t row 2: part is 'x%', must be a number without a percent sign",)
    with pytest.raises(InputError) as info:
        validate(table, pd.DataFrame({"part": ["150%", "1"], "size": ["5%", 2.0]}))
    assert info.value.faults == ("t row 1: size is '5%', must be a number without a percent sign",)


def test_percent_signs_and_decimal_commas_in_a_file(tmp_path: Path) -> None:
    table = Table(name="t", about="", columns={"part": number("", share=True), "size": number("")})
    (tmp_path / "t.csv").write_text("part;size\n12,5 %;1,5\n7%;2\n")
    result = read_table(table, tmp_path / "t.csv")
    assert result.to_numpy().tolist() == [[0.125, 1.5], [0.07, 2.0]]


def test_missing_columns_name_where_a_scenario_maps_them(tmp_path: Path) -> None:
    table = Table(name="t", about="", columns={"tail": label(""), "head": label("")})
    (tmp_path / "t.csv").write_text("From,Towards\na,b\n")
    file = TableFile(path=tmp_path / "t.csv", layout=Layout(key="problem.tables.t"))
    with pytest.raises(InputError) as info:
        read_table(table, file)
    assert info.value.faults[-1] == (
        't.csv: columns with other names can be mapped: write [problem.columns.t] tail = "NAME" '
        'and head = "NAME"'
    )
    with pytest.raises(InputError) as info:
        read_table(table, tmp_path / "t.csv")
    assert [line.partition(" (it has ")[0] for line in info.value.faults] == [
        "t.csv: column 'tail' is missing",
        "t.csv: column 'head' is missing",
    ]


def test_an_integer_beyond_floats_is_not_finite() -> None:
    mass = pd.Series([10**400, 1], dtype=object)
    with pytest.raises(InputError, match=r"parts row 1: mass_kg is inf, must be a finite number"):
        validate(PARTS, pd.DataFrame({"part": ["a", "b"], "mass_kg": mass}))


def test_the_callers_frame_stays_as_it_is() -> None:
    given_ = pd.DataFrame({"part": ["a"], "mass_kg": [1]})
    before = given_.copy()
    validate(PARTS, given_)
    pd.testing.assert_frame_equal(given_, before)


def test_faults_stand_in_the_order_of_rows() -> None:
    frame = pd.DataFrame({"part": ["a", "", "c"], "mass_kg": [1.0, 1.0, -1.0], "share": [2.0, 0.0, 0.0]})
    with pytest.raises(InputError) as caught:
        validate(PARTS, frame)
    assert caught.value.faults == (
        "parts row 1: share is 2.0, must be at most 1",
        "parts row 2: part is '', must not be empty",
        "parts row 3: mass_kg is -1.0, must be greater than 0",
    )


def test_a_true_is_no_number() -> None:
    with pytest.raises(InputError, match="parts row 1: mass_kg is 'True', must be a number"):
        validate(PARTS, pd.DataFrame({"part": ["a"], "mass_kg": [True]}))


def test_rows_of_a_file_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "parts.csv"
    path.write_text("part,mass_kg\n\na,1\n\nb,2\n")
    frame = read_table(PARTS, path)
    assert [row_name(frame, "parts", position) for position in (0, 1)] == [
        "parts.csv row 3",
        "parts.csv row 5",
    ]


NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), min_size=1
)
COLUMNS = [
    frames.column("part", elements=NAMES, unique=True, dtype=object),
    frames.column("mass_kg", elements=st.floats(1e-200, 1e300)),
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@given(frame=frames.data_frames(COLUMNS, index=frames.range_indexes(min_size=1)))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, frame: pd.DataFrame
) -> None:
    path = tmp_path_factory.mktemp("t") / f"parts{suffix}"
    write_table(frame, path)
    again = read_table(PARTS, path)
    assert again["part"].tolist() == frame["part"].tolist()
    assert again["mass_kg"].tolist() == frame["mass_kg"].tolist()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "nothing half-written stays"


def test_faults_of_all_tables_come_together(tmp_path: Path) -> None:
    other = Table(name="others", about="", columns={"x": number("")})
    (tmp_path / "parts.csv").write_text("part,mass_kg\na,-1\n")
    (tmp_path / "others.csv").write_text("x\ny\n")
    files = find_tables([PARTS, other], tmp_path)
    with pytest.raises(InputError) as caught:
        read_tables([PARTS, other], files)
    assert len(caught.value.faults) == 2


def test_optional_tables_may_be_absent(tmp_path: Path) -> None:
    assert find_tables([PARTS], tmp_path, optional=["parts"]) == {}


def test_text_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfhello\r\n")
    assert read_text(path) == "hello\n"


def test_digests_tell_contents_apart() -> None:
    item = {"a": pd.DataFrame({"x": [1.0, 2.0], "n": ["p", "q"]})}
    same = {"a": pd.DataFrame({"x": [1, 2], "n": ["p", "q"]})}
    other = {"a": pd.DataFrame({"x": [1.0, 2.0], "n": ["p", "r"]})}
    assert digest(item) == digest(same)
    assert len({digest(item), digest(other), digest({"b": item["a"]}), digest({})}) == 4


LINKED = Table(
    name="linked",
    about="many rows of few names",
    columns={"one": label(""), "two": label("")},
    key=("one", "two"),
    compact=True,
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_compact_tables_hold_their_names_as_categories(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame({"one": ["a", "a", "b"], "two": ["1", "2", "NA"]})
    path = tmp_path / f"linked.{suffix}"
    write_table(frame, path)
    read = read_table(LINKED, path)
    assert all(isinstance(dtype, pd.CategoricalDtype) for dtype in read.dtypes)
    assert read.astype(str).to_numpy().tolist() == frame.to_numpy().tolist()
    assert digest({"linked": read}) == digest({"linked": frame})


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({"one": ["a", "a"], "two": [1, 1]}, "row 2: one 'a', two '1' is there already in row 1"),
        ({"one": ["a", None], "two": ["x", "y"]}, "row 2: one is empty"),
        ({"one": ["a", ""], "two": ["x", "y"]}, "row 2: one is empty"),
        ({"one": ["a", "b"], "tow": ["x", "y"]}, "column 'two' is missing; is it called 'tow'?"),
    ],
)
def test_compact_tables_are_looked_at_as_others_are(
    tmp_path: Path, rows: dict[str, list[object]], fault: str
) -> None:
    path = tmp_path / "linked.parquet"
    pd.DataFrame(rows).to_parquet(path)
    with pytest.raises(InputError) as caught:
        read_table(LINKED, path)
    assert any(fault in line for line in caught.value.faults)


def test_rows_without_the_columns_of_their_key_are_not_compared() -> None:
    notes = Table(
        name="notes",
        about="a note",
        columns={"part": label("its name", optional=True), "mass_kg": number("mass")},
        key=("part",),
    )
    assert len(validate(notes, pd.DataFrame({"mass_kg": [1.0, 1.0]}))) == 2


def test_numbers_and_their_texts_are_one_name() -> None:
    frame = pd.DataFrame({"one": pd.Series([1, "1"], dtype=object), "two": ["x", "y"]})
    assert validate(LINKED, frame)["one"].cat.categories.tolist() == ["1"]


def test_long_tables_have_the_digest_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"n": [str(i) for i in range(10)]})
    full = digest({"a": frame})
    monkeypatch.setattr("planner.contract.tables.DIGEST_ROWS", 3)
    assert digest({"a": frame}) == full


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("column", ["part", "mass_kg"])
@pytest.mark.parametrize("nested", [[1, 2], {"a": 1}])
def test_lists_and_records_are_no_values(tmp_path: Path, compact: bool, column: str, nested: object) -> None:
    table = Table(name="parts", about="a part", columns=PARTS.columns, compact=compact)
    frame = pd.DataFrame({"part": ["a", "b"], "mass_kg": [1.0, 2.0]}).assign(**{column: [nested, nested]})
    path = tmp_path / "parts.parquet"
    write_table(frame, path)
    with pytest.raises(InputError) as caught:
        read_table(table, path)
    assert str(caught.value).startswith(f"parts.parquet: {column} has values of type ")
    assert str(caught.value).endswith(", must have single values")
    with pytest.raises(InputError, match=rf"parts row 2: {column} is '.*', must be a single value"):
        validate(table, frame)


def test_a_number_whose_reciprocal_overflows_is_refused() -> None:
    rates = Table(name="rates", about="", columns={"rate": number("a rate", at_least=0)})
    validate(rates, pd.DataFrame({"rate": [0.0, 1e-200, 1e12]}))
    with pytest.raises(InputError, match=r"rate is 5e-312, must be 0 or at least 1e-200"):
        validate(rates, pd.DataFrame({"rate": [1.0, 5e-312]}))


def test_tables_that_are_given_are_validated_together() -> None:
    names = Table(name="names", about="", columns={"name": label("a name")})
    rates = Table(name="rates", about="", columns={"rate": number("a rate", at_least=0)})
    present = {"names": pd.DataFrame({"name": ["a"]}, index=[7])}
    result = validate_tables((names, rates), present, required=("names",))
    assert result["names"]["name"].tolist() == ["a"]
    assert "rates" not in result
    with pytest.raises(InputError) as caught:
        validate_tables((names, rates), {"rates": pd.DataFrame({"rate": [-1.0]})}, required=("names",))
    assert caught.value.faults == ("names: is missing", "rates row 1: rate is -1.0, must be at least 0")


def test_tables_of_fields_are_collected_with_rows_from_zero() -> None:
    owner = SimpleNamespace(names=pd.DataFrame({"name": ["a", "b"]}, index=[4, 2]), rates=None)
    tables = [Table(name=name, about="", columns={}) for name in ("names", "rates")]
    result = collect_tables(owner, tables)
    assert list(result) == ["names"]
    assert result["names"].index.tolist() == [0, 1]
