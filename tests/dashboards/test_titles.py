"""Words on pages: no name of the code is shown, except where it is typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from planner.runs.shipped_verdicts import load_shipped
from planner.scenarios.catalogue import find_system, system_names
from planner_dashboard import titles
from planner_dashboard.what_if import details
from tests.dashboards.shown_tables import shown_tables
from tests.dashboards.test_app import TIME_LIMIT_S, open_tab, page, wait_for_answer, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_worker", "main_module")]

IDENTIFIER = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
SYMBOL = re.compile(r"\b[a-z]_[a-z]+\b")
"""A letter with an index in a paper's formula, as x_min."""
TYPED = re.compile(r"<code>.*?</code>|`[^`]*`|^planner \w+ .*$|: planner \w+ .*$", flags=re.DOTALL)
"""Where a text shows what a user types: code, and commands."""
UNITLESS = re.compile(r"(?<![\w.,/@-])\d[\d,.]*(?<![.,])(?![,.]?\d)(?!\s*[%\w°×/+(])")
"""A number that neither a unit nor a counted noun follows."""
TABLES = re.compile(r"<table class='planner-table'>.*?</table>", flags=re.DOTALL)
"""Tables of the document model, whose words `shown_texts` yields."""
TAGS = re.compile(r"<style.*?</style>|<td>\s*[\d,.]*\s*</td>|<[^>]*>", flags=re.DOTALL)
"""Not part of the text: markup, and numbers in the cells of a table, whose heads say what they count."""
MARKUP = re.compile(r"</?(?:span|br)[^>]*>|&nbsp;")
NAMED = re.compile(
    r"\d{4}-\d\d-\d\d|\b\d+(?:\.\d+){2}\b"
    r"|(?:Tables?|Figs?\.|[Ss]ections?|chapter|Mukerjee|§|RFC|OpenFlow) ?\d[\d.]*"
    r"(?:(?:,| and|, and) \d[\d.]*)*\w?"
)
"""Dates, versions, and places in papers are no amounts."""
MODIFIERS = re.compile(r",| \(| (?:among|at|by|for|from|of|on|to|with|without) |^Along ")
"""What follows the noun of a title."""
PLURAL = re.compile(r"[^s]s$")
PLANS_OFTEN_READ = ("geostore", "membership")
"""Systems whose plans, failures and limits each slow run reads; the exhaustive tests read all."""
NAMES = ("Pisces",)
"""Proper names that end as plurals do."""


def sentences(app: AppTest) -> Iterator[str]:
    """Yield the sentences and figures of a page."""
    for kind in ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error"):
        for item in getattr(app, kind):
            yield unescape(MARKUP.sub(" ", str(item.value)))
    for item in app.get("html"):
        yield unescape(TAGS.sub(" ", TABLES.sub(" ", str(item.proto.body))))


def shown_texts(app: AppTest) -> Iterator[str]:
    """Yield the texts of a page, without code that a user copies."""
    yield from sentences(app)
    for item in (*app.button, *app.toggle, *app.slider, *app.number_input, *app.tabs, *app.expander):
        yield str(item.label)
    for item in (*app.selectbox, *app.multiselect, *app.button_group):
        yield str(item.label)
        yield from map(str, item.options)
    for table in app.get("arrow_data_frame"):
        settings = json.loads(table.proto.columns or "{}")
        yield from (settings.get(name, {}).get("label") or name for name in map(str, table.value.columns))
        if not table.proto.editing_mode:  # cells of an editor are the user's
            yield from map(str, table.value.index)
            yield from _words_of_cells(table.value)

    for frame in shown_tables(app):
        yield from map(str, frame.columns)
        yield from map(str, frame.index)
        for column in range(frame.shape[1]):
            yield from frame.iloc[:, column]


def _words_of_cells(frame: pd.DataFrame) -> Iterator[str]:
    for column in frame:
        yield from (cell for cell in frame[column] if isinstance(cell, str))


@pytest.mark.parametrize("system", [topic.system for topic in titles.topics()])
def test_the_answer_to_a_question_shows_no_name_of_the_code_and_no_number_without_unit(system: str) -> None:
    found = find_system(system)
    design = found.studies.practice or found.designs[1].name
    app = wait_for_answer(page(scenario=titles.scenarios_of(system)[0], designs=design))
    require_words(app)
    require_words(open_tab(app, "view", details.DESIGNS))


