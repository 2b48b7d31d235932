"""A deck of slides, 16:9: titles, texts that fit their places, and pictures."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner.contract.drawing import Drawing
from planner.formatting import printable
from planner.reports.document import Kind, Text
from planner.reports.drawing_svg import drawing_svg
from planner.reports.pdf import png, today
from planner.version import __version__

WIDTH, HEIGHT = 13.333, 7.5
"""Of a slide, inches."""
LEFT, RIGHT = 0.6, 12.733
TOP: Final = 1.55
"""Of what is below the title."""
BOTTOM: Final = 6.85
INK, DIM, HAIR = "1B2530", "5D6975", "D5DBE1"
COLOUR: Final[dict[Kind, str]] = {
    "": INK, "best": INK, "strong": INK, "good": "1A6B36", "bad": "A3162F", "warning": "8A5A00", "dim": DIM,
}  # fmt: skip
LETTER: Final = 0.52
"""Mean width of a letter, as a share of its size."""
LINE: Final = 1.22
"""Height of a line, as a share of the size of its letters."""
CODE_FONT: Final = "Consolas"


@dataclass(frozen=True)
class Box:
    """A place on a slide, in inches."""

    left: float
    top: float
    width: float
    height: float

    def columns(self, count: int, gap: float = 0.35) -> list[Box]:
        """Return places beside each other."""
        wide = (self.width - gap * (count - 1)) / count
        return [Box(self.left + index * (wide + gap), self.top, wide, self.height) for index in range(count)]

    def rows(self, count: int, gap: float = 0.2) -> list[Box]:
        """Return places below each other."""
        tall = (self.height - gap * (count - 1)) / count
        return [Box(self.left, self.top + index * (tall + gap), self.width, tall) for index in range(count)]


BODY: Final = Box(LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP)


class Deck:
    """A file of slides with its master set to 16:9."""

    def __init__(self, file: Any) -> None:
        from pptx.util import Inches

        self.file = file
        file.slide_width, file.slide_height = Inches(WIDTH), Inches(HEIGHT)
        self.layout = next(layout_ for layout_ in file.slide_layouts if layout_.name == "Title Only")
        for owner in (file.slide_master, self.layout):
            for shape in list(owner.placeholders):
                if shape.placeholder_format.type is not None and shape.placeholder_format.idx == 0:
                    shape.left, shape.top = Inches(LEFT), Inches(0.58)
                    shape.width, shape.height = Inches(RIGHT - LEFT), Inches(0.95)
                elif owner is self.layout:
                    shape._element.getparent().remove(shape._element)

    def add(self, title: str) -> Any:
        """Return a new slide with a title, the date and its number."""
        slide = self.file.slides.add_slide(self.layout)
        heading = slide.shapes.title
        size = find_fitting_size(title, RIGHT - LEFT, 0.95, (26, 24, 20, 17, 14))
        frame = heading.text_frame
        prepare_frame(frame, anchor="middle")
        (shown,) = take_fitting_lines([Text(printable(title))], RIGHT - LEFT, 1.0, size) or [Text("")]
        write_text(frame.paragraphs[0], shown.text, size, bold=True)
        number = len(self.file.slides)
        footer = Box(LEFT, 7.0, RIGHT - LEFT - 1.1, 0.3)
        self.text(slide, footer, [Text(f"planner {__version__}, {today()}", "dim")], 10)
        end = Box(RIGHT - 1, 7.0, 1, 0.3)
        self.text(slide, end, [Text(str(number), "dim")], 10, align="right")
        return slide

    def text(
        self, slide: Any, box: Box, lines: Iterable[Text], size: float, *, align: str = "left",
        code: bool = False,
    ) -> None:  # fmt: skip
        """Write lines of text in a box, each a paragraph."""
        frame = slide.shapes.add_textbox(*inches(box)).text_frame
        prepare_frame(frame)
        for index, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if index == 0 else frame.add_paragraph()
            text = printable(line.text)
            is_item = text.startswith("- ")
            bold = line.kind in ("strong", "best")
            write_text(paragraph, f"• {text[2:]}" if is_item else text, size, COLOUR[line.kind], bold, code)
            if align == "right":
                from pptx.enum.text import PP_ALIGN

                paragraph.alignment = PP_ALIGN.RIGHT

    def picture(self, slide: Any, box: Box, drawing: Drawing, title: str) -> None:
        """Show a map or timeline as large as the box allows, with its text alternative."""
        content = png(drawing_svg(drawing, 680), 1600)
        shape = slide.shapes.add_picture(io.BytesIO(content), 0, 0)
        scale = min(box.width / shape.width, box.height / shape.height)
        wide, tall = shape.width * scale, shape.height * scale
        frame_box = Box(box.left + (box.width - wide) / 2, box.top + (box.height - tall) / 2, wide, tall)
        shape.left, shape.top, shape.width, shape.height = inches(frame_box)
        shape._element.nvPicPr.cNvPr.set("descr", printable(title))


def inches(box: Box) -> tuple[int, int, int, int]:
    """Return left, top, width and height of a place in the file's unit."""
    from pptx.util import Inches

    return Inches(box.left), Inches(box.top), Inches(box.width), Inches(box.height)


