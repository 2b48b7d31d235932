"""The what-if page: choose a scenario, change its parameters, and compare the plans of its designs."""

from __future__ import annotations

import io
import shutil
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner.contract.parameters import parameters_of
from planner.errors import InputError, PlannerError
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Scenario
from planner.scenarios.shipped import scenario_names
from planner_dashboard import fields, rendering, session, uploads, worker
from planner_dashboard.question import (
    FIRST_SCENARIO,
    SOLVER_OPTIONS,
    UPLOADED,
    Question,
    field_value,
    form_fields,
    unchanged_scenario,
    value_text,
)
from planner_dashboard.uploads import UploadedFile

DEFAULT_DESIGNS: Final = 3
"""Number of designs for a scenario that names none."""
COMPARISON: Final = "Designs"
SOLVE: Final = "Solve"
"""Label of the button that solves the question of an address."""
EXPORT: Final = "Command and files"


def page() -> None:
    """Show the page below its title."""
    state = st.session_state
    _take_answer()
    _take_explanation()
    if "restored" not in state:
        try:
            query = {key: st.query_params.get_all(key) for key in st.query_params}
            named = Question.from_query(query)
            # of an address, which anybody may have made
            state["is asked"] = named is None or named.scenario == UPLOADED
            state["restored"] = named or Question(scenario=FIRST_SCENARIO)
        except PlannerError as error:
            session.show_error(error)
            state["is asked"], state["restored"] = True, Question(scenario=FIRST_SCENARIO)
    restored: Question = state["restored"]
    with st.sidebar:
        names = [*scenario_names(), UPLOADED]
        name = st.selectbox("Scenario", names, index=names.index(restored.scenario), key="scenario")
    upload = ""
    if name == UPLOADED:
        with st.expander("Your tables", expanded="uploaded" not in state):
            upload = _show_upload(restored.upload)
        if not upload:
            return
    chosen = Question(scenario=name, upload=upload)
    tables = session.folder() / upload if upload else session.folder()
    try:
        scenario = unchanged_scenario(chosen.source(tables))
        question = _show_forms(scenario, chosen, _restored_question(scenario, chosen, restored))
    except PlannerError as error:
        session.show_error(error)
        return
    st.query_params.from_dict(question.to_query())
    if not _is_asked(question):
        return
    _submit(question, tables)
    _show_question(scenario, question)
    _show_answer(question, tables)


# --- the question -------------------------------------------------------------------------


def _is_asked(question: Question) -> bool:
    """Return whether the user has asked: a question of an address is solved after a click, or a change."""
    state = st.session_state
    if not state["is asked"]:
        first = state.setdefault("address question", question)
        state["is asked"] = question != first
    if not state["is asked"]:
        st.markdown("This address asks a question. Look at it, and solve it where you want the answer.")
        st.code(question.command(), language="shell", wrap_lines=True)
        state["is asked"] = st.button(SOLVE, type="primary", key="solve")
    return bool(state["is asked"])


def _show_question(scenario: Scenario, question: Question) -> None:
    """Show the question in words, with the changes to the scenario."""
    st.markdown(f"**{session.escape_markdown(scenario.system.question)}**")
    answer: worker.Answer | None = st.session_state.get("answer")
    words = [question.scenario]
    if answer is not None and answer.question == question:
        words.append(answer.size)
    for key, value in question.changes.items():
        owner = f"{key.split('.')[1]}, " if key.startswith("designs.") else ""
        words.append(f"{owner}{fields.field_label(key.rpartition('.')[2]).lower()}: {value_text(value)}")
    st.caption(session.escape_markdown("; ".join(words)))


def _restored_question(scenario: Scenario, chosen: Question, restored: Question) -> Question:
    """Return the question of the address, or without its changes where they are invalid."""
    state = st.session_state
    if chosen.scenario != restored.scenario:
        return chosen
    if "error address" not in state:
        try:
            restored.check(form_fields(scenario))
            state["error address"] = None
        except PlannerError as error:
            state["error address"] = error
    if state["error address"] is None:
        return restored
    session.show_error(state["error address"])
    return chosen


