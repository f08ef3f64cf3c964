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

OTHER_LANGUAGES: Final = (
    "sinatra/sinatra",
    "google/gson",
    "BurntSushi/ripgrep",
    "tj/commander.js",
    "serilog/serilog",
    "guzzle/guzzle",
    "tmux/tmux",
    "fmtlib/fmt",
)
"""Measured on too, by their doc sentences: what is chosen is chosen without them."""

_BENCHMARKS: Final = ("codesearchnet", "cosqa", "swe-bench", "swebench", "locomo", "longmemeval")


_ALL: Final = (*MEASURED_ON, *CHOSEN_ON, *OTHER_LANGUAGES)


def is_other_language(repository: str) -> bool:
    return any(_plain(each) in _plain(repository) for each in OTHER_LANGUAGES)


def is_held_out(repository: str) -> bool:
    """Whether a folder's name says so, however it joins owner and name: `gin-gonic+gin`, `psf_requests`,
    `golang-github-spf13-cobra-dev`."""
    name = _plain(repository)
    whole = any(_plain(each) in name for each in _ALL)
    alone = name in {_plain(each.split("/")[1]) for each in _ALL}
    python = name.removeprefix("python3") in {"flask", "requests", "apscheduler", "trio", "sqliteutils"}
    return whole or alone or python or any(_plain(each) in name for each in _BENCHMARKS)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
