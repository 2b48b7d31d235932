"""Draw the pictures of the systems' pages: the first part of the report of each system's example.

python docs/pictures.py [SYSTEM...]        default: all; needs Chromium, found by BROWSER_PATH
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from generate import EXAMPLES, PICTURES
from playwright.sync_api import sync_playwright

import planner

WIDTH: Final = 1100
HEIGHT: Final = 920


def main(systems: list[str]) -> None:
    """Write a picture for each system."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("BROWSER_PATH"), args=["--no-sandbox"]
        )
        for system in systems or EXAMPLES:
            report = Path(folder) / f"{system}.html"
            planner.compare(f"{system}/{EXAMPLES[system]}").report(report)
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(report.as_uri())
            page.wait_for_timeout(1500)  # charts are drawn
            page.screenshot(path=PICTURES / f"{system}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
