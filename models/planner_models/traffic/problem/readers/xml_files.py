"""XML files: parsed by defusedxml only, since files may come from anywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, ParseError  # the parsing is defusedxml's

import defusedxml
import defusedxml.ElementTree as Defused

from planner.errors import InputError
from planner.io.text_files import require_file

MAX_XML_BYTES: Final = 1 << 26  # its time grows faster than a long attribute
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}


def parse(path: Path, root: str) -> Element:
    """Return the root element of an XML file, with tags without namespaces; InputError for anything else.

    The encoding is the one that the file declares; default: UTF-8.
    """
    require_file(path)
    if path.stat().st_size > MAX_XML_BYTES:
        size = f"{path.stat().st_size >> 20:,} MiB"
        raise InputError(f"{path.name}: has {size}, must have at most {MAX_XML_BYTES >> 20:,} as XML")
    content = path.read_bytes()
    if not content.strip():
        raise InputError(f"{path.name}: is empty, must be XML with root element '{root}'")
    try:
        element: Element = Defused.fromstring(content)
    except ParseError as error:
        raise InputError(f"{path.name}: is no well-formed XML ({error})") from None
    except defusedxml.DefusedXmlException as error:
        what = re.sub(r"(?<!^)([A-Z])", r" \1", type(error).__name__).lower()
        raise InputError(f"{path.name}: refused for safety: {what} in XML") from None
    except (ValueError, LookupError) as error:  # an encoding that the parser does not know
        raise InputError(f"{path.name}: cannot be decoded ({error})") from None
    for each in element.iter():
        each.tag = each.tag.rpartition("}")[2]
    if element.tag != root:
        raise InputError(f"{path.name}: root element is '{element.tag}', must be '{root}'")
    return element


def text_of(parent: Element, path: str) -> str | None:
    """Return the text of the first element at `path`: "" where it is empty, None where there is none."""
    element = parent.find(path)
    return None if element is None else element.text or ""


def escape(text: str) -> str:
    """Return `text` escaped for XML; InputError for a character that XML cannot represent."""
    bad = _NO_XML.search(text)
    if bad:
        raise InputError(f"{text!r}: character {bad[0]!r} has no place in XML")
    return "".join(_ESCAPES.get(character, character) for character in text)
