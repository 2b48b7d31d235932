"""Reports in PDF and PowerPoint: what they say, texts of users stay texts, and all fits its slide."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import planner
from planner.contract.drawing import Curve, Distribution, Points
from planner.errors import InputError
from planner.formatting import HIDDEN
from planner.reports import html, pdf, slide_deck, slides
from planner.reports.chart_svg import chart_svg
from planner.reports.document import Column, Highlight, Page, Part, Table, Text
from planner.reports.storyline import split_columns, storyline
from tests.commands import planner as command

HOSTILE = '#panic() *b* $x$ ]\\ <script>alert("1")</script> & \x00 \x1b[31m \u202e\u2028 \ufffe'
SCENARIO = """
system = "traffic"
[problem]
source = "tables"
path = "."
[designs.optimum]
[designs.ecmp]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "links.csv").write_text(
        'tail,head,capacity_mbps\ns,"#b*$]<i>&",10\n"#b*$]<i>&",t,10\ns,b,5\nb,t,5\n'
    )
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    return path


def slide_texts(content: bytes) -> list[list[str]]:
    """Return the texts of each slide: of its shapes, tables and charts."""
    return [[text for shape in slide.shapes for text in _texts(shape)] for slide in _slides(content)]


def _slides(content: bytes) -> Any:
    from pptx import Presentation

    return Presentation(io.BytesIO(content)).slides


def _texts(shape: Any) -> list[str]:
    if shape.has_text_frame:
        return [shape.text_frame.text]
    if shape.has_table:
        return [cell.text for row in shape.table.rows for cell in row.cells]
    return [shape.chart.chart_title.text_frame.text] if shape.has_chart else []


def test_a_comparison_is_written_in_each_format(scenario: Path, tmp_path: Path) -> None:
    files = {ending: tmp_path / "deep" / f"r.{ending}" for ending in ("html", "pdf", "pptx")}
    options = [word for ending, path in files.items() for word in (f"--{ending}", path)]
    result = command("compare", scenario, "--set", "problem.scale=1.5", *options)
    assert result.code == 0, result.err
    assert files["pdf"].read_bytes().startswith(b"%PDF-")
    slides = slide_texts(files["pptx"].read_bytes())
    assert slides[0][0].startswith("Optimal routing delivers")
    said = [text for slide in slides for text in slide]
    assert any("Changed: scale: 1.5" in text for text in said)
    for words in (
        "Assumptions",
        "Max utilization",
        "Design Equal-cost multipath (ecmp)",
        "nothing (heuristic): a better plan may exist",
    ):
        assert words in said, words
    assert any(text.startswith("Delivered, more is better") for text in said), "native charts"
    code = "\n".join(text for text in said if "import planner" in text)
    assert "--set problem.scale=1.5" in code
    assert "changes={'problem.scale': 1.5}" in code


def test_a_name_of_another_format_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for option, name, rule in (
        ("--pdf", "r.html", "a PDF file, its name must end in .pdf"),
        ("--pptx", "r.ppt", "a PowerPoint file, its name must end in .pptx"),
    ):
        result = command("compare", "traffic/abilene", option, tmp_path / name)
        assert result.code == 1
        assert result.err == f"{tmp_path / name}: a report is {rule}\n"


def test_a_result_of_python_knows_its_scenario(tmp_path: Path) -> None:
    scenario = planner.load("traffic/abilene", changes={"problem.scale": 2.0})
    result = planner.compare(scenario, designs=["ecmp"], time_limit_s=20)
    told = storyline(result.page())
    assert told.assumptions is not None
    assert told.assumptions.texts[0] == (
        "planner compare traffic/abilene --designs ecmp --set problem.scale=2.0 --set solver.time_limit_s=20"
    )
    assert result.report(tmp_path / "r.pptx").stat().st_size > 10_000
    with pytest.raises(InputError, match=r"is a folder"):
        result.report(_folder(tmp_path / "f.pdf"))


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


# --- texts of users -----------------------------------------------------------------------


