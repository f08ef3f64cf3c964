"""The policies, as a TOML file of the user's: one for all projects, and one for each that needs its own.

    [default]
    readable = ["~/.cargo", "~/.rustup"]

    [projects."/home/me/shop"]
    hosts = ["pypi.org", "*.pythonhosted.org"]

    [projects."/home/me/shop".limits]
    timeout_s = 600

A project's table is laid over the default: what it does not say is as there.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from contextd.adapters.sandbox.host_rules import HostRules
from contextd.domain.errors import Misconfigured
from contextd.domain.sandboxing import Limits, Policy
from contextd.services.grounds import is_within

_TABLES: Final = ("default", "projects")
_LISTS: Final = tuple(each.name for each in fields(Policy) if each.name != "limits")
_LIMITS: Final = tuple(each.name for each in fields(Limits))


@dataclass(frozen=True, slots=True)
class _Read:
    """What the file said when it was last looked at."""

    stamp: tuple[int, int, int] | None
    default: Policy
    projects: Mapping[str, Policy]


class PolicyFile:
    """Fills the port Policies. The file need not be there; when it changes, it is read again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: _Read | None = None

    def policy(self, project: str) -> Policy:
        """Raises Misconfigured."""
        read = self._fresh()
        policy = read.projects.get(project, read.default)
        self._check_place(project, policy)
        return policy

    def names(self, project: str) -> bool:
        """Whether the project has a table of its own."""
        return project in self._fresh().projects

    def origin(self, project: str) -> str:
        """In words, for those who ask what is in force."""
        read = self._fresh()
        if read.stamp is None:
            return f"built in; {self.path} is not there"
        return (
            f'{self.path}, [projects."{project}"]'
            if project in read.projects
            else f"{self.path}, [default]"
        )

    def _fresh(self) -> _Read:
        stamp = self._stamp()
        if self._read is None or self._read.stamp != stamp:
            self._read = self._parsed(stamp)
        return self._read

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._wrong(
                f"cannot be read ({error.strerror})", "make it readable for the daemon"
            ) from error
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise self._wrong("can be written by others", f"chown it to yourself and chmod 600 {self.path}")
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _parsed(self, stamp: tuple[int, int, int] | None) -> _Read:
        if stamp is None:
            return _Read(None, Policy(), {})
        try:
            tables = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise self._wrong(f"cannot be read ({error})", "mend or remove it") from error
        self._only(tables, _TABLES, "the file")
        default = self._laid_over(Policy(), self._table(tables, "default", "the file"), "[default]")
        projects = self._table(tables, "projects", "the file")
        return _Read(
            stamp, default, {self._project(key): self._own(projects, key, default) for key in projects}
        )

    def _project(self, key: str) -> str:
        path = Path(key).expanduser()
        if not path.is_absolute() or ".." in path.parts:
            raise self._wrong(
                "has a project whose path is not absolute", 'write [projects."/home/me/project"]'
            )
        return os.path.realpath(path)

    def _own(self, projects: dict[str, Any], key: str, default: Policy) -> Policy:
        where = f'[projects."{key}"]'
        return self._laid_over(default, self._table(projects, key, where), where)

    def _laid_over(self, policy: Policy, table: dict[str, Any], where: str) -> Policy:
        self._only(table, (*_LISTS, "limits"), where)
        lists = {name: self._texts(table[name], name, where) for name in _LISTS if name in table}
        limits = self._table(table, "limits", where)
        self._only(limits, _LIMITS, f"{where} limits")
        numbers: dict[str, Any] = {name: self._number(value, name, where) for name, value in limits.items()}
        return replace(policy, **lists, limits=replace(policy.limits, **numbers))

    def _texts(self, value: object, name: str, where: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise self._wrong(f"has no list of texts as {name} in {where}", f'write {name} = ["…", "…"]')
        if name in ("writable", "readable", "protected") and any(
            ".." in Path(each).parts for each in value
        ):
            raise self._wrong(f"has a path with '..' in {name} of {where}", "write the path without '..'")
        if name == "hosts":
            self._check_hosts(value, where)
        return tuple(value)

    def _check_hosts(self, hosts: list[str], where: str) -> None:
        try:
            HostRules.of(hosts)
        except ValueError as error:
            raise self._wrong(f"has a host in {where} that is none", str(error)) from error

    def _number(self, value: object, name: str, where: str) -> float:
        wanted = float if name == "timeout_s" else int
        if isinstance(value, bool) or not isinstance(value, int | wanted) or not 0 < value < 2**31:
            raise self._wrong(f"has no fit number as {name} in limits of {where}", f"write {name} = 60")
        return value

    def _table(self, table: dict[str, Any], name: str, where: str) -> dict[str, Any]:
        value = table.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(f"has something else than a table as {name} in {where}", f"write [{name}]")
        return value

    def _only(self, table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
        unknown = sorted(set(table) - set(known))
        if unknown:
            raise self._wrong(
                f"has unknown keys in {where}: {', '.join(unknown)}", f"use {', '.join(known)}"
            )

    def _check_place(self, project: str, policy: Policy) -> None:
        """A project that could write its own policy would have none."""
        place = os.path.realpath(self.path)
        for path in policy.writable:
            folder = os.path.realpath(Path(project, Path(path).expanduser()))
            if is_within(place, folder):
                raise self._wrong(
                    "lies where commands of this project may write",
                    "set CONTEXTD_POLICIES to a file elsewhere, or take that folder out of writable",
                )

    def _wrong(self, what: str, remedy: str) -> Misconfigured:
        return Misconfigured(f"the policy file {self.path} {what}", remedy)
