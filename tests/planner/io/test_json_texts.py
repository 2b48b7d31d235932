"""JSON from elsewhere: plain data, or one line for what no plan can be made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.io.documents import read_document
from planner.io.json_texts import parse_json
from planner_models.networks.node_lists import parse_nodes


def test_a_whole_character_of_two_halves_is_read() -> None:
    assert parse_json("a.json", json.dumps({"name": "\N{GRINNING FACE}"})) == {"name": "\N{GRINNING FACE}"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "a.json row 1: is no JSON"),
        ("[" * 100_000, "a.json: its lists or objects are nested too deeply"),
        ("[1" + "0" * 5_000 + "]", "a.json row 1: has a number of 5,001 digits"),
        (r'[{"a": "b"}, {"c\ud800": 1}]', r"a.json row 2: has half a character, \ud800"),
    ],
)
def test_what_is_no_data_is_refused_in_one_line(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_document(path)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(fault)


def test_a_list_of_nodes_with_half_a_character_is_no_list() -> None:
    assert parse_nodes(r'["a", "b\ud800"]') == [r'["a", "b\ud800"]']