def hostile_page() -> Page:
    """Return a page with markup of typst, XML and control characters in every text."""
    frame = pd.DataFrame({"design": [HOSTILE, "b"], HOSTILE: [1.0, 2.0]})
    numbers = pd.DataFrame({"x": [1.0, 2.0, 3.0], HOSTILE: [1.0, float("nan"), 2.0]})
    drawings = [
        Curve(title=HOSTILE, frame=frame, bars=True, units={HOSTILE: "%"}),
        Curve(title=HOSTILE, frame=numbers, log_y=True),
        Points(title=HOSTILE, frame=pd.DataFrame({"n": [HOSTILE], "a": [1.0], "b": [2.0]})),
        Distribution(title=HOSTILE, values={HOSTILE: pd.Series([1.0, 2.0])}, what=HOSTILE, limit=1.5),
    ]
    table = Table(
        columns=[Column(label=HOSTILE), Column(label="n", unit=HOSTILE, numeric=True)],
        rows=[[HOSTILE, "1"], [Text(HOSTILE, "bad"), "2"]],
        title=HOSTILE,
        caption=HOSTILE,
        row_headers=1,
    )
    share = Part(
        title=HOSTILE,
        sentences=[Text(f"{HOSTILE}. {HOSTILE}", "strong"), f"- {HOSTILE}"],
        tables=[table],
        notes=[Text(HOSTILE, "warning")],
        drawings=lambda: list(drawings),
        texts=[HOSTILE],
    )
    return Page(
        title=HOSTILE,
        about=HOSTILE,
        parts=[share],
        warnings=[HOSTILE],
        highlights=[Highlight(HOSTILE, HOSTILE, Text(HOSTILE))],
        assumptions=Part(title="Assumptions", tables=[table], texts=[HOSTILE]),
    )


def test_no_text_of_a_user_is_markup() -> None:
    assert pdf.pdf(hostile_page()).startswith(b"%PDF-")
    texts = [text for slide in slide_texts(slides.pptx(hostile_page())) for text in slide]
    assert any('<script>alert("1")</script>' in text for text in texts)
    assert any("\\x00" in text for text in texts), "control characters as their escapes"
    (share,) = hostile_page().parts
    for drawing in share.drawings():
        assert isinstance(drawing, Curve | Points | Distribution)
        svg = chart_svg(drawing)
        assert "<script" not in svg
        assert pdf.png(svg, 200).startswith(b"\x89PNG")


def test_a_name_without_spaces_is_cut_where_it_fits_no_slide() -> None:
    (shown,) = slide_deck.take_fitting_lines([Text("x" * 10_000)], 4.0, 0.5, 12)
    assert re.fullmatch("x{20,}…", shown.text)
    assert slide_deck.text_height([shown.text], 4.0, 12) <= 0.5


def test_no_text_of_a_user_is_markup_or_hidden_in_html(tmp_path: Path) -> None:
    html.write(hostile_page(), tmp_path / "report.html")
    written = (tmp_path / "report.html").read_text(encoding="utf-8")
    own_values = re.sub(
        r"<script\b.*?</script>", "", written, flags=re.DOTALL
    )  # the library of charts, and data
    assert "&lt;script&gt;alert(" in own_values
    assert "<script>alert(" not in written
    assert HIDDEN.search(own_values.replace("\t", " ")) is None
    assert not any(letter in written for letter in "\u202e\ufffe")
    assert "\\u202e" in own_values


def test_a_font_of_the_machine_is_used_for_letters_that_typst_lacks_only() -> None:
    assert not pdf.UNCOVERED.search("Köln → Łódź “α” ≤ 5 µs")
    assert pdf.UNCOVERED.search("東京")
    assert pdf.pdf(Page(title="東京", parts=[Part(sentences=["東京"])])).startswith(b"%PDF-")


# --- slides -------------------------------------------------------------------------------


def long_page() -> Page:
    """Return a page with more of everything than a slide holds."""
    words = "A long sentence about a plan that violates many constraints of its links. " * 12
    columns = [Column(label="name"), *(Column(label=f"design {index}", numeric=True) for index in range(14))]
    rows = [
        [f"row {index}", *(f"{index * 1000 + position:,}" for position in range(14))] for index in range(60)
    ]
    frame = pd.DataFrame({"design": [f"design {index}" for index in range(50)], "value": range(50)})
    share = Part(
        title="A title that is long enough to need two lines on a slide of this width, or three",
        sentences=[words, *(f"- {words}" for _ in range(5))],
        tables=[Table(columns=columns, rows=rows, row_headers=1, title="t", caption=words)],
        drawings=lambda: [Curve(title=words, frame=frame, bars=True)] * 8,
    )
    highlights = [Highlight("Delivered traffic, shortest_path", "1,234.5 Gbit/s", Text("loses 5"))] * 4
    return Page(title=words, about=words, parts=[share], highlights=highlights, warnings=[words] * 4)


