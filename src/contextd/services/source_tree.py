"""A project's files on disk: which of them are wanted, and what is in them.

The tree may be hostile. No link is followed, nothing that is not a regular file is opened, and what
is left out is counted, so that whoever reads the result knows what it does not hold.
"""

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from contextd.domain.globs import compile_glob, matches_any
from contextd.services.ignore_rules import (
    FOLDER,
    GIT_IGNORE,
    MAX_IGNORE_FILE_BYTES,
    OWN_IGNORE,
    IgnoreRules,
    rules_above,
    spelled,
)

MAX_FILE_BYTES: Final = 2**20

_DEPENDENCIES: Final = frozenset({"node_modules", ".venv", "venv", "site-packages"})
_VENDOR: Final = frozenset({"vendor", "third_party", "bower_components", "Pods"})
_NEVER_ENTERED: Final = {
    **dict.fromkeys((".git", ".hg", ".svn"), "repository"),
    **dict.fromkeys(_DEPENDENCIES, "dependencies"),
    **dict.fromkeys(
        "__pycache__ .mypy_cache .ruff_cache .pytest_cache .tox .gradle .idea .vscode".split(), "caches"
    ),
}
_AS_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_AS_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What opening a folder fails with when it was removed, or became something else, after it was seen."""

_STRIDES: Final = re.compile(r"(.{1,255})(?:/|\Z)", re.DOTALL)
"""Parts of a long path, each within what one system call takes, which on macOS is 1,024 bytes."""


class Print(NamedTuple):
    """What changes when a file does."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class Selection:
    is_wanted: Callable[[str], str | None]
    """None when the file at this path is wanted, otherwise the reason why not: `tests`, `unsupported`."""
    include_vendor: bool = False
    include: tuple[str, ...] = ()
    """Globs; with none, all files."""
    exclude: tuple[str, ...] = ()
    max_file_size: int = MAX_FILE_BYTES


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: str
    """Relative to the root, with slashes."""
    print: Print


@dataclass(frozen=True, slots=True)
class Walk:
    files: list[FoundFile]
    """By path."""
    skipped: Mapping[str, int]
    """How many files and folders were left out, by reason. A folder counts once, whatever it holds.

    `repository`, `vendor`, `dependencies`, `caches`: folders of that kind. `ignored`: by an ignore
    file. `links`, `special`: neither a file nor a folder. `unreadable`: permissions, or a name that is
    not UTF-8. `excluded`, `not_included`, `too_large`: by the selection, or for reasons of its own.
    `ignore_file`: one that could not be read, or is very large, so that its rules were not applied.
    """
    skipped_folders: Mapping[str, str]
    """The folders that were not entered, with the reason."""


class SourceTree:
    """Blocks on the disk: call it in a thread."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def walk(self, selection: Selection) -> Walk:
        """The wanted files as they are now. Raises OSError when the root itself cannot be listed, and
        ValueError for a glob that is none.

        A folder that is turned into a link while the walk is under way may still have its names
        listed. `read` and `stat` refuse them.
        """
        above, rules = rules_above(self._root, _read_rules)
        walking = _Round(selection, _Folder("", above, rules))
        with _opened(self._root, ()) as handle:
            walking.visit(handle, walking.pending.pop())
        while walking.pending:
            folder = walking.pending.pop()
            try:
                with _opened(self._root, _STRIDES.findall(folder.path.removesuffix("/"))) as handle:
                    walking.visit(handle, folder)
            except OSError as error:
                if error.errno not in _GONE:
                    walking.leave_out_folder(folder.path.removesuffix("/"), "unreadable")
        return walking.result()

    def read(self, path: str, most: int) -> bytes | None:
        """The file's content as it is now; None when it is longer than `most` bytes.

        Raises OSError when it is gone, is not a regular file, or is reached through a link.
        """
        *folders, name = _components(path)
        with _opened(self._root, folders) as handle:
            return _read_regular(name, handle, most)

    def stat(self, path: str) -> Print | None:
        """None when it is gone, is not a regular file, or is reached through a link."""
        try:
            *folders, name = _components(path)
            with _opened(self._root, folders) as handle:
                about = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            return None
        return _print(about) if stat.S_ISREG(about.st_mode) else None


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    """Relative to the root; it ends in a slash, unless it is empty."""
    from_top: str
    """Relative to the work tree's top, and spelled for the rules."""
    rules: IgnoreRules


