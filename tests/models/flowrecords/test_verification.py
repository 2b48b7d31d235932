"""Doubts about flow records: counted several times, or far from the counters of interfaces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner_models.flowrecords.demands import Cleaning, Demands, RecordFiles, read_demands
from planner_models.flowrecords.verification import describe_error, explain_ratio
from tests.models.flowrecords.exports import nfdump_old
from tests.models.flowrecords.test_demands import prefix_table, two_exporters


def read(folder: Path, cleaning: Cleaning, counters: str = "", sampling: int = 1000) -> Demands:
    """Read the sampled records of two exporters, beside a table of counters if there is one."""
    flows, _ = two_exporters(1, sampling)
    (folder / "records.csv").write_bytes(nfdump_old(flows))
    prefix_table().to_csv(folder / "prefixes.csv", index=False)
    if counters:
        (folder / "counters.csv").write_text(counters)
    return read_demands(
        RecordFiles(
            path=folder / "records.csv",
            prefixes=folder / "prefixes.csv",
            counters=folder / "counters.csv" if counters else None,
        ),
        cleaning,
        bucket_s=300.0,
    )


def sent_by_node(scale: float = 1.0) -> str:
    """Return the true bytes that nodes send, times a factor, as a table of counters."""
    sent = {"a": 0.0, "b": 0.0, "c": 0.0}
    for (source, _), octets in two_exporters(1, 1000)[1].items():
        sent[source] += octets * scale
    return "node,sent_bytes\n" + "".join(f"{node},{octets:.0f}\n" for node, octets in sent.items())


def test_bytes_that_are_counted_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"records.csv: a byte was counted (2\.0|1\.9)\d times, as several"):
        read(tmp_path, Cleaning(sampling=1000, duplicates="none"))
    assert read(tmp_path, Cleaning(sampling=1000)).report.ratio == pytest.approx(2, rel=0.01)


def test_records_are_compared_with_counters(tmp_path: Path) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        read(tmp_path, Cleaning(sampling=1000), sent_by_node())
    assert any(note.endswith("1 times the bytes of the counters") for note in notes)
    assert any("standard error of a demand by sampling: 0." in note for note in notes)
    assert not any(note.startswith("warning") for note in notes)


@pytest.mark.parametrize(
    ("scale", "sampling", "message"),
    [
        (0.5, 1000, "times the bytes of the counters: is each byte counted twice"),
        (1.0, 10, "times the bytes of the counters: is the sampling wrong by 100?"),
        (0.3, 1000, "records have 3.3"),
    ],
)
def test_records_far_from_their_counters_are_refused(
    tmp_path: Path, scale: float, sampling: int, message: str
) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, Cleaning(sampling=sampling), sent_by_node(scale))
    assert message in str(error.value)


def test_one_node_far_from_its_counter_is_named(tmp_path: Path) -> None:
    notes: list[str] = []
    table = sent_by_node().replace("b,", "b,1")  # ten billion more
    with observe_notes(notes.append):
        read(
            tmp_path,
            Cleaning(sampling=1000),
            table.splitlines()[0] + "\n" + "\n".join(table.splitlines()[1:]),
        )
    assert any(note.startswith("warning: records.csv: by records b sends 0.") for note in notes)


def test_counters_of_no_node_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"counters.csv row 2: node 'x' is no node"):
        read(tmp_path, Cleaning(sampling=1000), "node,sent_bytes\nx,5\n")
    with pytest.raises(InputError, match="counters: has no bytes to compare with"):
        read(tmp_path, Cleaning(sampling=1000), "node,sent_bytes\na,\n")


def test_ratios_have_their_likely_reason() -> None:
    assert explain_ratio(2.1) == ": is each byte counted twice? See duplicates"
    assert explain_ratio(1 / 1000) == ": is the sampling wrong by 1,000?"
    assert explain_ratio(3.0) == ""
    assert explain_ratio(0.0) == ""


def test_unsampled_records_have_no_error() -> None:
    assert list(describe_error(np.zeros(3))) == []