@pytest.mark.parametrize(
    "system",
    [
        topic.system
        if topic.system in PLANS_OFTEN_READ
        else pytest.param(topic.system, marks=pytest.mark.exhaustive)
        for topic in titles.topics()
    ],
)
def test_the_plan_and_its_limits_show_no_name_of_the_code_and_no_number_without_unit(system: str) -> None:
    """One design is asked: explanations and lists of failures solve the problem many times."""
    found = find_system(system)
    design = found.studies.practice or found.designs[1].name
    app = wait_for_answer(page(scenario=titles.scenarios_of(system)[0], designs=design))
    for tab, start in (
        (details.PLAN, ""),
        (details.FAILURES, "Find failures that hurt"),
        (details.LIMITS, "Explain"),
    ):
        if tab == details.FAILURES and not can_fail(system):
            continue
        open_tab(app, "view", tab)
        for button in [button for button in app.button if button.label == start]:
            button.click()
            app.run()
        wait_until(app, lambda: not jobs_of(app))
        assert not app.error
        require_words(app)


def can_fail(system: str) -> bool:
    return any(kind.with_role("failure") for kind in find_system(system).problem.elements)


def jobs_of(app: AppTest) -> list[str]:
    """Return the jobs of a page's session that are pending."""
    return [name for name in ("details", "failures", "explain") if f"job {name}" in app.session_state]


@pytest.mark.parametrize("module", ["through_time", "results", "own_data", "recipes", "reproduction"])
def test_other_pages_show_no_name_of_the_code_and_no_number_without_unit(module: str) -> None:
    app = AppTest.from_function(show_page, default_timeout=TIME_LIMIT_S, args=(module,)).run()
    assert not app.exception
    require_words(app)


@pytest.mark.parametrize("view", ["Quality of information", "Which mechanism suits me", "Design space"])
def test_each_view_of_recipes_is_in_words(view: str) -> None:
    app = AppTest.from_function(show_page, default_timeout=TIME_LIMIT_S, args=("recipes",))
    app.session_state["recipes view"] = view
    app.run()
    assert not app.exception
    require_words(app)


@pytest.mark.parametrize("system", system_names())
def test_a_published_target_of_each_system_is_in_words(system: str) -> None:
    name = next((name for name in load_shipped() if name.startswith(f"{system}/")), None)
    if name is None:
        pytest.skip(f"{system} has no published target")
    app = AppTest.from_function(show_page, default_timeout=TIME_LIMIT_S, args=("reproduction",))
    app.session_state["target"] = name
    app.run()
    assert not app.exception
    assert any(f"planner reproduce {name}" in str(code.value) for code in app.code)
    require_titles(app)


@pytest.mark.parametrize("scenario", ["traffic/abilene", "updates/diamond", "fairshare/own_data"])
def test_tables_to_edit_are_in_words(scenario: str) -> None:
    app = AppTest.from_function(show_page, default_timeout=TIME_LIMIT_S, args=("own_data",)).run()
    app.selectbox(key="own start").select(scenario).run()
    app.button(key="own start button").click().run()

    def is_checked() -> bool:
        state = app.session_state["own data"]
        return state.draft is not None and state.checked is not None

    wait_until(app, is_checked)
    app.run()
    require_words(app)


def show_page(module: str) -> None:
    from importlib import import_module

    import_module(f"planner_dashboard.{module}").page()


def require_words(app: AppTest) -> None:
    """Check that a page has no name of the code, and its sentences no number without unit."""
    require_titles(app)
    numbers = {text for text in map(_unescape, sentences(app)) if UNITLESS.search(NAMED.sub(" ", text))}
    assert not numbers


def require_titles(app: AppTest) -> None:
    """Check that a page has no name of the code; of numbers from papers, tables have the units."""
    names = {text for text in shown_texts(app) if IDENTIFIER.search(TYPED.sub(" ", SYMBOL.sub(" ", text)))}
    assert not names


def _unescape(text: str) -> str:
    """Return a text as the page shows it, without what a user types."""
    return re.sub(r"\\([^\w\s])", r"\1", TYPED.sub(" ", text))


@pytest.mark.parametrize("name", system_names())
def test_every_metric_is_said_with_a_unit(name: str) -> None:
    texts = [metric.text(0.37) for metric in find_system(name).plan.metrics]
    assert not [text for text in texts if not re.search(r"[A-Za-z%]", text)]


@pytest.mark.parametrize("name", system_names())
def test_titles_of_designs_agree_with_the_verbs_of_verdicts(name: str) -> None:
    """A title is the subject of sentences, such as `Two-phase update keeps ...`: its noun is singular."""
    titles_of = [design.label for design in find_system(name).designs]
    heads = [re.split(MODIFIERS, title)[0].split() for title in titles_of]
    plurals = [head[-1] for head in heads if head and PLURAL.search(head[-1]) and head[-1] not in NAMES]
    assert not plurals


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
