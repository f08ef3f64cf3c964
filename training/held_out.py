"""Repositories that no model of ours is trained or tuned on, because it is measured on them."""

from typing import Final

MEASURED_ON: Final = (
    "gin-gonic/gin",
    "spf13/cobra",
    "go-chi/chi",
    "prometheus/client_golang",
    "pallets/flask",
    "psf/requests",
    "flipt-io/flipt",
    "navidrome/navidrome",
)

CHOSEN_ON: Final = (
    "knadh/koanf",
    "riverqueue/river",
    "alecthomas/kong",
    "emersion/go-imap",
    "mholt/archiver",
    "agronholm/apscheduler",
    "python-trio/trio",
    "simonw/sqlite-utils",
    "gorilla/mux",
    "tidwall/buntdb",
)
"""For development: recipes and weights are chosen on these, so they are not trained on either."""

_BENCHMARKS: Final = ("codesearchnet", "cosqa", "swe-bench", "swebench", "locomo", "longmemeval")


def is_held_out(repository: str) -> bool:
    """Whether a folder's name says so, however it joins owner and name: `gin-gonic+gin`, `psf_requests`,
    `golang-github-spf13-cobra-dev`."""
    name = _plain(repository)
    whole = any(_plain(each) in name for each in (*MEASURED_ON, *CHOSEN_ON))
    alone = name in {_plain(each.split("/")[1]) for each in (*MEASURED_ON, *CHOSEN_ON)}
    python = name.removeprefix("python3") in {"flask", "requests", "apscheduler", "trio", "sqliteutils"}
    return whole or alone or python or any(_plain(each) in name for each in _BENCHMARKS)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
