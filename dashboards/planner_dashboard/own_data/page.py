"""The page "Your data": drop files, see their content, edit their cells, solve them or save a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd
import streamlit as st

from planner.contract.drawing import NetworkMap
from planner.contract.questions import OpenQuestion
from planner.contract.system import System
from planner.contract.table import Table
from planner.contract.units import symbols_like, unit_of
from planner.errors import InputError
from planner.formatting import sizes
from planner.io.layout import Layout
from planner.io.recognition import Choice, Sheet
from planner.io.table_files import suffix_of
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.read_columns import ReadColumn
from planner.scenarios.shipped import own_folders, scenario_names
from planner_dashboard import pictures, rendering, session, titles
from planner_dashboard.fields import column_label
from planner_dashboard.own_data import network_editor, network_edits, tasks
from planner_dashboard.own_data.drafts import Draft, in_words, replace_rows, split_faults
from planner_dashboard.own_data.intake import GivenFile
from planner_dashboard.question import UPLOADED, Question
from planner_dashboard.session import escape_markdown
from planner_dashboard.what_if import history

ROWS_SHOWN: Final = 500
"""Rows of a table that its editor shows at a time."""
PICTURE_HEIGHT: Final = 420
FAULT: Final = "Fault"
FAULT_COLOUR: Final = "color: #d73027; font-weight: 600"
CELLS, MAP, VIEW = "Tables", "Map", "own view"
NO_TABLE: Final = "not a table"
ALL_WINDOWS: Final = "all windows"
MARKS: Final = {"as found": None, "1,234.5": ".", "1.234,5": ","}
"""Ways to write a number, and the decimal mark of each."""
AS_NAMED: Final = "as the file says"
"""Choice of the unit of a matrix that its file names, or that is assumed."""
SEPARATORS: Final = {"as found": None, "comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
ENCODINGS: Final = ("as found", "utf-8", "cp1252", "cp1250", "cp1251", "utf-16")
TEXT_FILES: Final = (".csv", ".tsv", ".txt", ".csv.gz")


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """Contents of the editor; it begins anew where its signature changes.

    key     of streamlit's element
    whole   the table when the editor began
    places  of the rows that it shows
    """

    signature: Any
    key: str
    whole: pd.DataFrame
    places: list[int]


@dataclass(eq=False)
class PageState:
    """State of a session on this page.

    taken     the files that were given, and what they are
    chosen    the sheets that the draft was read from
    draft     the tables in work
    checked   the last check, and the frames that it is of
    unitless  tables that are read from matrices, or with columns that name no unit
    columns   each column of the files as it is read
    windows   windows of tables with a time in each row, by table
    packed    a scenario with all windows, as a zip archive, and the choice of sheets that it is of
    template  name and content of a workbook to fill in
    answers   to questions that the tables leave open, by parameter
    planned   digest of the scenario with an existing plan, which is one of the scenario `planned_from`
    plan_given  files of that plan
    shown     what the editor shows
    drawing   of the last valid tables of a network
    editors   number of editors so far
    """

    taken: tasks.Taken | None = None
    given: Any = None
    chosen: Any = None
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unread: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unitless: frozenset[str] = frozenset()
    columns: Sequence[ReadColumn] = ()
    windows: Mapping[str, tasks.TableWindows] = field(default_factory=dict)
    packed: tuple[bytes, Any] | None = None
    template: tuple[str, bytes] | None = None
    draft: Draft | None = None
    checked: tasks.Checked | None = None
    answers: dict[str, Any] = field(default_factory=dict)
    checked_frames: Any = None
    asked_frames: Any = None
    shown: Shown | None = None
    drawing: NetworkMap | None = None
    editors: int = 0
    saved: str = ""
    planned: str = ""
    planned_from: str = ""
    plan_given: Any = None


def page() -> None:
    """Show the page below its title."""
    state: PageState = st.session_state.setdefault("own data", PageState())
    _take_results(state)
    _show_start(state)
    if state.taken is not None:
        _show_recognition(state, state.taken)
    elif state.draft is None:
        _show_needs(state)
    if state.draft is None:
        return
    top = st.container()
    if _show_view(state.draft) == MAP:
        drawing = state.checked.drawing if state.checked is not None else None
        state.drawing = drawing if isinstance(drawing, NetworkMap) else state.drawing
        network_editor.show_editor(state.draft, state.drawing)
        _submit_check(state, state.draft)
        with top:
            session.show_progress("own check", "checking")
            session.show_failure("own check")
            _show_state(state, state.draft)
        return
    left_column, right = st.columns([7, 3], gap="large")
    with left_column:
        _show_tables(state, state.draft)
    _submit_check(state, state.draft)
    with top:
        _show_state(state, state.draft)
    with right:
        _show_problem(state)


def _show_view(draft: Draft) -> str:
    """Show whether the tables or the map of a network are changed; return which."""
    if not network_edits.has_network(find_system(draft.system), draft.frames):
        return CELLS
    view = st.segmented_control(
        "Change", [CELLS, MAP], default=CELLS, required=True, key=VIEW, label_visibility="collapsed"
    )
    return str(view)


def open_question(question: Question, tables: Path) -> None:
    """Open this page with the tables of a question, on its map; for callbacks of buttons.

    tables  folder of the uploaded tables
    """
    state: PageState = st.session_state.setdefault("own data", PageState())
    state.taken = state.chosen = None
    st.session_state[VIEW] = MAP
    session.submit("own tables", tasks.read_question, question, tables)


# --- results of the workers ---------------------------------------------------------------


def _take_results(state: PageState) -> None:
    """Take the finished results of the workers."""
    taken: tasks.Taken | None = session.take_result("own files")
    if taken is not None:
        state.taken, state.chosen, state.draft, state.checked = taken, None, None, None
        state.answers = {}
        state.missing, state.unread, state.unitless, state.columns = {}, {}, frozenset(), ()
        state.windows, state.packed = {}, None
    read: tasks.Read | None = session.take_result("own tables")
    if read is not None:
        version = state.draft.version + 1 if state.draft else 0
        state.draft = Draft(
            system=read.system,
            frames=read.frames,
            sections=read.sections,
            notes=read.notes,
            version=version,
        )
        state.missing, state.unread, state.checked, state.asked_frames = read.missing, read.faults, None, None
        state.drawing = None
        state.unitless, state.columns = read.matrices | read.unitless, read.columns
        state.windows = read.windows
    checked: tasks.Checked | None = session.take_result("own check")
    if checked is not None:
        state.checked, state.checked_frames = checked, state.asked_frames
    template: tuple[str, bytes] | None = session.take_result("own template")
    if template is not None:
        state.template = template
    packed: bytes | None = session.take_result("own windows")
    if packed is not None:
        state.packed = (packed, state.chosen)
    planned: str | None = session.take_result("own plan")
    if planned is not None:
        state.planned, state.planned_from = planned, state.checked.digest if state.checked else ""
    saved: str | None = session.take_result("own save")
    if saved is not None:
        state.saved = saved


# --- where the tables come from -----------------------------------------------------------


def _show_needs(state: PageState) -> None:
    """Show the tables that each system takes."""
    st.subheader("Which tables answer which question")
    st.caption(
        "The system is recognized by its tables. Columns may have other names, and other units where the "
        "name says them, such as Capacity (Gbit/s); the page shows what was read as what. "
        "Tables and columns in brackets may be left out."
    )
    lines = ["| Question | System | Tables and their columns |", "|---|---|---|"]
    for name in system_names():
        system = find_system(name)
        needed = [
            table for table in system.problem.tables if table.name not in system.problem.optional_tables
        ]
        tables = "<br>".join(f"**{column_label(table.name)}**: {_columns_to_type(table)}" for table in needed)
        if system.problem.optional_tables:
            tables += f"<br>[{', '.join(map(column_label, system.problem.optional_tables))}]"
        lines.append(f"| {system.question} | {system.label} | {tables} |")
    st.markdown("\n".join(lines), unsafe_allow_html=True)
    _show_template(state)


def _show_template(state: PageState) -> None:
    """Offer a workbook to fill in: a sheet for each table, and one that explains the columns."""
    st.subheader("A workbook to fill in")
    name = st.selectbox(
        "Workbook for the system", system_names(), index=None, format_func=_title, key="own template system"
    )
    if st.button("Prepare the workbook", disabled=name is None, key="own template button"):
        session.submit("own template", tasks.make_template, name)
    session.show_progress("own template", "writing")
    session.show_failure("own template")
    if state.template is not None:
        file_name, content = state.template
        st.download_button("Download the workbook", content, file_name=file_name, key="own template download")


def _title(system: str) -> str:
    return find_system(system).label


def _columns_to_type(table: Table) -> str:
    """Return the columns of a table as they are typed in files, the optional ones in brackets."""
    optional = [f"`{name}`" for name, column in table.columns.items() if not column.required]
    required = ", ".join(f"`{name}`" for name in table.required_columns)
    return required + (f" [{', '.join(optional)}]" if optional else "")


def _show_start(state: PageState) -> None:
    """Show the field for files, and the choice of a scenario to start from."""
    left_column, right = st.columns([7, 3], gap="large")
    with left_column:
        uploaded = st.file_uploader(
            "Files",
            accept_multiple_files=True,
            key="own uploads",
            help="A workbook, a file for each table (CSV, Excel, OpenDocument, Parquet, Feather, JSON), or a "
            "zip archive of a folder. The files stay on this server and are removed with your session.",
        )
        st.caption(f"Up to {st.get_option('server.maxUploadSize')} MB in a file.")
    uploaded_ids = [(file.name, file.file_id) for file in uploaded]
    if uploaded_ids and uploaded_ids != state.given:
        files = [GivenFile(name=file.name, content=file.getvalue()) for file in uploaded]
        session.submit("own files", tasks.take_files, files, session.folder())
    state.given = uploaded_ids
    with right:
        name = st.selectbox(
            "Or start from a scenario",
            scenario_names(),
            index=None,
            format_func=titles.title_with_topic,
            placeholder="Choose a scenario",
            key="own start",
        )
        if st.button("Edit its tables", disabled=name is None, key="own start button"):
            state.taken = state.chosen = None
            session.submit("own tables", tasks.read_scenario, name)
    session.show_progress("own files", "recognizing")
    session.show_failure("own files")
    session.show_progress("own tables", "reading")
    session.show_failure("own tables")


def _show_recognition(state: PageState, taken: tasks.Taken) -> None:
    """Show the content of each file or sheet, ask about unclear ones, and have the tables read."""
    for fault in taken.faults:
        st.error(escape_markdown(fault))
    for note in taken.notes:
        st.caption(escape_markdown(note))
    if not taken.sheets:
        return
    with st.expander("Files and tables", expanded=state.draft is None or bool(state.unread)):
        system = _show_system(taken)
        if system is None:
            return
        selected, is_clear = _show_sheets(state, system, taken)
        if state.columns:
            _show_read_columns(state.columns)
    picked = _show_windows(state, system, selected)
    sheets = [(table, sheet.name, layout) for table, (sheet, layout) in selected.items()]
    choice = (system.name, sheets, picked)
    if is_clear and selected and choice != state.chosen:
        state.chosen = choice
        session.submit("own tables", tasks.read_sheets, system.name, selected, picked)
        st.rerun()


def _show_windows(
    state: PageState, system: System, selected: Mapping[str, tuple[Sheet, Layout]]
) -> dict[str, str]:
    """Show the windows of tables with a time in each row; return the label of each that is chosen."""
    picked: dict[str, str] = {}
    for table, windows in state.windows.items():
        if table not in selected or len(windows.labels) < 2:
            continue
        with st.container(border=True):
            st.markdown(
                escape_markdown(
                    f"{column_label(table)} have {len(windows.labels):,} windows, by column "
                    f"'{windows.column}': solve one of them here, or all of them as a network over time."
                )
            )
            label = st.selectbox(
                "Window", [*windows.labels, ALL_WINDOWS], key=f"own window {system.name} {table}"
            )
            if label != ALL_WINDOWS:
                picked[table] = label
                continue
            _show_all_windows(state, system, selected)
    return picked


def _show_all_windows(state: PageState, system: System, selected: Mapping[str, tuple[Sheet, Layout]]) -> None:
    """Offer the scenario of all windows as an archive."""
    name = f"my_{system.name}"
    if st.button("Prepare the scenario of all windows", key="own windows button"):
        session.submit("own windows", tasks.pack_windows, system.name, dict(selected), state.answers, name)
    session.show_progress("own windows", "writing")
    session.show_failure("own windows")
    if state.packed is not None and state.packed[1] == state.chosen:
        st.download_button(
            "Download all windows (zip)", state.packed[0], file_name=f"{name}.zip", key="own windows download"
        )
        st.caption(f"Unpacked, it runs with: `planner roll {name}/scenario.toml --out {name}/out`")


def _show_sheets(
    state: PageState, system: System, taken: tasks.Taken
) -> tuple[dict[str, tuple[Sheet, Layout]], bool]:
    """Show the table of each sheet; return the sheet of each table, and whether no question is left."""
    reading = taken.recognition.reading(system.name)
    choices = reading.choices if reading else tuple(Choice(table=None) for _ in taken.sheets)
    selected: dict[str, tuple[Sheet, Layout]] = {}
    is_clear = True
    for index, (sheet, choice) in enumerate(zip(taken.sheets, choices, strict=True)):
        table = _show_sheet(system, index, sheet, choice)
        if table is None:
            is_clear = False
        elif table in selected:
            st.error(
                escape_markdown(f"{sheet.name}: {selected[table][0].name} is {column_label(table)} already")
            )
            is_clear = False
        elif table != NO_TABLE:
            selected[table] = (sheet, _show_layout(state, system, index, sheet, table))
    kind = system.problem
    needed = [item.name for item in kind.tables if item.name not in (*kind.optional_tables, *selected)]
    if needed:
        st.warning(
            escape_markdown(
                f"Still missing: {', '.join(map(column_label, needed))}. Add a file, or fill in the table."
            )
        )
    return selected, is_clear


def _show_system(taken: tasks.Taken) -> System | None:
    """Show the choice of the system; the files tell it, or the user is asked."""
    fitting = [reading.system for reading in taken.recognition.readings]
    names = [*fitting, *(name for name in system_names() if name not in fitting)]
    if taken.system is None:
        which = " or ".join(map(_title, fitting[:3])) or "none of the systems by its columns"
        st.warning(escape_markdown(f"Which system is it? The columns fit {which}."))
    selected_name = st.selectbox(
        "System",
        names,
        index=None if taken.system is None else names.index(taken.system),
        placeholder="Choose the system",
        format_func=lambda name: f"{_title(name)}: {find_system(name).question}",
        key=f"own system {id(taken)}",
    )
    return None if selected_name is None else find_system(selected_name)


def _show_sheet(system: System, index: int, sheet: Sheet, choice: Choice) -> str | None:
    """Show the choice of a sheet's table; return the table, NO_TABLE, or None for no choice yet."""
    tables = [table.name for table in system.problem.tables]
    names = [*choice.fitting, *(name for name in tables if name not in choice.fitting), NO_TABLE]
    is_question = choice.table is None and bool(choice.fitting)
    default = choice.table or (None if is_question else NO_TABLE)
    if is_question:
        which = " or ".join(map(column_label, choice.fitting))
        st.warning(escape_markdown(f"{sheet.name}: is it {which}? Its columns and its name do not tell."))
    selected: str | None = st.selectbox(
        f"{sheet.name}: {', '.join(sheet.widest)[:120]}",
        names,
        index=None if default is None else names.index(default),
        placeholder="Which table is it?",
        format_func=column_label,
        key=f"own table {system.name} {index} {sheet.name} {choice.table}",
    )
    return selected


