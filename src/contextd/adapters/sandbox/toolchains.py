"""The Python that a project's own virtual environment needs, where it lies outside the system's folders."""

import os
import pwd
from pathlib import Path

from contextd.services.grounds import is_within


def interpreter_of(project: str) -> tuple[str, ...]:
    """The installations behind `.venv` and `venv`.

    The file that names them is the project's own and may lie: what it names is believed only if it is an
    installation of Python, whole, and not a home.
    """
    found = (_installation(Path(project, name)) for name in (".venv", "venv"))
    return tuple(dict.fromkeys(prefix for prefix in found if prefix))


def _installation(environment: Path) -> str | None:
    try:
        lines = (environment / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()[:32]
    except (OSError, UnicodeDecodeError):
        return None
    named = next((value.strip() for key, _, value in _pairs(lines) if key.strip() == "home"), "")
    folder = os.path.realpath(named) if named.startswith("/") else ""
    prefix = Path(folder).parent
    if Path(folder).name != "bin" or is_within(str(prefix), "/usr") or _holds_home(str(prefix)):
        return None
    return str(prefix) if any(prefix.glob("lib/python3.*/os.py")) else None


def _pairs(lines: list[str]) -> list[tuple[str, str, str]]:
    return [line.partition("=") for line in lines]


def _holds_home(prefix: str) -> bool:
    return any(
        is_within(os.path.realpath(home.pw_dir), prefix) for home in pwd.getpwall() if home.pw_dir != "/"
    )
