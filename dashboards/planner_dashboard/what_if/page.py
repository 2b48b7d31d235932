"""The what-if page, from top to bottom: changes, verdict, figures, picture, tables and parameters.

The panel of a selected element: its load, price and users, and what can be done to it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st

from planner.contract.elements import ElementKind, ElementReport
from planner.errors import PlannerError
from planner.scenarios.scenario import Scenario
from planner_dashboard import rendering, session, titles, upgrades, worker
from planner_dashboard.question import FIRST_SCENARIO, UPLOADED, Question, form_fields, unchanged_scenario
from planner_dashboard.rendering import shown_name
from planner_dashboard.share import stored_results
from planner_dashboard.what_if import (
    changes,
    details,
    failed,
    forms,
    headline,
    history,
    picture,
    pins,
    place_names,
    stored_answers,
)
from planner_dashboard.what_if.changes import adjustments_of, with_adjustments
from planner_dashboard.what_if.history import History

SOLVE: Final = "Solve"
"""Label of the button that solves the question of an address."""
NOTHING: Final = "nothing"
"""In place of the plan that another one is compared with."""
Element = tuple[str, str]
"""Kind and name of an element."""
SELECTED = "selected"
CLOSED: Final = "closed elements"
"""Key of the session for how often the panel of an element was closed."""


def selected() -> Element | None:
    """Return the selected element of the session."""
    element: Element | None = st.session_state.get(SELECTED)
    return element


def select(element: Element | None) -> None:
    """Select an element, or none."""
    st.session_state[SELECTED] = element


def close() -> None:
    """Select no element, and begin the field that finds one anew: the browser keeps the text of the old."""
    select(None)
    st.session_state[CLOSED] = st.session_state.get(CLOSED, 0) + 1


def show_finder(answer: worker.Answer) -> None:
    """Show a field that selects exactly one element by its name."""
    names = [(kind, name) for kind, names_of in answer.elements.items() for name in names_of]
    if not names:
        return
    state = st.session_state
    now = selected()
    key = f"find {answer.question.scenario} {state.get(CLOSED, 0)}"
    state[key] = now if now in names else None

    st.selectbox(
        "Find",
        names,
        index=None,
        format_func=_entry_of,
        key=key,
        on_change=lambda: select(state[key]),
        placeholder="Find " + ", ".join(kind for kind, names_of in answer.elements.items() if names_of),
        label_visibility="collapsed",
    )


def _entry_of(element: Element) -> str:
    """Return an element as the field to find one lists it, with the names that people may type instead."""
    kind, name = element
    return f"{shown_name(name)} ({'; '.join([kind, *place_names.other_names(name)])})"


def show_element(
    scenario: Scenario,
    question: Question,
    answer: worker.Answer,
    design: worker.DesignAnswer,
    tables: Path,
) -> None:
    """Show the selected element: its actions, and its use by the plan; of a failed one, before it failed."""
    element = selected()
    assert element is not None
    kind_name, name = element
    kind = next((kind_ for kind_ in scenario.system.problem.elements if kind_.name == kind_name), None)
    if kind is None:
        return
    with st.container(key="element"):
        st.subheader(session.escape_markdown(shown_name(name)), anchor=False)
        st.caption(session.escape_markdown(kind.name))
        _show_actions(scenario, question, kind, name)
        if failed.has_failed(scenario, answer.question, kind, name):
            failed.show_failed(scenario, answer, design, kind, name, tables)
            st.button("Close", on_click=close, key="close element", type="tertiary")
            return
        request = (answer.folder, design.label, *element)
        report: ElementReport | None = session.on_request(
            "describe", request, worker.describe, *request, activity="reading the plan"
        )
        if report is not None:
            rendering.show_report(report)
        st.button("Close", on_click=close, key="close element", type="tertiary")


def _show_actions(scenario: Scenario, question: Question, kind: ElementKind, name: str) -> None:
    """Show a button for each action; one that is done can be taken back."""
    adjustments = adjustments_of(scenario, question)
    failures = [action for action in kind.with_role("failure") if action.is_done(adjustments, name)]
    for action in failures or kind.actions:  # what has failed cannot be changed otherwise
        is_done = action.is_done(adjustments, name)
        changed = action.undo(adjustments, name) if is_done else action.apply(adjustments, name)
        st.button(
            f"Restore ({action.state})" if is_done else action.name,
            key=f"action {kind.name} {name} {action.name}",
            on_click=partial(history.ask, with_adjustments(scenario, question, changed)),
            type="primary" if is_done else "secondary",
            width="stretch",
        )


def page() -> None:
    """Show the page."""
    _restore()
    if st.session_state.pop("open map", False):
        st.switch_page(st.session_state["pages"]["own_data"])
    _take_answer()
    if session.is_pending("answer") and "opening" in st.session_state:
        session.show_progress("answer", "opening the stored result")
        return
    st.session_state.pop("opening", None)
    asked = history.of_session()
    question = asked.current
    tables = session.folder() / question.upload if question.upload else session.folder()
    top, body, parameters = st.container(), st.container(key="answer"), st.container()
    try:
        scenario = unchanged_scenario(question.source(tables))
    except PlannerError as error:
        session.show_error(error)
        forms.show_scenario_choice(question)
        return
    with top:
        question = _checked(scenario, question)
    # the parameters stand below, but what they are set to is shown above
    with parameters:
        question = _show_parameters(scenario, question)
    with top:
        question = _show_top(scenario, question)
    asked.ask(question, by_form=True)
    st.query_params.from_dict({**question.to_query(), **pins.to_query()})
    with body:
        if scenario.is_consecutive:
            _point_to_windows(question)
            return
        stored_answers.open_stored(question, tables)
        if not _is_asked(question):
            return
        _submit(question, tables)
        _show_answer(scenario, question, tables)


# --- the question -------------------------------------------------------------------------


def _restore() -> None:
    """Begin the session with the question of the address, or the first scenario."""
    state = st.session_state
    if "history" in state:
        return
    try:
        query = {key: st.query_params.get_all(key) for key in st.query_params}
        if "result" in query:
            _open_stored(query["result"][0])
            return
        named = Question.from_query(query)
        state[pins.PINS] = pins.from_address(query)
        # of an address, which anybody may have made
        state["is asked"] = named is None
        state["history"] = History([named or Question(scenario=FIRST_SCENARIO)])
        if named is not None:
            stored_answers.restore_tables(named)
    except PlannerError as error:
        state["error address"], state["is asked"] = error, True
        state["history"] = History([Question(scenario=FIRST_SCENARIO)])


def _open_stored(number: str) -> None:
    """Begin the session with a result of a store; raise InputError where no store has it."""
    state, stores = st.session_state, session.stores()
    question = stored_results.question_of(stores, number)
    state["history"], state["is asked"], state["opening"] = History([question]), True, number
    state["question"], state["count"] = question, 1
    out = session.folder() / "answer 1"
    session.submit("answer", stored_results.load, stores, number, session.folder(), out)


def _checked(scenario: Scenario, question: Question) -> Question:
    """Return a question, or without its changes where those of its address are invalid; show why."""
    state = st.session_state
    if question == state.get("checked"):
        pass
    elif question.changes:
        try:
            question.check(form_fields(scenario))
        except PlannerError as error:
            state["error address"] = error
            question = Question(scenario=question.scenario, upload=question.upload)
            state["history"] = History([question])
    state["checked"] = question
    if state.get("error address") is not None:
        session.show_error(state["error address"])
        if len(history.of_session().questions) > 1:
            state["error address"] = None
    return question


def _is_asked(question: Question) -> bool:
    """Return whether there is an answer, or the user has asked for one by a click or a change.

    A question of an address is never solved without that.
    """
    state = st.session_state
    if not state["is asked"]:
        first = state.setdefault("address question", question)
        state["is asked"] = question != first
    if history.answers().get(question) is not None:
        return True
    if not state["is asked"]:
        st.markdown("This address asks a question. Look at it, and solve it where you want the answer.")
        st.code(question.command(), language="shell", wrap_lines=True)
        # a callback, because a run may end before it reaches the button: the click would be lost
        st.button(SOLVE, type="primary", key="solve", on_click=_solve_address)
    return bool(state["is asked"])


def _solve_address() -> None:
    st.session_state["is asked"] = True


def _point_to_windows(question: Question) -> None:
    """Say that consecutive windows are solved on another page, with a link to it if the scenario ships."""
    st.markdown("This scenario has consecutive windows: each plan starts from the one before.")
    page = st.session_state["pages"]["through_time"]
    if question.upload:
        st.markdown("Solve them with `planner roll`.")
    elif st.button("Solve it through time", type="primary", key="through time"):
        st.switch_page(page, query_params={"scenario": question.scenario})


def _show_top(scenario: Scenario, question: Question) -> Question:
    """Show the scenario and its changes, each of which a click takes back; undo, redo and pin."""
    asked = history.of_session()
    with st.container(horizontal=True, vertical_alignment="center", key="changes"):
        forms.show_scenario_choice(question)
        for index, change in enumerate(changes.list_changes(scenario, question)):
            st.button(
                session.escape_markdown(change.words) + "  ✕",
                key=f"change {index} {change.words}",
                on_click=partial(history.ask, change.without),
                help="Take this change back",
            )
        key = forms.main_parameter(form_fields(scenario), scenario)
        if key is not None:
            name, value = forms.main_value(scenario, question, key)
            label = name if key in question.changes else f"{name} {value}"  # a chip has the changed value
            with st.popover(label, key=f"main {asked.generation}", on_change="rerun") as field:
                if field.open:
                    question = forms.show_main_field(scenario, question)
        if changes.has_network(scenario.system):
            st.button(
                "Change the network",
                key="change network",
                on_click=partial(_change_network, question),
                type="tertiary",
                help="Add, move and remove nodes, links and demands on the map.",
            )
        with st.container(horizontal=True, width="content", gap="small", key="undo and redo"):
            st.button(
                "Undo", key="undo", disabled=not asked.can_undo, on_click=partial(history.move, -1),
                shortcut="Ctrl+Z", type="tertiary",
            )  # fmt: skip
            st.button(
                "Redo", key="redo", disabled=not asked.can_redo, on_click=partial(history.move, 1),
                shortcut="Ctrl+Shift+Z", type="tertiary",
            )  # fmt: skip
    return question


def _change_network(question: Question) -> None:
    """Open the tables of a question on the map of the page for own data."""
    tables = session.folder() / question.upload if question.upload else session.folder()
    from planner_dashboard.own_data.page import open_question  # its readers are needed after a click only

    open_question(question, tables)
    st.session_state["open map"] = True


def _show_parameters(scenario: Scenario, question: Question) -> Question:
    """Show the form of all parameters, where it is open; return the question that it asks."""
    answer = history.answers().get(question)
    with st.expander("Parameters", key=f"parameters {question.scenario}", on_change="rerun") as form:
        if not form.open:
            return question
        changed = forms.show_forms(scenario, question, answer.elements if answer else {})
        if changed is None:
            st.error("choose a design")
            return question
        return changed


# --- the answer ---------------------------------------------------------------------------


def _submit(question: Question, tables: Path) -> None:
    """Submit a question that is neither pending nor answered, in place of the one before."""
    state = st.session_state
    if history.answers().get(question) is not None:
        session.cancel("answer")
        state["question"] = question
        return
    if state.get("question") == question:
        return
    state["count"] = state.get("count", 0) + 1
    out = session.folder() / f"answer {state['count']}"
    state["question"] = question
    session.submit("answer", worker.compare, question, tables, out, session.folder() / "answer.activity")


def _take_answer() -> None:
    """Take the answer of the workers, if there is one."""
    answer: worker.Answer | None = session.take_result("answer")
    if answer is not None:
        history.answers().add(answer, pins.questions())
        stored_answers.store(answer)


def _show_answer(scenario: Scenario, question: Question, tables: Path) -> None:
    session.show_progress("answer", "solving", "cancelled; change a setting to solve again")
    session.show_failure("answer")
    answers_ = history.answers()
    answer = answers_.get(question)
    earlier = [
        answer_ for answer_ in map(answers_.get, history.of_session().earlier()) if answer_ is not None
    ]
    if answer is None:
        if not earlier:
            if session.is_pending("answer"):
                headline.show_skeleton()
            return
        answer = earlier.pop(0)
        st.caption("The answer below is for the previous settings.")
    changed = [
        change.words for change in changes.list_changes(scenario, answer.question) if change.is_element
    ]
    headline.show_question(scenario.system, answer)
    headline.show_verdict(answer.sentences, changed, answer.question.address_lines())
    labels = picture.designs_with_plan(answer)
    if not labels:
        _show_unsolved(scenario, answer, tables)
        return
    state = st.session_state
    key = f"design {answer.question.scenario}"
    if state.get(key) not in labels:
        state[key] = answer.best or labels[0]
    shown = answer.design(state[key])
    assert shown is not None
    plans = _plans_to_compare(scenario, answer, shown, earlier)
    compared = plans.get(st.session_state.get("compare with", NOTHING))
    before = compared or next((plan for plan in plans.values() if plan.answer is not answer), None)
    same = before.answer.design(shown.label) if before is not None else None
    reference = same
    if compared is not None:
        reference = compared.design if compared.answer.system == answer.system else None
    headline.show_figures(headline.figures_of(scenario.system, shown, reference), shown.title)
    compiling = f", after compiling (once) for {answer.compile_s:.1f} s" if answer.compile_s > 0.05 else ""
    _show_pictures(scenario, question, answer, shown, plans, compared, tables)
    stored_answers.show_time(answer, f"answered in {answer.seconds:.1f} s{compiling}")
    words = (
        ", ".join(change.words for change in changes.list_changes(scenario, answer.question)) or "no changes"
    )
    pins.show_button(answer.question, shown.label, words)
    pins.show_pins()
    since = before.answer if before is not None and before.answer is not answer else None
    details.show_details(scenario, answer, shown, since, tables)


def _show_unsolved(scenario: Scenario, answer: worker.Answer, tables: Path) -> None:
    """Show the reason for which no design has a plan."""
    if answer.designs:
        details.show_details(scenario, answer, answer.designs[0], None, tables)


def _plans_to_compare(
    scenario: Scenario, answer: worker.Answer, shown: worker.DesignAnswer, earlier: list[worker.Answer]
) -> dict[str, picture.Plan]:
    """Return the plans that the shown one can be compared with, by their names."""
    plans: dict[str, picture.Plan] = {}

    def add(name: str, other: worker.Answer, label: str) -> None:
        design = other.design(label)
        if design is not None and design.has_plan and design is not shown:
            plans.setdefault(name, picture.Plan(name, other, design))

    for answer_ in earlier[:1]:
        add("the plan before", answer_, shown.label)
    for answer_ in (answer_ for answer_ in earlier[1:] if not answer_.question.changes):
        add("the plan without changes", answer_, shown.label)
    for label in picture.designs_with_plan(answer):
        add(scenario.design_title(label), answer, label)
    pinned = [(pin, history.answers().get(pin.question)) for pin in pins.of_session()]
    for pin, answer_ in ((pin, answer_) for pin, answer_ in pinned if answer_ is not None):
        add(f"pinned: {pin.name}", answer_, pin.design)
    for other in reversed(history.answers().kept.values()):
        label = _label_in(other, shown.label)
        design = other.design(label)
        if other is not answer and design is not None:
            add(f"{_words_of(scenario, other)}, {design.title}", other, label)
    return plans


def _label_in(answer: worker.Answer, label: str) -> str:
    """Return the label of a design where an answer has its plan, else that of the answer's best one."""
    design = answer.design(label)
    return label if design is not None and design.has_plan else answer.best


