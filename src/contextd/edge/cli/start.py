"""From the command line to a house, and how its work is run."""

import asyncio
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from contextd.adapters.log_lines import configure_logging
from contextd.domain.errors import Misconfigured
from contextd.settings import load_settings
from contextd.wiring import House, build

T = TypeVar("T")


def start(overrides: Mapping[str, object] | None = None) -> House:
    """Read the settings, build the house and send the log to standard error. Raises Misconfigured."""
    settings = load_settings(overrides=overrides)
    _make_folder(settings.data_dir)
    house = build(settings)
    configure_logging(
        settings.log_level,
        "json" if settings.log_format == "json" else "text",
        lambda text: house.scrubber.scrub(text).text,
        house.telemetry.trace_id,
        sys.stderr,
    )
    for warning in settings.warnings:
        print(f"contextd: {warning}", file=sys.stderr)  # noqa: T201 - a warning to the person who started it
    return house


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Misconfigured(
            f"the data folder {folder} cannot be made ({error.strerror})",
            "set CONTEXTD_DATA_DIR to a folder of yours",
        ) from error


def run(work: Coroutine[Any, Any, T]) -> T:
    """On uvloop where there is one: it is worth a third of a call's cost."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