@pytest.mark.parametrize("page", [hostile_page(), long_page()], ids=["hostile", "long"])
def test_all_fits_its_slide_and_nothing_overlaps(page: Page) -> None:
    for slide in _slides(slides.pptx(page)):
        boxes = [_box(shape) for shape in slide.shapes]
        for remaining, top, right, bottom in boxes:
            assert remaining >= 0
            assert top >= 0
            assert right <= slide_deck.WIDTH + 1e-3
            assert bottom <= slide_deck.HEIGHT + 1e-3
        for item, other in itertools.combinations(boxes, 2):
            apart = item[2] <= other[0] + 0.02 or other[2] <= item[0] + 0.02
            assert apart or item[3] <= other[1] + 0.02 or other[3] <= item[1] + 0.02, (item, other)
        for shape in slide.shapes:
            if shape.has_text_frame and shape.text_frame.text.strip():
                _assert_fits(shape)


def _box(shape: Any) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a shape in inches."""
    remaining, top = shape.left / 914_400, shape.top / 914_400
    return remaining, top, remaining + shape.width / 914_400, top + shape.height / 914_400


def _assert_fits(shape: Any) -> None:
    paragraphs = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.runs]
    size = paragraphs[0].runs[0].font.size.pt
    width = shape.width / 914_400
    needed = slide_deck.text_height([paragraph.text for paragraph in paragraphs], width, size)
    assert needed <= shape.height / 914_400 + 0.12, (shape.text_frame.text[:60], needed)


def test_a_wide_table_is_split_and_repeats_its_leading_columns() -> None:
    table = long_page().parts[0].tables[0]
    pieces = list(split_columns(table, 60))
    assert len(pieces) > 1
    assert all(piece.columns[0].label == "name" for piece in pieces)
    assert sum(len(piece.columns) - 1 for piece in pieces) == 14
    assert [bool(piece.caption) for piece in pieces] == [False] * (len(pieces) - 1) + [True]


# --- charts -------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_values() -> None:
    frame = pd.DataFrame({"design": ["a", "b", "c"], "delivered": [10.0, 5.0, float("nan")]})
    svg = chart_svg(Curve(title="Delivered", frame=frame, units={"delivered": "Gbit/s"}, bars=True))
    full, half = (float(match) for match in re.findall(r'<rect x="[^"]*" y="[^"]*" width="([^"]*)"', svg))
    assert full == pytest.approx(2 * half, rel=0.01)
    assert "Delivered [Gbit/s]" in svg


def test_labels_of_points_cover_no_other_point() -> None:
    frame = pd.DataFrame(
        {"design": ["first_design", "second", "third"], "x": [0.0, 5.0, 50.0], "y": [1.0, 1.0, 0.0]}
    )
    svg = chart_svg(Points(title="Points", frame=frame))
    dots = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([^"]*)" cy="([^"]*)"', svg)]
    positions = {
        text: (float(x), float(y))
        for x, y, text in re.findall(r'<text x="([^"]*)" y="([^"]*)"[^>]*>(first_design|second|third)<', svg)
    }
    assert set(positions) == set(frame["design"])
    (_, height), (second, _), _ = dots
    x, y = positions["first_design"]
    assert x < second  # beside its own point, where the next one would be covered at the same height
    assert abs(y - height) > 4


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0], [-2.0, 0.0, 1e12], [float("nan")] * 2])
def test_any_values_make_a_chart(values: list[float]) -> None:
    frame = pd.DataFrame({"x": range(len(values)), "y": pd.Series(values, dtype=float)})
    for drawing in (
        Curve(title="c", frame=frame),
        Curve(title="c", frame=frame, log_x=True, log_y=True),
        Curve(title="c", frame=frame, bars=True),
        Distribution(title="d", values={"y": frame["y"]}, what="y", log_x=True),
    ):
        svg = chart_svg(drawing)
        assert "nan" not in svg
        assert "inf" not in svg
