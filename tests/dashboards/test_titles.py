"""Words on pages: no name of the code is shown, except where it is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from planner.scenarios.catalogue import find_system, system_names
from planner_dashboard import titles
from planner_dashboard.what_if import details
from tests.dashboards.test_app import TIME_LIMIT_S, open_tab, page, wait_for_answer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_worker", "main_module")]

IDENTIFIER = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
TYPED = re.compile(r"<code>.*?</code>|`[^`]*`", flags=re.DOTALL)
"""Where a text shows what a user types."""
UNITLESS = re.compile(r"(?<![\w.,/@-])\d[\d,.]*(?<![.,])(?![,.]?\d)(?!\s*[%\w°×/+(])")
"""A number that neither a unit nor a counted noun follows."""
TAGS = re.compile(r"<style.*?</style>|<[^>]*>", flags=re.DOTALL)


def sentences(app: AppTest) -> Iterator[str]:
    """Yield the sentences and figures of a page."""
    for kind in ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error"):
        for item in getattr(app, kind):
            yield str(item.value)
    for item in app.get("html"):
        yield unescape(TAGS.sub(" ", str(item.proto.body)))


def shown_texts(app: AppTest) -> Iterator[str]:
    """Yield the texts of a page, without code that a user copies."""
    yield from sentences(app)
    for item in (*app.button, *app.toggle, *app.slider, *app.number_input, *app.tabs, *app.expander):
        yield str(item.label)
    for item in (*app.selectbox, *app.multiselect, *app.button_group):
        yield str(item.label)
        yield from map(str, item.options)
    for item in app.dataframe:
        yield from map(str, [*item.value.columns, *item.value.index])


@pytest.mark.parametrize("system", [topic.system for topic in titles.topics()])
def test_the_answer_to_a_question_shows_no_name_of_the_code_and_no_number_without_unit(system: str) -> None:
    found = find_system(system)
    design = found.studies.practice or found.designs[1].name
    app = wait_for_answer(page(scenario=titles.scenarios_of(system)[0], designs=design))
    require_words(app)
    require_words(open_tab(app, "view", details.DESIGNS))


@pytest.mark.parametrize("module", ["through_time", "results"])
def test_pages_of_results_show_no_name_of_the_code(module: str) -> None:
    app = AppTest.from_function(show_page, default_timeout=TIME_LIMIT_S, args=(module,)).run()
    assert not app.exception
    require_words(app)


def show_page(module: str) -> None:
    from importlib import import_module

    import_module(f"planner_dashboard.{module}").page()


def require_words(app: AppTest) -> None:
    """Check that a page has no name of the code, and its sentences no number without unit."""
    names = {text for text in shown_texts(app) if IDENTIFIER.search(TYPED.sub(" ", text))}
    assert not names
    numbers = {text for text in sentences(app) if UNITLESS.search(TYPED.sub(" ", text))}
    assert not numbers


@pytest.mark.parametrize("name", system_names())
def test_every_metric_is_said_with_a_unit(name: str) -> None:
    texts = [metric.text(0.37) for metric in find_system(name).plan.metrics]
    assert not [text for text in texts if not re.search(r"[A-Za-z%]", text)]


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