def _words_of(scenario: Scenario, answer: worker.Answer) -> str:
    """Return the scenario of an answer and its changes, to choose it by."""
    question = answer.question
    if question.scenario == UPLOADED and scenario.name != UPLOADED:  # its tables may be gone
        keys = [key.rpartition(".")[2].replace("_", " ") for key in question.changes]
    else:
        asked = scenario if question.scenario == scenario.name else unchanged_scenario(question.scenario)
        keys = [change.words for change in changes.list_changes(asked, question)]
    return ", ".join([titles.title_with_topic(question.scenario), *keys])


def _show_pictures(
    scenario: Scenario,
    question: Question,
    answer: worker.Answer,
    shown: worker.DesignAnswer,
    plans: dict[str, picture.Plan],
    compared: picture.Plan | None,
    tables: Path,
) -> None:
    """Show the picture with its switches on the left, and the panel on the right."""
    has_panel = bool(scenario.system.problem.elements) or compared is not None
    left_column, right = st.columns([7, 3], gap="medium") if has_panel else (st.container(), st.container())
    with left_column:
        with st.container(horizontal=True, vertical_alignment="bottom", key="switches"):
            st.segmented_control(
                "Design", picture.designs_with_plan(answer), key=f"design {answer.question.scenario}",
                format_func=scenario.design_title,
                label_visibility="collapsed", required=True,
            )  # fmt: skip
            if plans:
                if st.session_state.get("compare with") not in (NOTHING, *plans):
                    st.session_state["compare with"] = NOTHING
                st.selectbox(
                    "Compare with", [NOTHING, *plans], key="compare with",
                    format_func=lambda name: f"Compare with {name}", label_visibility="collapsed", width=260,
                )  # fmt: skip
            moment = picture.WITH_PURCHASES
            if compared is None and picture.has_purchases(shown):
                moment = st.segmented_control(
                    "Moment", [picture.WITH_PURCHASES, picture.BEFORE_PURCHASES], default=moment,
                    key="moment", label_visibility="collapsed", required=True,
                )  # fmt: skip
            if compared is not None:
                mode = _choose_mode(compared, picture.Plan("", answer, shown))
        if compared is not None:
            now = picture.Plan(_own_name(answer, shown, compared), answer, shown)
            picture.show_two(compared, now, mode)
        else:
            clicked = picture.show_plan(answer, shown, selected(), moment)
            if clicked is not None:
                select(clicked if clicked[1] else None)
    with right:
        show_finder(answer)
        if compared is not None:
            picture.show_changes(scenario.system, compared, picture.Plan("now", answer, shown))
        elif scenario.system.problem.elements:
            if selected() is not None:
                show_element(scenario, question, answer, shown, tables)
            else:
                _show_hints(scenario, shown)
            _show_purchases(scenario, answer, shown, tables)