def _symbols_of(table: Table) -> list[str]:
    """Return the units that a table's first quantity may have."""
    quantities = [ours for ours in (*table.required_columns, *table.columns) if unit_of(ours)[1] is not None]
    return symbols_like(quantities[0]) if quantities else []


def _show_read_columns(columns: Sequence[ReadColumn]) -> None:
    """Show each column of the files beside ours, with its unit and its assumptions."""
    rows = [
        {
            "Your file": column.sheet,
            "Your column": column.given,
            "Read as": column.ours or "not read",
            "Unit": column.unit,
            "Assumed": column.assumption,
        }
        for column in columns
    ]
    st.caption("How the columns were read")
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")


def _show_layout(state: PageState, system: System, index: int, sheet: Sheet, table: str) -> Layout:
    """Show the format of a file, if it must be stated: marks, separator, encoding, names of columns."""
    faults = state.unread.get(table, ())
    for fault in faults:
        st.error(escape_markdown(fault))
    declared = next(table_ for table_ in system.problem.tables if table_.name == table)
    key = f"own layout {system.name} {index} {sheet.name} {table}"
    with st.popover("Columns and numbers", type="primary" if faults else "secondary"):
        decimal = st.selectbox("Numbers are written like", list(MARKS), key=f"{key} decimal")
        settings: dict[str, Any] = {"decimal": MARKS[decimal]}
        if suffix_of(sheet.path) in TEXT_FILES:
            separator = st.selectbox("Columns are separated by", list(SEPARATORS), key=f"{key} separator")
            encoding = st.selectbox("Encoding", ENCODINGS, key=f"{key} encoding")
            settings["delimiter"] = SEPARATORS[separator]
            settings["encoding"] = None if encoding == ENCODINGS[0] else encoding
        if table in state.unitless:
            units = (AS_NAMED, *_symbols_of(declared))
            unit = st.selectbox("Unit of what names none", units, key=f"{key} unit")
            settings["unit"] = None if unit == AS_NAMED else unit
        columns = list(dict.fromkeys(name for names in sheet.columns for name in names))
        mapping = _map_columns(declared, columns, state.missing.get(table, ()), key)
        ignored = st.multiselect("Leave out", columns, key=f"{key} ignore")
    return Layout(
        **settings, columns=mapping, ignore=tuple(ignored), advice="choose it under 'Columns and numbers'"
    )