def prepare_frame(frame: Any, anchor: str = "top") -> None:
    """Let a text begin at the edge of its box and break into lines."""
    from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE

    frame.word_wrap, frame.auto_size = True, MSO_AUTO_SIZE.NONE
    frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
    frame.vertical_anchor = MSO_ANCHOR.MIDDLE if anchor == "middle" else MSO_ANCHOR.TOP


def write_text(
    paragraph: Any, text: str, size: float, colour: str = INK, bold: bool = False, code: bool = False
) -> None:
    """Set the text of a paragraph and its style."""
    from pptx.dml.color import RGBColor
    from pptx.enum.text import PP_ALIGN
    from pptx.util import Pt

    paragraph.alignment = PP_ALIGN.LEFT
    run = paragraph.add_run()
    run.text = text
    run.font.size, run.font.bold = Pt(size), bold
    run.font.color.rgb = RGBColor.from_string(colour)
    if code:
        run.font.name = CODE_FONT
    paragraph.space_after = Pt(size * 0.35)


# --- whether texts fit --------------------------------------------------------------------


def lines_of(text: str, width: float, size: float) -> int:
    """Return the estimated number of lines of a text in a width in inches, at a size in points."""
    letters = max(4, int(width * 72 / (size * LETTER)))
    return sum(len(textwrap.wrap(line, letters)) or 1 for line in text.split("\n"))


def text_height(texts: Iterable[str], width: float, size: float) -> float:
    """Return the estimated height of paragraphs, inches."""
    return sum(lines_of(text, width, size) * size * LINE + size * 0.35 for text in texts) / 72


def find_fitting_size(text: str, width: float, height: float, sizes: Sequence[int]) -> int:
    """Return the largest size at which a text fits; the smallest where none does."""
    return next((size for size in sizes if text_height([text], width, size) <= height), sizes[-1])


def take_fitting_lines(lines: Sequence[Text], width: float, height: float, size: float) -> list[Text]:
    """Return the first lines that fit, the last one shortened where more would follow."""
    shown: list[Text] = []

    def fits(text: str) -> bool:
        return text_height([*(line.text for line in shown), text], width, size) <= height

    for line in (Text(printable(line_.text), line_.kind) for line_ in lines):  # as it is written
        if not fits(line.text):
            rest = _shorten_line(line.text, fits)
            return [*shown, *([Text(rest, line.kind)] if rest else [])]
        shown.append(line)
    return shown


def _shorten_line(text: str, fits: Callable[[str], bool]) -> str:
    """Return the beginning of a line that fits, with an ellipsis; "" where none does."""
    words = text.split()
    if words and not fits(f"{words[0]} …"):  # a name without spaces
        length = len(words[0])
        while length and not fits(f"{words[0][:length]}…"):
            length = length * 9 // 10
        return f"{words[0][:length]}…" if length else ""
    while words and not fits(" ".join([*words, "…"])):
        words.pop()
    return " ".join([*words, "…"]) if words else ""
