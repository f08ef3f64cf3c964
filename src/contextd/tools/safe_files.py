"""Files of a project, as an agent reads and writes them."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from contextd.domain import limits
from contextd.domain.callers import Caller
from contextd.domain.text_edits import Edit
from contextd.services.safe_files import Excerpt, SafeFiles
from contextd.services.safe_writing import Change, SafeWriting
from contextd.tools.declaration import Example, Input, Output, optional, tool
from contextd.tools.fields import OneLine, ProjectPath

_PROJECT = "/home/dev/shop"


def _no_steps_back(path: str) -> str:
    if ".." in path.split("/"):
        raise PydanticCustomError("bad_path", "cannot contain a '..' component")
    return path


def _sha256(digest: str) -> str:
    if set(digest.lower()) - set("0123456789abcdef"):
        raise PydanticCustomError("bad_format", "must be the 64 hex digits of a SHA-256")
    return digest


FilePath = Annotated[
    str, Field(min_length=1, max_length=limits.MAX_PATH_LENGTH), AfterValidator(_no_steps_back), OneLine
]
Sha256 = Annotated[
    str,
    Field(min_length=64, max_length=64),
    AfterValidator(_sha256),
    WithJsonSchema({"type": "string", "format": "sha256", "minLength": 64, "maxLength": 64}),
]
Line = Annotated[int, Field(ge=1, le=10_000_000)]
Text = Annotated[str, Field(max_length=limits.MAX_FILE_TEXT_LENGTH)]
SomeText = Annotated[str, Field(min_length=1, max_length=limits.MAX_FILE_TEXT_LENGTH)]


class SafeRead(Input):
    old_names: ClassVar = {"file_path": "path"}

    path: FilePath = Field(description="Relative to project_path, or absolute inside it")
    project_path: ProjectPath = Field(description="Absolute path of the project")
    start_line: Line = Field(1, description="To go on after a cut answer")
    end_line: Line | None = None
    pattern: Annotated[str, Field(min_length=1, max_length=limits.MAX_QUERY_LENGTH)] | None = Field(
        None, description="Only lines that match (RE2), numbered, with two lines around"
    )


class FileRead(Output):
    sparse: ClassVar[bool] = True

    content: str
    total_lines: int
    start_line: int
    end_line: int
    sha256: str = Field(description="of the file's bytes, for safe_write")
    secrets_redacted: int
    encoding: str
    matches: int = optional("lines that match the pattern")
    note: str = optional()


@tool(
    toolset="safe",
    not_for="finding code by meaning: search_code; running a program: safe_bash",
    asked="open, cat, view or grep a file",
    read_only=True,
    examples=(
        Example("a file", {"path": "go.mod", "project_path": _PROJECT}),
        Example(
            "lines of it that match",
            {"path": f"{_PROJECT}/README.md", "project_path": _PROJECT, "pattern": "(?i)run"},
        ),
    ),
)
async def safe_read(files: SafeFiles, ask: SafeRead, caller: Caller) -> FileRead:
    """Read a text file of a project, or lines of it, with secrets shown as placeholders."""
    shown = await files.read(
        ask.project_path, Excerpt(ask.path, ask.start_line, ask.end_line, ask.pattern), caller
    )
    notes = [
        "no UTF-8: the encoding is a guess" if shown.is_guessed else "",
        f"go on at line {shown.end_line + 1}" if shown.is_cut else "",
        "lines end in CRLF, which safe_write keeps" if shown.crlf else "",
    ]
    note = "; ".join(filter(None, notes))
    said: dict[str, Any] = {} if shown.matches is None else {"matches": shown.matches}
    said |= {"note": note} if note else {}
    return FileRead(
        content=shown.content,
        total_lines=shown.total_lines,
        start_line=shown.start_line,
        end_line=shown.end_line,
        sha256=shown.sha256,
        secrets_redacted=shown.secrets,
        encoding=shown.encoding,
        **said,
    )


class EditAsked(Input):
    old: SomeText = Field(description="Exactly as safe_read showed it; once in the file")
    new: Text
    replace_all: bool = False


class SafeWrite(Input):
    old_names: ClassVar = {"file_path": "path"}

    path: FilePath = Field(description="Relative to project_path, or absolute inside it")
    project_path: ProjectPath = Field(description="Absolute path of the project")
    content: Text | None = Field(None, description="The whole text, or what to append")
    edits: Annotated[list[EditAsked], Field(min_length=1, max_length=limits.MAX_EDITS)] | None = Field(
        None, description="Instead of content; all or none are made"
    )
    patch: SomeText | None = Field(None, description="Instead of content: a unified diff of this file")
    mode: Literal["create", "overwrite", "append", "edit"] | None = Field(
        None, description="Left out: edit for edits and patch, else create or overwrite"
    )
    expected_sha256: Sha256 | None = Field(
        None, description="Of the file as it was read; refused if it is another"
    )
    dry_run: bool = Field(False, description="Only answer the diff")


class FileWritten(Output):
    path: str
    bytes_written: int
    sha256: str = Field(description="of the file as it is, or would be")
    diff: str
    encoding: str
    backup_ref: str | None = Field(description="for ref_get: what was replaced, without secrets")


@tool(
    toolset="safe",
    not_for="running a program: safe_bash; keeping notes: memory_store",
    asked="create, edit, patch, append to or save a file",
    destructive=True,
    examples=(
        Example(
            "a new file", {"path": "notes/todo.md", "project_path": _PROJECT, "content": "- ship it\n"}
        ),
        Example(
            "an edit, tried first",
            {
                "path": "README.md",
                "project_path": _PROJECT,
                "edits": [{"old": "# Shop", "new": "# The shop"}],
                "dry_run": True,
            },
        ),
    ),
)
async def safe_write(writing: SafeWriting, ask: SafeWrite, caller: Caller) -> FileWritten:
    """Create, overwrite, append to or edit a text file of a project; its placeholders stay secrets."""
    change = Change(
        path=ask.path,
        content=ask.content,
        edits=tuple(Edit(edit.old, edit.new, edit.replace_all) for edit in ask.edits or ()),
        patch=ask.patch,
        mode=ask.mode,
        expected_sha256=ask.expected_sha256,
        dry_run=ask.dry_run,
    )
    written = await writing.write(ask.project_path, change, caller)
    return FileWritten(
        path=written.path,
        bytes_written=written.bytes_written,
        sha256=written.sha256,
        diff=written.diff,
        encoding=written.encoding,
        backup_ref=written.backup_ref,
    )


TOOLS = (safe_read, safe_write)
