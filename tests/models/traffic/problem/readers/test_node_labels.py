"""Node labels: encoding as one word, and uniqueness."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner_models.traffic.problem.readers import node_labels


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_label_is_encoded_as_one_word(label: str) -> None:
    word = node_labels.encode(label)
    assert word.split() == [word]
    assert not set("()#") & set(word)
    assert node_labels.decode(word) == label


@given(st.lists(st.sampled_from(["", " ", "a", "b", "a (1)", "1", "2"]), max_size=6))
def test_labels_are_unique(names: list[str]) -> None:
    made = node_labels.make_unique(names, [str(index) for index in range(len(names))])
    assert len(set(made)) == len(names)
    assert all(label.strip() for label in made)
    assert all(
        label == name
        for label, name in zip(made, names, strict=True)
        if names.count(name) == 1 and name.strip()
    )
