"""Pick a system, change what matters, and see what each design makes of it."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner.catalogue import find_system, system_names
from planner.errors import InputError, PlannerError
from planner.parameters import parameters_of
from planner.scenario import Scenario, load, shipped
from planner_dashboard import fields, session, show, uploads, work
from planner_dashboard.asked import SOLVER, UPLOADED, Asked, current, forms
from planner_dashboard.server import START
from planner_dashboard.uploads import Sent

FIRST: Final = 3
"""Designs that are shown of a problem that names none."""
SIDE_BY_SIDE: Final = "Designs"
ELSEWHERE: Final = "The same elsewhere"


def page() -> None:
    """The page below its title."""
    state = st.session_state
    _collect()
    _collect_explained()
    if "restored" not in state:
        try:
            query = {key: st.query_params.get_all(key) for key in st.query_params}
            state["restored"] = Asked.from_query(query) or Asked(scenario=START)
        except PlannerError as error:
            session.said(error)
            state["restored"] = Asked(scenario=START)
    restored: Asked = state["restored"]
    with st.sidebar:
        names = [*shipped(), UPLOADED]
        name = st.selectbox("scenario", names, index=names.index(restored.scenario), key="scenario")
    upload = ""
    if name == UPLOADED:
        with st.expander("Your tables", expanded="uploaded" not in state):
            upload = _upload(restored.upload)
        if not upload:
            return
    home = session.folder() / upload if upload else session.folder()
    try:
        plain = load(home / "scenario.toml" if upload else name)
        asked = _asked(plain, name, upload, _restorable(restored, home, name))
    except PlannerError as error:
        session.said(error)
        return
    st.query_params.from_dict(asked.to_query())
    _put(asked, home)
    _answer(asked, home)


# --- what is asked ------------------------------------------------------------------------


def _restorable(restored: Asked, home: Path, name: str) -> Asked:
    """What the address asks of this scenario; without its changes where they are none that can be asked."""
    state = st.session_state
    if name != restored.scenario:
        return Asked(scenario=name)
    if "trouble address" not in state:
        try:
            restored.load(home)
            state["trouble address"] = None
        except PlannerError as error:
            state["trouble address"] = error
    if state["trouble address"] is None:
        return restored
    session.said(state["trouble address"])
    return Asked(scenario=name, upload=restored.upload)


def _asked(plain: Scenario, name: str, upload: str, restored: Asked) -> Asked:
    """The forms, and what they say."""
    offered = forms(plain)
    own = [entry.label for entry in plain.designs]
    labels = list(dict.fromkeys([*own, *(design.name for design in plain.system.designs)]))
    first = restored.designs or own or labels[:FIRST]
    blurs = plain.system.coordination.blurs if plain.system.coordination else ()
    most = {blur.parameter: max(blur.values) for blur in blurs}
    changes: dict[str, Any] = {}

    def ask(keys: list[str]) -> None:
        for key in keys:
            stands = current(plain, key, offered[key])
            options = _links() if key.endswith("fail_links") else ()
            far = most.get(offered[key].name) if ".sees." in key else None
            value = fields.ask(
                f"{name}{upload} {key}", offered[key], restored.changes.get(key, stands), options, far
            )
            if not _same(value, stands):
                changes[key] = value

    always = [f"problem.{key}" for key in parameters_of(plain.system.adjust)]
    with st.sidebar:
        st.subheader("Designs")
        chosen = st.multiselect(
            "designs to compare",
            labels,
            default=[label for label in first if label in labels],
            key=f"designs {name}{upload}",
            label_visibility="collapsed",
        )
        st.subheader("Problem")
        ask([key for key in offered if key in always])
        if made := [key for key in offered if key.startswith("problem.") and key not in always]:
            with st.expander("how it is made"):
                ask([key for key in made if not offered[key].required])
        for label in chosen:
            if keys := [key for key in offered if key.startswith(f"designs.{label}.")]:
                with st.expander(f"{label}: parameters"):
                    ask([key for key in keys if ".sees." not in key])
                    if seen := [key for key in keys if ".sees." in key]:
                        st.caption("what it sees")
                        ask(seen)
        with st.expander("solver"):
            ask([f"solver.{key}" for key in SOLVER])
    if not chosen:
        raise InputError("choose a design")
    designs = () if chosen == own else tuple(chosen)
    return Asked(scenario=name, upload=upload, changes=changes, designs=designs)


def _same(value: Any, stands: Any) -> bool:
    """Whether a field is as it stands; an empty list is none."""
    return value == stands or (value in ((), None) and stands in ((), [], None))


def _links() -> list[str]:
    """The links of the last answer's map, as lists of failures name them."""
    answer = st.session_state.get("answer")
    found = () if answer is None else (design.links for design in answer.designs if design.links)
    return list(next(iter(found), ()))


