"""Words on pages: no name of the code is shown, except where it is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from planner_dashboard import titles
from tests.dashboards.test_app import page, wait_for_answer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_worker", "main_module")]

IDENTIFIER = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
TYPED = re.compile(r"<code>.*?</code>|`[^`]*`", flags=re.DOTALL)
"""Where a text shows what a user types."""
TAGS = re.compile(r"<style.*?</style>|<[^>]*>", flags=re.DOTALL)


def shown_texts(app: AppTest) -> Iterator[str]:
    """Yield the texts of a page, without code that a user copies."""
    for kind in ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error"):
        for item in getattr(app, kind):
            yield str(item.value)
    for item in app.get("html"):
        yield unescape(TAGS.sub(" ", str(item.proto.body)))
    for item in (*app.button, *app.toggle, *app.slider, *app.number_input, *app.tabs, *app.expander):
        yield str(item.label)
    for item in (*app.selectbox, *app.multiselect, *app.button_group):
        yield str(item.label)
        yield from map(str, item.options)
    for item in app.dataframe:
        yield from map(str, [*item.value.columns, *item.value.index])


@pytest.mark.parametrize(
    "query",
    [
        {"scenario": "traffic/abilene", "designs": "ecmp,shortest_path"},
        {"scenario": "fairshare/own_data", "designs": "fq_pp,per_node_fair"},
        {"scenario": "contracts/own_data", "designs": "commitments_first,cheapest_first"},
    ],
    ids=lambda query: query["scenario"],
)
def test_a_page_shows_no_name_of_the_code(query: dict[str, str]) -> None:
    app = wait_for_answer(page(**query))
    found = {text for text in shown_texts(app) if IDENTIFIER.search(TYPED.sub(" ", text))}
    assert not found


def test_questions_are_in_words_and_in_the_order_of_areas() -> None:
    words = [topic.words for topic in titles.topics()]
    assert words[0] == "Wide area · Traffic routing: How should these demands be routed?"
    assert not [text for text in words if IDENTIFIER.search(text)]
    areas = [topic.area for topic in titles.topics()]
    assert areas == sorted(areas, key=areas.index), "the questions of an area stand together"


@pytest.mark.parametrize("topic", titles.topics(), ids=lambda topic: topic.system)
def test_scenarios_have_titles_of_their_own(topic: titles.Topic) -> None:
    names = titles.scenarios_of(topic.system)
    shown = [titles.title_of_scenario(name) for name in names]
    assert not [text for text in shown if IDENTIFIER.search(text)]
    assert len(set(shown)) == len(shown)