def _choose_mode(before: picture.Plan, after: picture.Plan) -> str:
    """Show the ways to compare two plans, if there are several; return the selected one."""
    modes = picture.modes_of(before, after)
    if len(modes) == 1:
        return modes[0]
    mode = st.segmented_control(
        "How", modes, default=modes[0], key="mode", label_visibility="collapsed", required=True
    )
    return str(mode)


def _show_purchases(
    scenario: Scenario, answer: worker.Answer, shown: worker.DesignAnswer, tables: Path
) -> None:
    """Show the purchases of the plan, if plans are purchases; else the upgrades that would improve it."""
    if scenario.system.studies.budget is not None:
        ask = partial(changes.ask_parameters, answer.question)
        upgrades.show_purchases(answer.question, tables, shown.label, ask)
        return
    apply = partial(changes.ask_adjustments, scenario, answer.question)
    upgrades.show_panel(answer.question, tables, shown.label, apply)


def _own_name(answer: worker.Answer, shown: worker.DesignAnswer, other: picture.Plan) -> str:
    return shown.title if other.answer is answer else "this plan"


def _show_hints(scenario: Scenario, shown: worker.DesignAnswer) -> None:
    """Describe the selection of an element: charts cannot be clicked."""
    kinds = ", ".join(kind.name for kind in scenario.system.problem.elements)
    how = "Click the picture, or find" if picture.is_clickable(shown) else "Find"
    st.caption(session.escape_markdown(f"{how} by name: {kinds}."))