class _Round:
    """One walk, and what it has met so far."""

    def __init__(self, selection: Selection, start: _Folder) -> None:
        self.pending = [start]
        self._selection = selection
        self._include = [compile_glob(glob) for glob in selection.include]
        self._exclude = [compile_glob(glob) for glob in selection.exclude]
        self._never_entered = _NEVER_ENTERED | (
            {} if selection.include_vendor else dict.fromkeys(_DEPENDENCIES | _VENDOR, "vendor")
        )
        self._files: list[FoundFile] = []
        self._skipped: Counter[str] = Counter()
        self._skipped_folders: dict[str, str] = {}

    def result(self) -> Walk:
        return Walk(
            sorted(self._files, key=lambda file: file.path),
            dict(sorted(self._skipped.items())),
            dict(sorted(self._skipped_folders.items())),
        )

    def leave_out_folder(self, path: str, reason: str) -> None:
        self._skipped[reason] += 1
        self._skipped_folders[path] = reason

    def visit(self, handle: int, folder: _Folder) -> None:
        with os.scandir(handle) as listing:
            entries = list(listing)
        rules = self._rules(handle, folder, entries)
        for entry in entries:
            try:
                self._judge(entry, folder, rules, handle)
            except FileNotFoundError:
                continue
            except OSError:
                self._skipped["unreadable"] += 1

    def _rules(self, handle: int, folder: _Folder, entries: Sequence[os.DirEntry[str]]) -> IgnoreRules:
        present = {entry.name for entry in entries if entry.name in (GIT_IGNORE, OWN_IGNORE)}

        def read(name: str) -> bytes | None:
            if name not in present:
                return None
            try:
                data = _read_regular(name, handle, MAX_IGNORE_FILE_BYTES)
            except OSError:
                data = None
            if data is None:
                self._skipped["ignore_file"] += 1
            return data

        return folder.rules.within(folder.from_top, read) if present else folder.rules

    def _judge(self, entry: os.DirEntry[str], folder: _Folder, rules: IgnoreRules, handle: int) -> None:
        if entry.is_symlink():
            self._skipped["links"] += 1
        elif entry.is_dir(follow_symlinks=False):
            self._judge_folder(entry.name, folder, rules)
        elif entry.is_file(follow_symlinks=False):
            path = folder.path + entry.name
            reason = self._reason(entry.name, path, folder, rules)
            if reason is None:
                about = entry.stat(follow_symlinks=False)
                reason = self._reason_by_print(entry.name, about, handle)
            if reason is None:
                self._files.append(FoundFile(path, _print(about)))
            else:
                self._skipped[reason] += 1
        else:
            self._skipped["special"] += 1

    def _judge_folder(self, name: str, folder: _Folder, rules: IgnoreRules) -> None:
        path = folder.path + name
        reason = self._never_entered.get(name)
        if reason is not None:
            self.leave_out_folder(path, reason)
        elif not _is_text(name):
            self.leave_out_folder(os.fsencode(path).decode(errors="replace"), "unreadable")
        elif rules.ignore((from_top := folder.from_top + spelled(name)) + FOLDER):
            self.leave_out_folder(path, "ignored")
        else:
            self.pending.append(_Folder(path + "/", from_top + "/", rules))

    def _reason(self, name: str, path: str, folder: _Folder, rules: IgnoreRules) -> str | None:
        if not _is_text(name):
            return "unreadable"
        if name == ".git":  # what a linked work tree has in place of the folder
            return "repository"
        if rules.ignore(folder.from_top + spelled(name)):
            return "ignored"
        if self._exclude and matches_any(path, self._exclude):
            return "excluded"
        if self._include and not matches_any(path, self._include):
            return "not_included"
        return self._selection.is_wanted(path)

    def _reason_by_print(self, name: str, about: os.stat_result, handle: int) -> str | None:
        if about.st_size > self._selection.max_file_size:
            return "too_large"
        # Who may read is asked only where not everybody may: it is one more system call.
        everybody = about.st_mode & 0o444 == 0o444
        if everybody or os.access(name, os.R_OK, dir_fd=handle, effective_ids=True):
            return None
        return "unreadable"


def _read_rules(folder: Path, path: str) -> bytes | None:
    try:
        return SourceTree(folder).read(path, MAX_IGNORE_FILE_BYTES)
    except OSError:
        return None


def _components(path: str) -> list[str]:
    """Raises FileNotFoundError for a path that is absolute, climbs, or is none at all."""
    components = path.split("/")
    if "\0" in path or not _is_text(path) or not {"", ".", ".."}.isdisjoint(components):
        raise FileNotFoundError(errno.ENOENT, "not a path beneath the root", path)
    return components


@contextmanager
def _opened(root: Path, strides: Sequence[str]) -> Iterator[int]:
    """A folder beneath the root. The last component of a stride is not followed when it is a link."""
    handle = os.open(root, _AS_FOLDER)
    try:
        for stride in strides:
            inner = os.open(stride, _AS_FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _read_regular(name: str, folder: int, most: int) -> bytes | None:
    # Asked before it is opened too: opening a device may have effects.
    _refuse_all_but_files(os.stat(name, dir_fd=folder, follow_symlinks=False), name)
    with os.fdopen(os.open(name, _AS_FILE, dir_fd=folder), "rb") as opened:
        about = os.fstat(opened.fileno())
        _refuse_all_but_files(about, name)
        if about.st_size > most:
            return None
        data = opened.read(most + 1)
    return data if len(data) <= most else None


def _refuse_all_but_files(about: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)


def _is_text(name: str) -> bool:
    """Whether the name on disk is UTF-8. What is not arrives here as surrogates."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _print(about: os.stat_result) -> Print:
    return Print(about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev)
