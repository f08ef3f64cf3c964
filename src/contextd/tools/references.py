"""References, as an agent follows them."""

from typing import Annotated, ClassVar

from pydantic import Field

from contextd.domain.callers import Caller
from contextd.domain.limits import MAX_QUERY_LENGTH
from contextd.services.ref_reading import RefReading, Wanted
from contextd.tools.declaration import Input, Output, tool
from contextd.tools.fields import Id

Line = Annotated[int, Field(ge=1, le=10_000_000)]


class RefGet(Input):
    ref: Id = Field(description="From an answer's refs or marks; a branch_id lists what it read")
    start_line: Line = 1
    end_line: Line | None = None
    pattern: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)] | None = Field(
        None, description="Only lines that match (RE2), with their numbers"
    )


class RefGot(Output):
    sparse: ClassVar[bool] = True

    content: str
    start_line: int
    end_line: int = Field(description="go on after it while has_more")
    total_lines: int = Field(description="long lines are folded at 200 characters")
    has_more: bool
    matches: int = Field(0, description="lines that match the pattern")


@tool(
    toolset="folding",
    read_only=True,
    not_for="code: search_code; memories: memory_get",
    asked="the rest of a truncated answer, lines that were left out",
    lean=("ref", "start_line", "pattern"),
)
async def ref_get(reading: RefReading, ask: RefGet, caller: Caller) -> RefGot:
    """Get more of what an answer left out: the next lines, a range, or lines that match."""
    pages = await reading.read(Wanted(ask.ref, ask.start_line, ask.end_line, ask.pattern), caller)
    matches = {} if pages.matches is None else {"matches": pages.matches}
    return RefGot(
        content=pages.content,
        start_line=pages.start_line,
        end_line=pages.end_line,
        total_lines=pages.total_lines,
        has_more=pages.has_more,
        **matches,
    )


TOOLS = (ref_get,)