def _map_columns(declared: Table, columns: Sequence[str], missing: Sequence[str], key: str) -> dict[str, str]:
    """Ask for the column of the file that is each missing one of ours; return the answers, which it keeps."""
    mapping: dict[str, str] = {}
    for ours in dict.fromkeys([*missing, *st.session_state.get(f"{key} mapped", ())]):
        is_required = declared.columns[ours].required
        column = st.selectbox(
            f"{column_label(ours)}{'' if is_required else ' (optional)'} is the column",
            columns,
            index=None,
            placeholder="none of them" if not is_required else "choose a column",
            help=declared.columns[ours].about,
            key=f"{key} column {ours}",
        )
        if column is not None:
            mapping[ours] = column
    st.session_state[f"{key} mapped"] = tuple(mapping)
    return mapping


# --- editing ------------------------------------------------------------------------------


def _show_tables(state: PageState, draft: Draft) -> None:
    """Show each table of the system with its cells to edit, faults at their rows."""
    tables = find_system(draft.system).problem.table_by_name
    faults, _ = _faults(state, draft)

    def title(name: str) -> str:
        words = column_label(name)
        if name not in draft.frames:
            return f"{words}, none"
        count = len(faults.get(name, {}))
        marks = f" :red[{sizes({'faults': count})}]" if count else ""
        return f"{words} {len(draft.frames[name]):,}{marks}"

    first = next(iter([*faults, *draft.frames, *tables]))
    picked = st.segmented_control(
        "Table",
        list(tables),
        default=first,
        format_func=title,
        key=f"own picked {draft.system}",
        label_visibility="collapsed",
    )
    table = tables[picked or first]
    about = table.about[:1].upper() + table.about[1:]
    notes = [in_words(note, table.columns) for note in draft.notes.get(table.name, ())]
    st.caption("  \n".join(escape_markdown(line) for line in (f"{about}.", *notes)))
    if table.name in draft.frames:
        _show_editor(state, draft, table, faults.get(table.name, {}))
    elif st.button("Add this table", key=f"own add {table.name}"):
        draft.change(table.name, pd.DataFrame({name: _empty(table, name) for name in table.required_columns}))
        st.rerun()