def _upload(restored: str) -> str:
    """The form for own tables; the digest of those that were taken."""
    state = st.session_state
    if restored and "uploaded" not in state and (session.folder() / restored / "scenario.toml").is_file():
        state["uploaded"] = restored
    system = find_system(st.selectbox("system", system_names(), key="upload system"))
    needed = ", ".join(
        f"**{table.name}**" + (" (optional)" if table.name in system.optional_tables else "")
        for table in system.tables
    )
    st.markdown(f"CSV or Parquet, a file for each table: {needed}")
    with st.popover("what the tables hold"):
        for table in system.tables:
            columns = "\n".join(
                f"- `{name}`{'' if column.required else ' (optional)'}: {column.description or ''}"
                for name, column in table.columns.items()
            )
            st.markdown(f"**{table.name}**: {table.about}\n{columns}")
    given = st.file_uploader("tables", accept_multiple_files=True, key="files", label_visibility="collapsed")
    names = [table.name for table in system.tables]
    sent = []
    for place, file in enumerate(given):
        guessed = uploads.guess(system, file.name)
        shown = Path(file.name.replace("\\", "/")).name[:60]
        choices = ["", *names]
        chosen = st.selectbox(
            f"which table is {shown}?",
            choices,
            index=choices.index(guessed or ""),
            key=f"table {place} {shown}",
        )
        sent.append(Sent(name=file.name, table=chosen, content=file.getvalue()))
    try:
        taken = session.answer("upload")
    except PlannerError as error:
        taken = None
        state["trouble upload"] = error
    if taken is not None:
        state["uploaded"], _ = taken
        state["sent"] = None
        st.rerun()
    if sent and st.button("Use these tables", type="primary", disabled=session.is_asked("upload")):
        state["trouble upload"] = None
        state["sent"] = sent
        session.put("upload", work.upload, system.name, sent, session.folder())
    if session.is_asked("upload"):
        session.progress("upload", "reading")
    if sent and sent == state.get("sent") and state.get("trouble upload") is not None:
        _refused(state["trouble upload"], sent)
    if "uploaded" not in state and restored and not sent:
        st.warning("The tables of this address are not here any more: upload them again.")
    return str(state.get("uploaded", ""))


def _refused(error: PlannerError, sent: list[Sent]) -> None:
    """What is wrong with uploaded tables, and where."""
    session.said(error)
    faults = error.faults if isinstance(error, InputError) else (str(error),)
    for name, rows in uploads.marked(faults, sent).items():
        st.caption(f"{name}: the rows that are wrong")
        st.dataframe(rows.style.apply(_red, axis=1), hide_index=True)


def _red(row: Any) -> list[str]:
    return [
        "background-color: rgba(213, 94, 0, 0.35)" if f"{name} is" in str(row["fault"]) else ""
        for name in row.index
    ]


# --- the answer ---------------------------------------------------------------------------


def _put(asked: Asked, home: Path) -> None:
    """Ask, if this is not asked or answered yet; what was asked before is of no use any more."""
    state = st.session_state
    if state.get("asked") == asked:
        return
    before = _before(asked)
    state["count"] = state.get("count", 0) + 1
    out = session.folder() / f"answer {state['count']}"
    state["asked"] = asked
    state["trouble answer"] = None
    session.put("answer", work.compare, asked, home, out, before.folder if before else None)


def _before(asked: Asked) -> Any:
    """The answer to compare to: the last one kept, of the same scenario."""
    before = st.session_state.get("before")
    return before if before is not None and before.asked.scenario == asked.scenario else None


def _collect() -> None:
    """Take in the answer that has come, if one has."""
    state = st.session_state
    try:
        answer: work.Answer | None = session.answer("answer")
    except PlannerError as error:
        state["trouble answer"] = error
        return
    if answer is None:
        return
    former = state.get("answer")
    state["answer"] = answer
    state["explained"] = {}
    session.withdraw("explain")
    if _before(answer.asked) is None:
        state["before"] = work.plain(answer)
    keep = {answer.folder, state["before"].folder}
    if former is not None and former.folder not in keep:
        shutil.rmtree(former.folder, ignore_errors=True)


