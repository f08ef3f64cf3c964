"""Files of a project, written for an agent: whole or not at all, with what they held kept under a ref.

A secret that was shown as a placeholder is put back into the file that it came from, for the one who was
shown it there. No other placeholder is ever written.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from contextd.domain.callers import Caller
from contextd.domain.encodings import Shape, with_line_feeds
from contextd.domain.errors import Conflict, FileChanged, Invalid, NotFound, TooLarge, UnknownPlaceholder
from contextd.domain.limits import SHOWN_CHARS, WRITE_BYTES
from contextd.domain.line_diffs import line_diff, patched
from contextd.domain.placeholders import placeholders_of, restored
from contextd.domain.ports import Scrubber
from contextd.domain.project_files import ProjectFile, ProjectFiles
from contextd.domain.sandboxing import Policies
from contextd.domain.text_edits import Edit, edited
from contextd.domain.write_rules import require_writable
from contextd.services.answer_outline import MARKED, Part
from contextd.services.redacted_text import redacted
from contextd.services.references import References
from contextd.services.safe_files import Place, SafeFiles, TextFile
from contextd.services.shown_secrets import ShownSecrets, Viewer

Mode = Literal["create", "overwrite", "append", "edit"]


@dataclass(frozen=True, slots=True)
class Change:
    """One of `content`, `edits` and `patch`."""

    path: str
    content: str | None = None
    edits: tuple[Edit, ...] = ()
    patch: str | None = None
    mode: Mode | None = None
    expected_sha256: str | None = None
    dry_run: bool = False

    @property
    def is_edit(self) -> bool:
        return self.content is None

    def texts(self) -> Iterator[str]:
        yield from (self.content or "", self.patch or "")
        for edit in self.edits:
            yield from (edit.old, edit.new)


@dataclass(frozen=True, slots=True)
class Written:
    path: str
    bytes_written: int
    sha256: str
    diff: str
    encoding: str
    backup_ref: str | None = None


@dataclass(frozen=True, slots=True)
class _Draft:
    old: TextFile
    data: bytes = field(repr=False)
    shape: Shape
    diff: str

    @property
    def changes_nothing(self) -> bool:
        return self.data == self.old.file.data


class SafeWriting:
    def __init__(
        self,
        files: SafeFiles,
        disk: ProjectFiles,
        policies: Policies,
        scrubber: Scrubber,
        shown: ShownSecrets,
        references: References,
    ) -> None:
        self._files = files
        self._disk = disk
        self._policies = policies
        self._scrubber = scrubber
        self._shown = shown
        self._references = references
        self._turn = asyncio.Lock()

    async def write(self, project_path: str, change: Change, caller: Caller) -> Written:
        """Raises what reading does, and ProtectedPath, UnknownPlaceholder, NoMatch, BadText, Conflict,
        FileChanged. Then nothing was written."""
        _require_one_kind(change)
        place = self._files.place(project_path, change.path, caller)
        async with self._turn:
            draft = await asyncio.to_thread(self._draft, place, change, caller)
            backup = None
            if not change.dry_run and not draft.changes_nothing:
                backup = await self._backup(draft.old, caller)
                await asyncio.to_thread(self._disk.put, place.folder, draft.old.file, draft.data)
        idle = change.dry_run or draft.changes_nothing
        return Written(
            path=draft.old.file.path,
            bytes_written=0 if idle else len(draft.data),
            sha256=hashlib.sha256(draft.data).hexdigest(),
            diff=draft.diff,
            encoding=draft.shape.name,
            backup_ref=backup,
        )

    async def _backup(self, old: TextFile, caller: Caller) -> str | None:
        if old.file.data is None:
            return None
        parts = [Part(f"{old.file.path} as it was", old.shown.text)]
        await self._references.keep(caller, parts)
        return self._references.handle(caller, parts)

    # --- what would be written --------------------------------------------------------

    def _draft(self, place: Place, change: Change, caller: Caller) -> _Draft:
        file = self._files.open(place, WRITE_BYTES)
        require_writable(self._policies.policy(place.folder), place.folder, file.path)
        _require_mode(change, file)
        old = self._files.text(file)
        _require_expected(change, old)
        _require_whole(change, old)
        viewer = Viewer(caller.key, f"{place.folder}/{file.path}")
        known = self._known(viewer, old, change)
        text, shape = _new_text(old, change, known)
        data = shape.encoded(text)
        if len(data) > WRITE_BYTES:
            raise TooLarge("content", f"the file would have more than {WRITE_BYTES} bytes", "split it")
        return _Draft(old, data, shape, self._diff(viewer, old, text, caller))

    def _known(self, viewer: Viewer, old: TextFile, change: Change) -> Mapping[str, str]:
        """The secrets that this caller may write here, all that the change names among them."""
        own = {mark: same for mark, same in old.shown.secrets.items() if mark == same}
        known = {**own, **self._shown.of(viewer)}
        if change.is_edit:
            # In a text with both, one placeholder would have to be two.
            now = old.shown.secrets
            known = {mark: text for mark, text in known.items() if now.get(mark, text) == text}
        for text in change.texts():
            if placeholders_of(text).keys() - known.keys():
                raise UnknownPlaceholder(
                    _field(change), "the text has a placeholder of a secret that was not shown in this file"
                )
        return known

    def _diff(self, viewer: Viewer, old: TextFile, text: str, caller: Caller) -> str:
        """Of the whole texts without secrets: a hunk alone might show a part of one."""
        new = redacted(self._scrubber, text)
        diff = line_diff(old.shown.text, new.text, old.file.path, SHOWN_CHARS)
        caller.tally.secrets.update({**old.shown.counted_in(diff), **new.counted_in(diff)})
        # What was replaced can be read under its ref, and may be wanted back.
        self._shown.replaced(viewer, old.shown.shown_in(old.shown.text))
        self._shown.replaced(viewer, new.shown_in(new.text))
        return diff


def _new_text(old: TextFile, change: Change, known: Mapping[str, str]) -> tuple[str, Shape]:
    shape = old.own.shape
    if change.content is None:
        return _changed(old, change, known), shape
    content = restored(change.content, known)
    if shape.crlf:
        content = with_line_feeds(content)
    if change.mode == "append":
        text = old.own.text
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{content}", shape
    return content, shape if shape.can_encode(content) else Shape(crlf=shape.crlf)


def _changed(old: TextFile, change: Change, known: Mapping[str, str]) -> str:
    """Changes are made in the text as it was shown, and the secrets put back afterwards.

    Where putting back would not give the same text, they are made in the file's own; but only if they fit
    the shown one too, or what fits would tell what a secret is.
    """
    shown = _apply(old.shown.text, change, old.own.shape)
    if old.shown.exact:
        return restored(shown, {**known, **old.shown.secrets})
    return restored(_apply(old.own.text, change, old.own.shape), known)


def _apply(text: str, change: Change, shape: Shape) -> str:
    def fed(given: str) -> str:
        return with_line_feeds(given) if shape.crlf else given

    if change.patch is not None:
        return patched(text, fed(change.patch))
    return edited(text, [Edit(fed(edit.old), fed(edit.new), edit.replace_all) for edit in change.edits])


# --- what is refused ------------------------------------------------------------------


def _field(change: Change) -> str:
    if change.content is not None:
        return "content"
    return "edits" if change.edits else "patch"


def _require_one_kind(change: Change) -> None:
    given = sum((change.content is not None, bool(change.edits), change.patch is not None))
    if given != 1:
        raise Invalid("content", "one of content, edits and patch is required", "give exactly one of them")
    if change.mode is not None and change.is_edit != (change.mode == "edit"):
        raise Invalid(
            "mode",
            "mode does not go with what is given",
            "edits and patch are for mode edit, content is for the others",
        )


def _require_mode(change: Change, file: ProjectFile) -> None:
    if file.data is None:
        if change.mode == "overwrite" or change.is_edit:
            raise NotFound("file", file.path, "check the path, or give the whole content with mode create")
        if change.expected_sha256 is not None:
            raise FileChanged("the file is not there any more, and nothing was written")
    elif change.mode == "create":
        raise Conflict("the file is there already", "use mode overwrite or edit, or another path")


def _require_expected(change: Change, old: TextFile) -> None:
    if change.expected_sha256 is not None and change.expected_sha256.lower() != old.sha256:
        raise FileChanged("the file is not what expected_sha256 says, and nothing was written")


def _require_whole(change: Change, old: TextFile) -> None:
    """Who was shown a part of a file and writes that back would lose the rest."""
    marked = change.mode != "append" and MARKED.search(change.content or "")
    if old.file.data is not None and marked and not MARKED.search(old.own.text):
        raise Invalid(
            "content",
            "content has the mark of a cut answer instead of the file's lines",
            "use edits, or read what was left out first",
        )