def _empty(table: Table, column: str) -> pd.Series:
    return pd.Series([], dtype=object if table.columns[column].is_label else float)


def _faults(state: PageState, draft: Draft) -> tuple[dict[str, dict[int, str]], list[str]]:
    """Return the faults of rows of the last check, and the others."""
    faults = state.checked.faults if state.checked is not None else ()
    return split_faults(faults, [table.name for table in find_system(draft.system).problem.tables])


def _show_editor(state: PageState, draft: Draft, table: Table, faults: Mapping[int, str]) -> None:
    """Show the cells of a table; a change is taken into the draft."""
    frame = draft.frames[table.name]
    only_faulty = bool(faults) and st.toggle("Only rows with faults", key=f"own only {table.name}")
    first = 0
    if not only_faulty and len(frame) > ROWS_SHOWN:
        pages = -(-len(frame) // ROWS_SHOWN)
        number = st.number_input(
            f"Part of {pages} (of {ROWS_SHOWN} rows each)", 1, pages, key=f"own part {table.name}"
        )
        first = (int(number) - 1) * ROWS_SHOWN
    signature = (table.name, draft.version, first, only_faulty, tuple(sorted(faults.items())))
    view = state.shown
    # the browser forgets the edits of an editor that is not shown any more
    if view is None or view.signature != (*signature, *frame.columns) or view.key not in st.session_state:
        last = min(first + ROWS_SHOWN, len(frame))
        indices = [index for index in sorted(faults) if index < len(frame)]
        state.editors += 1
        view = state.shown = Shown(
            signature=(*signature, *frame.columns),
            key=f"own cells {state.editors}",
            whole=frame,
            places=indices if only_faulty else list(range(first, last)),
        )
    cells = view.whole.iloc[view.places]
    shown = cells.copy()
    if faults:
        texts = [in_words(faults.get(index, ""), table.columns) for index in view.places]
        shown.insert(0, FAULT, texts)
    shown.index = (
        pd.Index([index + 1 for index in view.places])
        if only_faulty
        else pd.RangeIndex(first + 1, first + 1 + len(shown))
    )
    # only cells that cannot be edited take a colour
    styled = shown.style.map(lambda _: FAULT_COLOUR, subset=[FAULT]) if faults else shown
    edited_table = st.data_editor(
        styled,
        key=view.key,
        num_rows="fixed" if only_faulty else "dynamic",
        hide_index=False,
        column_config={
            "_index": st.column_config.Column("Row", disabled=True),
            FAULT: st.column_config.TextColumn(FAULT, disabled=True, width="large"),
        }
        | {name: _column_config(table, name, shown[name]) for name in cells.columns},
        width="stretch",
        height=min(640, 75 + 35 * max(len(shown), 1)),
    )
    edited = tasks.editable(table, edited_table.drop(columns=FAULT, errors="ignore"))
    changed = view.whole
    if not edited.equals(tasks.editable(table, cells)):
        changed = tasks.editable(table, replace_rows(view.whole, view.places, edited))
    if not changed.equals(frame):
        draft.change(table.name, changed)
    _show_columns(draft, table)


def _column_config(table: Table, name: str, values: pd.Series) -> Any:
    about = table.columns[name].about
    if pd.api.types.is_numeric_dtype(values):
        return st.column_config.NumberColumn(column_label(name), help=about, format="%.10g")
    return st.column_config.TextColumn(column_label(name), help=about)


def _show_columns(draft: Draft, table: Table) -> None:
    """Show the optional columns that the table does not have, to be added."""
    frame = draft.frames[table.name]
    absent = [name for name in table.columns if name not in frame]
    left_column, right = st.columns(2, vertical_alignment="bottom")
    if absent:
        with left_column.popover("Add a column"):
            for name in absent:
                about = table.columns[name].about
                if st.button(column_label(name), help=about, key=f"own column {table.name} {name}"):
                    values = pd.Series(None, index=frame.index, dtype=_empty(table, name).dtype)
                    added = frame.assign(**{name: values})
                    draft.change(table.name, tasks.editable(table, added))
                    st.rerun()
    is_optional = table.name in find_system(draft.system).problem.optional_tables
    if is_optional and right.button("Remove this table", key=f"own remove {table.name}"):
        draft.change(table.name, None)
        st.rerun()


# --- state and problem --------------------------------------------------------------------


def _submit_check(state: PageState, draft: Draft) -> None:
    """Have the tables checked where they have changed since the last check."""
    if state.asked_frames is draft.frames:
        return
    state.asked_frames, state.saved = draft.frames, ""
    session.submit(
        "own check",
        tasks.check_tables,
        draft.system,
        draft.frames,
        draft.sections,
        session.folder(),
        dict(state.answers),
    )


def _show_state(state: PageState, draft: Draft) -> None:
    """Show whether the tables are a valid problem, and the possible actions."""
    checked = state.checked
    if checked is None:
        return
    is_current = state.checked_frames is draft.frames
    if checked.faults:
        st.subheader(f":red[{sizes({'faults': len(checked.faults)})}] to correct before it can be solved")
    else:
        st.subheader(escape_markdown(f"A valid problem of {_title(draft.system)}: {checked.size}"))
    _, others = _faults(state, draft)
    for fault in others[: session.MAX_ERROR_LINES]:
        st.error(escape_markdown(fault))
    for question in checked.questions:
        _show_question(state, question)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if st.button("Solve", type="primary", disabled=not (is_current and checked.digest), key="own solve"):
            _open_question(_stored(state, checked))
        if st.button("Undo", disabled=not draft.past, key="own undo", shortcut="ctrl+alt+z"):
            draft.undo()
            st.rerun()
        if st.button("Redo", disabled=not draft.future, key="own redo", shortcut="ctrl+alt+y"):
            draft.redo()
            st.rerun()
        if is_current and checked.digest:
            _show_plan(state, checked)
            _show_save(state, draft, checked)


def _stored(state: PageState, checked: tasks.Checked) -> str:
    """Return the digest of the checked scenario, with its existing plan where one is given."""
    return state.planned if state.planned and state.planned_from == checked.digest else checked.digest


def _show_plan(state: PageState, checked: tasks.Checked) -> None:
    """Show the field for an existing plan, which is shown beside the designs."""
    with st.popover("Add today's plan"):
        uploaded = st.file_uploader(
            "Files of the plan",
            accept_multiple_files=True,
            key="own plan files",
            help="The tables of a plan as planner saves them, also in a zip archive; for traffic also a list "
            "of tunnels: a table with their paths, or what a router prints of them.",
        )
        uploaded_ids = [(file.name, file.file_id) for file in uploaded]
        if uploaded_ids and (uploaded_ids, checked.digest) != state.plan_given:
            files = [GivenFile(name=file.name, content=file.getvalue()) for file in uploaded]
            session.submit("own plan", tasks.add_plan, session.folder() / checked.digest, files)
            state.plan_given = (uploaded_ids, checked.digest)
        session.show_progress("own plan", "reading")
        session.show_failure("own plan")
        if _stored(state, checked) != checked.digest:
            st.success("The plan is named today, and stands beside the designs.")


def _show_question(state: PageState, question: OpenQuestion) -> None:
    """Show a question that the tables leave open; another answer has them checked again."""
    current = state.answers.get(question.parameter, question.assumed)
    options = list(question.answers)
    answer = st.radio(
        f"{question.text[:1].upper()}{question.text[1:]}?",
        options,
        index=options.index(current) if current in options else None,
        format_func=lambda value: question.answers[value],
        help=f"Assumed: {question.assumption}." if question.assumed is not None else None,
        horizontal=True,
        key=f"own question {question.parameter}",
    )
    if answer != current:
        state.answers[question.parameter] = answer
        state.asked_frames = None
        st.rerun()


def _show_save(state: PageState, draft: Draft, checked: tasks.Checked) -> None:
    """Show the form that saves the problem as a scenario."""
    with st.popover("Save as a scenario"):
        text = st.text_input("Name", value=f"my_{draft.system}", key="own name")
        try:
            name = tasks.plain_scenario_name(text)
        except InputError as error:
            session.show_error(error)
            return
        stored = session.folder() / _stored(state, checked)
        st.download_button(
            "Download (zip)", tasks.pack(stored, name), f"{name}.zip", on_click="ignore", key="own zip"
        )
        st.caption(f"Unpack it, then: `planner solve {name}/scenario.toml`")
        if own_folders():
            if st.button("Save on this server", key="own save"):
                session.submit("own save", tasks.save_scenario, stored, name)
                st.rerun()
            session.show_progress("own save", "saving")
            session.show_failure("own save")
            if state.saved:
                st.success(f"Saved as `{state.saved}`: it is in the list of scenarios.")


def _open_question(digest: str) -> None:
    """Open the what-if page with the stored tables."""
    question = Question(scenario=UPLOADED, upload=digest)
    st.session_state.setdefault("history", history.History([question]))
    history.ask(question)
    st.switch_page(st.session_state["pages"]["what_if"], query_params=question.to_query())


def _show_problem(state: PageState) -> None:
    """Show the picture of the problem, its size, and doubts on its figures."""
    session.show_progress("own check", "checking")
    session.show_failure("own check")
    checked = state.checked
    if checked is None or checked.faults:
        return
    for doubt in checked.doubts:
        st.warning(escape_markdown(doubt.removeprefix("warning: ")))
    if isinstance(checked.drawing, NetworkMap):
        pictures.show_network(checked.drawing, key="own problem", height=PICTURE_HEIGHT)
    elif checked.drawing is not None:
        rendering.show_drawing(checked.drawing, "own problem")