def _show_forms(scenario: Scenario, chosen: Question, restored: Question) -> Question:
    """Show the forms at the values of a restored question; return the question that they ask."""
    offered = form_fields(scenario)
    name = chosen.scenario + chosen.upload
    own = [entry.label for entry in scenario.designs]
    labels = list(dict.fromkeys([*own, *(design.name for design in scenario.system.designs)]))
    first = restored.designs or own or labels[:DEFAULT_DESIGNS]
    study = scenario.system.studies.coordination
    worst = {one.parameter: max(one.values) for one in study.degradations} if study else {}
    changes: dict[str, Any] = {}

    def show(keys: list[str]) -> None:
        for key in keys:
            default = field_value(scenario, key, offered[key])
            value = fields.show_field(
                f"{name} {key}",
                offered[key],
                restored.changes.get(key, default),
                options=_map_links() if key.endswith("fail_links") else (),
                upper=worst.get(offered[key].name) if ".information." in key else None,
            )
            if not _is_default(value, default):
                changes[key] = value

    adjustments = [f"problem.{key}" for key in parameters_of(scenario.system.problem.adjust)]
    with st.sidebar:
        st.subheader("Designs")
        designs = st.multiselect(
            "Designs to compare",
            labels,
            default=[label for label in first if label in labels],
            key=f"designs {name}",
            label_visibility="collapsed",
        )
        st.subheader("Problem")
        show([key for key in offered if key in adjustments])
        if made := [key for key in offered if key.startswith("problem.") and key not in adjustments]:
            with st.expander("Source of the problem"):
                show([key for key in made if not offered[key].is_required])
        for label in designs:
            if keys := [key for key in offered if key.startswith(f"designs.{label}.")]:
                with st.expander(f"{label}: parameters"):
                    show([key for key in keys if ".information." not in key])
                    if information := [key for key in keys if ".information." in key]:
                        st.caption("Observation")
                        show(information)
        with st.expander("Solver"):
            show([f"solver.{key}" for key in SOLVER_OPTIONS])
    if not designs:
        raise InputError("choose a design")
    return Question(
        scenario=chosen.scenario,
        upload=chosen.upload,
        changes=changes,
        designs=() if designs == own else tuple(designs),
    )


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a field has its default; an empty list equals none, and a list equals its tuple."""
    same = tuple(default) if isinstance(default, list) else default
    return value == same or (value in ((), None) and same in ((), None))


def _map_links() -> list[str]:
    """Return the links of the last answer's map, as lists of failures name them."""
    answer = st.session_state.get("answer")
    found = () if answer is None else (design.links for design in answer.designs if design.links)
    return list(next(iter(found), ()))


# --- uploaded tables ----------------------------------------------------------------------


def _show_upload(restored: str) -> str:
    """Show the form for the user's tables; return the digest of the stored ones, or nothing."""
    state = st.session_state
    if restored and "uploaded" not in state and (session.folder() / restored / "scenario.toml").is_file():
        state["uploaded"] = restored
    system = find_system(st.selectbox("System", system_names(), key="upload system"))
    needed = ", ".join(
        f"**{table.name}**" + (" (optional)" if table.name in system.problem.optional_tables else "")
        for table in system.problem.tables
    )
    st.markdown(f"A file for each table (CSV, Excel, Parquet, JSON, ...), or a workbook: {needed}")
    with st.popover("Columns of the tables"):
        for table in system.problem.tables:
            columns = "\n".join(
                f"- `{name}`{'' if column.required else ' (optional)'}: {column.description or ''}"
                for name, column in table.columns.items()
            )
            st.markdown(f"**{table.name}**: {table.about}\n{columns}")
    files = _show_uploader([table.name for table in system.problem.tables])
    stored = session.take_result("upload")
    if stored is not None:
        state["uploaded"], _ = stored
        state["submitted files"] = None
        st.rerun()
    if files and st.button("Use these tables", type="primary", disabled=session.is_pending("upload")):
        state["submitted files"] = files
        session.submit("upload", worker.upload, system.name, files, session.folder())
    session.show_progress("upload", "reading")
    if files and files == state.get("submitted files") and state.get("error upload") is not None:
        _show_faults(state["error upload"], files)
    if "uploaded" not in state and restored and not files:
        st.warning("The tables of this address are not here any more: upload them again.")
    return str(state.get("uploaded", ""))


