"""The panel below an answer: its files, address, command and Python, and a place in the store.

Files of an answer, made by workers when they are asked for.
"""

from __future__ import annotations

import io
import shutil
import zipfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import streamlit as st

from planner.contract.drawing import Drawing
from planner.errors import InputError, PlannerError
from planner_dashboard import answer_store, comparisons, session
from planner_dashboard.question import Question
from planner_dashboard.share import stored_results
from planner_dashboard.worker import Answer

if TYPE_CHECKING:
    from planner.reports.document import Page

MOST_FILES: Final = 12
"""Finished files that a session keeps."""
UPLOADED_NAME: Final = "scenario.toml"
"""Name of the scenario of uploaded tables, in place of its path on the server."""


@dataclass(frozen=True)
class Format:
    """A file that an answer can be saved as."""

    key: str
    label: str
    ending: str
    mime: str


FORMATS: Final = (
    Format("pdf", "PDF", "pdf", "application/pdf"),
    Format(
        "pptx",
        "PowerPoint",
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    Format("png", "Picture (PNG)", "png", "image/png"),
    Format("svg", "Picture (SVG)", "svg", "image/svg+xml"),
    Format("html", "Web page", "html", "text/html"),
    Format("zip", "Plans and metrics (zip)", "zip", "application/zip"),
    Format("toml", "Scenario (TOML)", "toml", "application/toml"),
)


def make_file(folder: Path, question: Question, key: str, label: str) -> bytes:
    """Return an answer as a file of one of FORMATS.

    folder  of the stored comparison
    label   of the design whose plan the picture shows; "" for the best one
    """
    if key in ("zip", "toml"):
        return _plans(folder, key)
    if key in ("png", "svg"):
        from planner.reports import pdf
        from planner.reports.drawing_svg import drawing_svg

        svg = drawing_svg(_picture(folder, label), 1200, title=True)
        return svg.encode() if key == "svg" else pdf.png(svg)
    page = page_of(folder, question)
    if key == "html":
        from planner.reports import html

        path = folder / "report.html"
        html.write(page, path)
        return path.read_bytes()
    from planner.reports import report_files

    report_files.require_packages(key)
    return report_files.content_of(page, key)


def page_of(folder: Path, question: Question) -> Page:
    """Return the page of a stored comparison, without paths of the server."""
    from planner.reports import run_pages

    scenario = comparisons.load_scenario(folder)
    if question.upload:
        scenario = replace(scenario, name=UPLOADED_NAME)
    return run_pages.document_page(comparisons.load(folder), scenario)


def _picture(folder: Path, label: str) -> Drawing:
    """Return the picture of a design's plan; raise InputError where there is none."""
    from planner.reports.run_drawings import draw_whole, show_failures
    from planner.runs.verdict import best_run

    result = comparisons.load(folder)
    run = next((run_ for run_ in result.runs if run_.label == label), None) or best_run(result.runs)
    draw = result.system.plan.draw
    drawings = [] if run is None or run.plan is None or draw is None else draw(run.problem, run.plan)
    if not drawings:
        raise InputError("there is no picture: no design has a plan, or the system draws none")
    return show_failures(drawings[0], draw_whole(comparisons.load_scenario(folder)))


def _plans(folder: Path, key: str) -> bytes:
    """Return the scenario, or a zip archive of the scenario, its uploaded tables and all plans."""
    out = folder / "files"
    comparisons.write_files(folder, out)
    try:
        if key == "toml":
            return (out / "scenario.toml").read_bytes()
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(out.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(out))
        return content.getvalue()
    finally:
        shutil.rmtree(out, ignore_errors=True)


def show_share(question: Question, answer: Answer, label: str = "") -> None:
    """Show the files of an answer, its address, its command and Python lines, and a field to keep it.

    label  of the design whose plan the picture shows; "" for the best one
    """
    st.markdown("**Documents**")
    st.caption("Question, verdict, picture, table and assumptions. The first click makes the file.")
    with st.container(horizontal=True, key="share files"):
        for format_ in FORMATS:
            _show_file(question, answer, label, format_)
    for format_ in FORMATS:
        session.show_progress(f"share {format_.key}", f"making {format_.label}")
        session.show_failure(f"share {format_.key}")
    st.markdown("**Address**")
    st.code(address_of(question.to_query()), language=None, wrap_lines=True)
    _show_sharing(question)
    st.markdown("**Command line**")
    st.code(question.command(), language="shell", wrap_lines=True)
    st.markdown("**Python**")
    st.code(question.python(), language="python", wrap_lines=True)
    _show_keep(question, answer)


def address_of(query: dict[str, str | list[str]]) -> str:
    """Return the address of this server's first page with a query."""
    url = urlsplit(st.context.url or "")
    base = f"{url.scheme}://{url.netloc}/" if url.netloc else "/"
    return f"{base}?{urlencode(query, doseq=True)}"


def _show_file(question: Question, answer: Answer, label: str, format_: Format) -> None:
    """Show the button that makes a file, or the download of the finished one."""
    state = st.session_state
    files: dict[Any, bytes] = state.setdefault("shared files", {})
    key = (str(answer.folder), format_.key, label if format_.key in ("png", "svg") else "")
    made = session.take_result(f"share {format_.key}")
    if made is not None:
        files[state[f"share wanted {format_.key}"]] = made
        while len(files) > MOST_FILES:
            del files[next(iter(files))]
    if key in files:
        name = f"{file_name(question)}.{format_.ending}"
        st.download_button(
            f"Save {format_.label}", files[key], name, format_.mime, on_click="ignore", type="primary",
            key=f"save {format_.key}",
        )  # fmt: skip
        return
    st.button(
        format_.label,
        key=f"make {format_.key}",
        disabled=session.is_pending(f"share {format_.key}"),
        on_click=partial(_submit, key, question, answer, label, format_),
    )


def _submit(key: Any, question: Question, answer: Answer, label: str, format_: Format) -> None:
    st.session_state[f"share wanted {format_.key}"] = key
    session.submit(f"share {format_.key}", make_file, answer.folder, question, format_.key, label)


def file_name(question: Question) -> str:
    """Return a plain name for the files of a question: `traffic germany50`."""
    words = "".join(letter if letter.isalnum() else " " for letter in question.scenario)
    return " ".join(words.split()) or "planner"


def _show_sharing(question: Question) -> None:
    """Show who can open the stored answer at the address of a question, and a button that changes it."""
    store_ = answer_store.of_server()
    stored = None if store_ is None else store_.find(question, session.visitor())
    if store_ is None or stored is None:
        st.caption("The answer is not stored: for everybody, this address asks the question.")
        return
    days = f"It is stored for {store_.max_age_days:g} days at most."
    if not stored.is_of(session.visitor()):
        st.caption(f"This answer is shared: everybody who opens this address sees it. {days}")
        return
    if stored.is_shared:
        st.caption(f"Shared: everybody who opens this address sees the stored answer. {days}")
    else:
        st.caption(
            f"Private: this browser opens the stored answer at this address, others see the question. {days}"
        )
    st.button(
        "Stop sharing" if stored.is_shared else "Share the answer",
        key="share answer",
        on_click=partial(store_.share, question, session.visitor(), is_shared=not stored.is_shared),
    )


# --- a place in the store -----------------------------------------------------------------


def _show_keep(question: Question, answer: Answer) -> None:
    """Show the field that keeps the answer in a store under a name."""
    st.markdown("**Keep in the store**")
    stores = session.stores()
    if not stores:
        st.caption("Start with `planner dashboard --store FOLDER` to keep answers that others can open.")
        return
    state = st.session_state
    with st.form("keep", border=False):
        name = st.text_input("Name", max_chars=stored_results.MAX_NAME, placeholder="Cologne link fails")
        notes = st.text_area("Notes", max_chars=stored_results.MAX_NOTES, height=68)
        store = st.selectbox("Store", stores, format_func=lambda path: path.name) if stores[1:] else stores[0]
        is_pressed = st.form_submit_button("Keep", disabled=session.is_pending("keep"))
    if is_pressed:
        state["kept question"] = question
        tables = session.folder() / question.upload if question.upload else session.folder()
        session.submit("keep", stored_results.save, store, answer.folder, question, tables, name, notes)
        st.rerun()
    result = session.take_result("keep")
    if result is not None:
        state["kept"] = state.get("kept question"), result
    session.show_progress("keep", "writing to the store")
    session.show_failure("keep")
    asked, number = state.get("kept", (None, ""))
    if asked == question:
        st.success("Kept. Any dashboard with this store opens it at this address:")
        st.code(address_of({"result": number}), language=None, wrap_lines=True)


def show_stored() -> None:
    """Show the results that the stores keep, the newest first, each with its address."""
    results = []
    for store in session.stores():
        try:
            results += [(store, result) for result in stored_results.list_results(store)]
        except PlannerError as error:
            session.show_error(error)
    for store, result in sorted(results, key=lambda pair: pair[1].saved, reverse=True):
        with st.container(border=True):
            st.markdown(f"**{session.escape_markdown(result.name)}**")
            st.markdown(session.escape_markdown(result.verdict))
            if result.notes:
                st.caption(session.escape_markdown(result.notes))
            words = f"{result.scenario}, {result.saved[:10]}, planner {result.version}, store {store.name}"
            with st.container(horizontal=True, vertical_alignment="center"):
                st.link_button("Open", address_of({"result": result.id}))
                st.caption(session.escape_markdown(words))
