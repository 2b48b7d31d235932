"""Start of the dashboard's server."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from planner.errors import InputError

MAX_UPLOAD_MB: Final = 50


def serve(
    stores: Sequence[Path],
    *,
    host: str,
    port: int,
    workers: int | None,
    memory_mb: int,
    browser: bool,
) -> NoReturn:
    """Replace this process by the server, which runs until it is stopped.

    raises  InputError where the dashboard or a store does not exist
    """
    found = importlib.util.find_spec("planner_dashboard")
    if found is None or found.origin is None:
        raise InputError("the dashboard is not installed: the package planner_dashboard is missing")
    if stores:
        from planner.store.store import Store  # imported late, because it loads pandas

        for path in stores:
            with Store(path):
                pass
    settings = {
        "PLANNER_DASHBOARD_STORES": os.pathsep.join(str(path.resolve()) for path in stores),
        "PLANNER_DASHBOARD_WORKERS": "" if workers is None else str(workers),
        "PLANNER_DASHBOARD_MEMORY_MB": str(memory_mb),
    }
    command = [
        *(sys.executable, "-m", "planner_dashboard.server", "run"),
        str(Path(found.origin).with_name("app.py")),
        *("--server.address", host, "--server.port", str(port)),
        *("--server.headless", "false" if browser else "true"),
        *("--server.maxUploadSize", str(MAX_UPLOAD_MB)),
        *("--browser.gatherUsageStats", "false"),
        *("--client.toolbarMode", "minimal"),
        *("--client.showErrorDetails", "none"),
        *("--logger.level", "error"),
        *("--server.fileWatcherType", "none"),
    ]
    os.execve(sys.executable, command, {**os.environ, **settings})