def _show_uploader(tables: list[str]) -> list[UploadedFile]:
    """Show the field for files and the table that each is for; return the files."""
    uploaded = st.file_uploader(
        "Tables", accept_multiple_files=True, key="files", label_visibility="collapsed"
    )
    files = []
    for place, given in enumerate(uploaded):
        file = UploadedFile(name=given.name, table="", content=given.getvalue())
        choices = uploads.tables_to_choose(tables, file.name)
        table = st.selectbox(
            f"Table of {file.display_name}",
            choices,
            index=choices.index(uploads.guess_table(tables, file.name)),
            key=f"table {place} {file.display_name}",
        )
        files.append(replace(file, table=table))
    return files


def _show_faults(error: PlannerError, files: list[UploadedFile]) -> None:
    """Show the faults of uploaded tables, and their rows with the faulty cells in red."""
    session.show_error(error)
    faults = error.faults if isinstance(error, InputError) else (str(error),)
    for name, rows in uploads.faulty_rows(faults, files).items():
        st.caption(f"{name}: rows with faults")
        st.dataframe(rows.style.apply(_cell_colours, axis=1), hide_index=True)


def _cell_colours(row: Any) -> list[str]:
    return [
        "background-color: rgba(213, 94, 0, 0.35)" if f"{name} is" in str(row["fault"]) else ""
        for name in row.index
    ]


# --- the answer ---------------------------------------------------------------------------


def _submit(question: Question, tables: Path) -> None:
    """Submit a question that is neither pending nor answered, in place of the one before."""
    state = st.session_state
    if state.get("question") == question:
        return
    baseline = _baseline(question)
    state["count"] = state.get("count", 0) + 1
    out = session.folder() / f"answer {state['count']}"
    state["question"] = question
    activity = session.folder() / "answer.activity"
    session.submit(
        "answer", worker.compare, question, tables, out, baseline.folder if baseline else None, activity
    )


def _baseline(question: Question) -> worker.Answer | None:
    """Return the answer to compare to, if it is for the same scenario."""
    baseline: worker.Answer | None = st.session_state.get("baseline")
    return baseline if baseline is not None and baseline.question.scenario == question.scenario else None


def _take_answer() -> None:
    """Take the answer of the workers, if there is one."""
    state = st.session_state
    answer: worker.Answer | None = session.take_result("answer")
    if answer is None:
        return
    former = state.get("answer")
    state["answer"] = answer
    state["explanations"] = {}
    session.cancel("explain")
    if _baseline(answer.question) is None:
        state["baseline"] = worker.without_content(answer)
    needed = {answer.folder, state["baseline"].folder}
    if former is not None and former.folder not in needed:
        shutil.rmtree(former.folder, ignore_errors=True)


def _take_explanation() -> None:
    """Take the explanation of the workers, if there is one."""
    explanation = session.take_result("explain")
    if explanation is not None:
        st.session_state["explanations"][st.session_state["explaining"]] = explanation


