"""plugin.toml: what a plugin is and what it asks for.

name = "wordcount"
version = "1.0.0"
command = ["{python}", "wordcount.py"]
readable = ["/usr/share/dict"]
hosts = ["api.example.org"]
environment = ["EXAMPLE_TOKEN"]
"""

import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any, Final

from contextd.domain.errors import NotInstallable
from contextd.domain.tool_processes import Manifest

FILE: Final = "plugin.toml"
_LARGEST: Final = 65_536
_MOST: Final = 64
_LONGEST: Final = 1_024
_NAME: Final = re.compile(r"[a-z][a-z0-9]{1,23}")
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,39}")
_HOST: Final = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_NEVER: Final = tuple(map(PurePosixPath, ("/", "/proc", "/sys", "/dev")))
_KNOWN: Final = frozenset(Manifest.__dataclass_fields__)


def read_manifest(folder: Path) -> Manifest:
    """Raises NotInstallable, which says what to mend."""
    file = folder / FILE
    try:
        if file.is_symlink() or file.stat().st_size > _LARGEST:
            raise NotInstallable(f"{FILE} is a link or too large")
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotInstallable(f"there is no {FILE}", "name a folder or archive that has one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        raise NotInstallable(f"{FILE} cannot be read as TOML") from None
    return manifest_of(table)


def manifest_of(table: dict[str, Any]) -> Manifest:
    """Raises NotInstallable."""
    unknown = sorted(set(table) - _KNOWN)
    if unknown:
        raise NotInstallable(f"{FILE} has keys that nobody knows", f"use only: {', '.join(sorted(_KNOWN))}")
    return Manifest(
        name=_text(table, "name", _NAME, "2 to 24 lower case letters and digits, a letter first"),
        version=_text(table, "version", _VERSION, "letters, digits and . + -, such as 1.0.0"),
        command=_command(table),
        description=_described(table.get("description", "")),
        readable=tuple(map(_path, _texts(table, "readable"))),
        hosts=_matching(table, "hosts", _HOST, "names such as pypi.org, *.github.com or localhost:8080"),
        environment=_matching(table, "environment", _VARIABLE, "names of variables, without patterns"),
    )


def _text(table: dict[str, Any], name: str, form: re.Pattern[str], wanted: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not form.fullmatch(value):
        raise NotInstallable(f"{FILE} has no fit {name}", f"give {wanted}")
    return value


def _described(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        raise NotInstallable(f"{FILE} has no fit description", f"one line of at most {_LONGEST} characters")
    return value


def _command(table: dict[str, Any]) -> tuple[str, ...]:
    command = _texts(table, "command")
    if not command:
        raise NotInstallable(f"{FILE} has no command", 'give command = ["program", "argument"]')
    return command


def _texts(table: dict[str, Any], name: str) -> tuple[str, ...]:
    value = table.get(name, [])
    fits = isinstance(value, list) and len(value) <= _MOST
    if not fits or not all(isinstance(each, str) and _is_plain(each) for each in value):
        raise NotInstallable(
            f"{FILE} has no fit {name}", f"give a list of at most {_MOST} texts without control characters"
        )
    return tuple(value)


def _is_plain(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable()


def _matching(table: dict[str, Any], name: str, form: re.Pattern[str], wanted: str) -> tuple[str, ...]:
    values = _texts(table, name)
    if not all(form.fullmatch(each) for each in values):
        raise NotInstallable(f"{FILE} has no fit {name}", f"give {wanted}")
    if name == "environment" and any(each.startswith("CONTEXTD_") for each in values):
        raise NotInstallable(f"{FILE} asks for variables of contextd itself", "take them out")
    return values


def _path(text: str) -> str:
    path = PurePosixPath(text)
    if not path.is_absolute() or ".." in path.parts or path in _NEVER:
        raise NotInstallable(
            f"{FILE} has no fit readable", "give absolute paths of files or folders, without '..'"
        )
    return str(path)