def _collect_explained() -> None:
    """Take in the explanation that has come, if one has."""
    state = st.session_state
    try:
        found = session.answer("explain")
    except PlannerError as error:
        state["trouble explain"] = error
        return
    if found is not None:
        state["explained"][state["explaining"]] = found


def _answer(asked: Asked, home: Path) -> None:
    state = st.session_state
    if session.is_asked("answer"):
        session.progress("answer", "solving", "cancelled; change something to ask again")
    if state.get("trouble answer") is not None:
        session.said(state["trouble answer"])
    answer = state.get("answer")
    if answer is None or answer.asked.scenario != asked.scenario:
        return
    if answer.asked != asked:
        st.caption("The answer below is to the question before.")
    _shown(answer, home)


def _shown(answer: work.Answer, home: Path) -> None:
    before = _before(answer.asked)
    since = None if before is None or before.asked == answer.asked else before
    st.caption(f"{answer.size}; answered in {answer.seconds:.1f} s")
    show.metrics(answer, since)
    for design in answer.designs:
        if design.trouble:
            st.error(f"{design.label}: {design.status}: {session.plain(design.trouble)}")
    _keep(answer, since)
    names = [design.label for design in answer.designs]
    # what is in the others is neither sent nor drawn
    tabs = st.tabs([SIDE_BY_SIDE, *names, ELSEWHERE], key="view", on_change="rerun")
    if tabs[0].open:
        with tabs[0]:
            show.charts(answer.charts, "comparison")
    for tab, design in zip(tabs[1:-1], answer.designs, strict=True):
        if tab.open:
            with tab:
                _design(answer, design, since, home)
    if tabs[-1].open:
        with tabs[-1]:
            where = ", in the folder of what the zip below holds" if answer.asked.upload else ""
            st.caption(f"the same answer from the command line{where}")
            st.code(answer.asked.command(), language="shell", wrap_lines=True)
            st.caption("and in Python")
            st.code(answer.asked.python(), language="python", wrap_lines=True)
            _downloads(answer)


def _design(answer: work.Answer, design: work.Design, since: work.Answer | None, home: Path) -> None:
    for sentence in design.violations:
        st.warning(session.plain(sentence))
    show.charts(design.charts, f"drawing {design.label}")
    if since is not None:
        st.subheader("What changed since the plan before")
        show.tables(design.changed, "nothing")
    if design.explains:
        _explained(answer, home, design.label)
    st.subheader("The plan")
    show.tables(design.tables, "no tables")


def _keep(answer: work.Answer, since: work.Answer | None) -> None:
    left, right = st.columns(2)
    if left.button(
        "Compare what comes to this", help="what changes is shown against this answer from now on"
    ):
        st.session_state["before"] = work.plain(answer)
        st.rerun()
    if since is not None:
        right.caption("compared to: " + (since.asked.command().partition(" compare ")[2]))


def _explained(answer: work.Answer, home: Path, label: str) -> None:
    """What binds and which upgrade pays, on demand: it solves many times."""
    state = st.session_state
    st.subheader("What limits it")
    name = "explain"
    if session.is_asked(name) and state["explaining"] == label:
        session.progress(name, "solving again with each candidate")
        return
    found = state["explained"].get(label)
    if found is None:
        if st.button(
            "Explain", key=f"explain {label}", help="solves again to find the upgrade that pays most"
        ):
            state["explaining"] = label
            state["trouble explain"] = None
            session.put(name, work.explain, answer.asked, home, label)
            st.rerun()
        if state.get("trouble explain") is not None:
            session.said(state["trouble explain"])
        return
    sentences, sections = found
    for sentence in sentences:
        st.markdown("- " + session.plain(sentence))
    for section in sections:
        if len(section.frame):
            st.caption(section.title)
            st.dataframe(section.frame, hide_index=True)


def _downloads(answer: work.Answer) -> None:
    columns = st.columns(3)
    columns[0].download_button(
        "Plans and metrics (zip)", _zipped(answer.folder), "planner.zip", on_click="ignore"
    )
    columns[1].download_button(
        "Scenario (TOML)", (answer.folder / "scenario.toml").read_bytes(), "scenario.toml", on_click="ignore"
    )
    columns[2].download_button(
        "Report (HTML)", (answer.folder / "report.html").read_bytes(), "report.html", on_click="ignore"
    )


def _zipped(folder: Path) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "report.html":
                archive.write(path, path.relative_to(folder))
    return held.getvalue()