def _show_answer(question: Question, tables: Path) -> None:
    state = st.session_state
    session.show_progress("answer", "solving", "cancelled; change a setting to solve again")
    session.show_failure("answer")
    answer: worker.Answer | None = state.get("answer")
    if answer is None or answer.question.scenario != question.scenario:
        return
    if answer.question != question:
        st.caption("The results below are for the previous settings.")
    baseline = _baseline(answer.question)
    baseline = None if baseline is None or baseline.question == answer.question else baseline
    st.info(session.escape_markdown(answer.verdict))
    system = find_system(answer.system)
    st.caption(f"{system.headline.label}, and losses")
    rendering.show_headlines(answer)
    compiling = f", after compiling (once) for {answer.compile_s:.1f} s" if answer.compile_s > 0.05 else ""
    st.caption(f"answered in {answer.seconds:.1f} s{compiling}")
    rendering.show_metrics(answer, baseline, system.table_metrics)
    if len(system.table_metrics) < len(system.metrics):
        with st.expander(f"All {len(system.metrics)} metrics"):
            rendering.show_metrics(answer, baseline, system.metrics)
    rendering.show_lines(answer.notes)
    _show_baseline(answer, baseline)
    show_design = partial(_show_design, answer, tables, baseline is not None)
    rendering.show_tabs(
        "view",
        (COMPARISON, partial(rendering.show_charts, answer.charts, "comparison")),
        *((design.label, partial(show_design, design)) for design in answer.designs),
        (EXPORT, partial(_show_export, answer)),
    )


def _show_design(
    answer: worker.Answer, tables: Path, has_baseline: bool, design: worker.DesignAnswer
) -> None:
    rendering.show_lines(design.sentences)
    rendering.show_charts(design.charts, f"drawing {design.label}")
    if has_baseline:
        st.subheader("Changes since the baseline")
        rendering.show_frames(design.changes, "No changes.")
    if design.can_explain:
        _show_explanation(answer, tables, design.label)
    st.subheader("The plan")
    rendering.show_frames(design.tables, "No tables.")


def _show_baseline(answer: worker.Answer, baseline: worker.Answer | None) -> None:
    left, right = st.columns(2)
    if left.button("Use as baseline", help="Later answers show their changes since this one."):
        st.session_state["baseline"] = worker.without_content(answer)
        st.rerun()
    if baseline is not None:
        right.caption("Baseline: " + (baseline.question.command().partition(" compare ")[2]))


def _show_explanation(answer: worker.Answer, tables: Path, label: str) -> None:
    """Show what limits a plan and which upgrade pays, on request: it solves many times."""
    state = st.session_state
    st.subheader("What limits the plan")
    if session.is_pending("explain") and state["explaining"] == label:
        session.show_progress("explain", "solving with each candidate")
        return
    if label in state["explanations"]:
        rendering.show_part(state["explanations"][label], f"explanation {label}")
        return
    if st.button("Explain", key=f"explain {label}", help="Solve again to find the upgrade that pays most."):
        state["explaining"] = label
        session.submit("explain", worker.explain, answer.question, tables, label)
        st.rerun()
    session.show_failure("explain")


def _show_export(answer: worker.Answer) -> None:
    """Show the question as a command and as Python, and the downloads."""
    place = ", in the folder of the unpacked zip file" if answer.question.upload else ""
    st.caption(f"The same answer from the command line{place}")
    st.code(answer.question.command(), language="shell", wrap_lines=True)
    st.caption("The same answer in Python")
    st.code(answer.question.python(), language="python", wrap_lines=True)
    downloads = (
        ("Plans and metrics (zip)", "planner.zip", zip_folder(answer.folder)),
        ("Scenario (TOML)", "scenario.toml", (answer.folder / "scenario.toml").read_bytes()),
        ("Report (HTML)", "report.html", (answer.folder / "report.html").read_bytes()),
    )
    for column, (label, name, content) in zip(st.columns(3), downloads, strict=True):
        column.download_button(label, content, name, on_click="ignore")


def zip_folder(folder: Path) -> bytes:
    """Return the files of an answer, without its report, as a zip archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "report.html":
                archive.write(path, path.relative_to(folder))
    return content.getvalue()
