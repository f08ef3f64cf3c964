"""What answers take of a context window: searches by reference beside the same in full, on this repository.

The example is committed: contextd's own source and documents, and these questions. A section of a document
stands for a checkpoint's description and for a memory's content.
"""

import re
import shutil
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contextd.domain.callers import Caller
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.settings import load_settings
from contextd.wiring import build, open_house
from processes import UNLIMITED, data_folder, environment
from report import Check, Section, Table

_HOME: Final = Path(__file__).parent.parent
_SECTION: Final = re.compile(r"^#+ (.+)\n+((?:(?!#).*\n)+)", re.MULTILINE)
_WORTH: Final = 300
"""Characters of a section that says something."""
_TARGET: Final = 0.15
_LIMIT: Final = 10
_WHOLE: Final = 32_768
_CODE_QUESTIONS: Final = (
    "where are secrets removed from an answer",
    "how is a memory's confidence computed",
    "rate limit token bucket",
    "which line of an error says what happened",
    "worktrees of one repository are one project",
    "resume a stream by last event id",
    "how are chunks of source made",
    "error codes for JSON-RPC and HTTP",
    "fusion of keyword and vector ranks",
    "read settings from the environment",
    "parse a Go file into symbols",
    "write becomes durable before it is acknowledged",
)


_QUESTIONS: Final = (
    "how are secrets kept out",
    "what happens when the embedder is away",
    "why is the store one file a project",
    "which clients were tried",
    "when is a memory stale",
    "how is an error recognised again",
    "what does a plugin have to do",
    "how is confidence moved by feedback",
    "what is counted and what is not",
    "how does search rank code",
    "which protocol versions are spoken",
    "what to set for another model",
)


@dataclass(frozen=True, slots=True)
class Share:
    tool: str
    full: float
    refs: float
    named: float
    """Results that are in the answer by reference."""
    share: float
    """The median over the questions."""


async def measure() -> Section:
    shares = await _shares()
    checks = [
        Check(
            f"tokens of `{each.tool}` by reference, of the same answer in full",
            f"at most {_TARGET:.0%}",
            f"{each.share:.1%}",
            each.share <= _TARGET,
        )
        for each in shares
    ]
    rows = tuple(
        (
            f"`{each.tool}`",
            f"{each.full:,.0f}",
            f"{each.refs:,.0f}",
            f"{each.named:.1f}",
            f"{each.share:.1%}",
        )
        for each in shares
    )
    return Section(
        "What searches take of a window",
        f"o200k tokens of an answer with {_LIMIT} results, medians over {len(_QUESTIONS)} questions: with"
        " `detail: full` and a budget that holds it whole, and with `detail: refs` and its own budget."
        " Code is contextd's own source; checkpoints and memories are"
        f" {len(_sections())} sections of its documents.",
        (Table(("search", "in full", "by reference", "results named", "share"), rows),),
        tuple(checks),
    )


async def _shares() -> list[Share]:
    async with _pipeline() as (pipeline, project):
        about = [{"project_path": project, "query": each} for each in _QUESTIONS]
        return [
            await _share(
                pipeline, "search_code", [{"path": project, "query": each} for each in _CODE_QUESTIONS]
            ),
            await _share(
                pipeline, "checkpoint_search", [{**each, "sources": ["checkpoints"]} for each in about]
            ),
            await _share(pipeline, "memory_search", about),
        ]


def _sections() -> list[tuple[str, str]]:
    pages = [page.read_text(encoding="utf-8") for page in sorted((_HOME / "docs").glob("*.md"))]
    found = [match.groups() for page in pages for match in _SECTION.finditer(page)]
    return [(title, text[:5_000]) for title, text in found if len(text) > _WORTH]


async def _share(pipeline: CallPipeline, tool: str, asked: list[dict[str, Any]]) -> Share:
    count = "top_k" if "top_k" in pipeline.registry[tool].input_schema["properties"] else "limit"
    pairs, named = [], []
    for arguments in asked:
        wanted = {**arguments, count: _LIMIT}
        full = await pipeline.call(tool, {**wanted, "detail": "full", "token_budget": _WHOLE}, Caller())
        refs = await pipeline.call(tool, {**wanted, "detail": "refs"}, Caller())
        assert not full.truncated
        pairs.append((full.tokens_used, refs.tokens_used))
        named.append(len(refs.data["results"]))
    return Share(
        tool,
        statistics.median(full for full, _ in pairs),
        statistics.median(refs for _, refs in pairs),
        statistics.mean(named),
        statistics.median(refs / full for full, refs in pairs),
    )


@asynccontextmanager
async def _pipeline() -> AsyncIterator[tuple[CallPipeline, str]]:
    """With contextd's source indexed, and a project's checkpoints and memories."""
    with data_folder() as folder, data_folder() as work:
        source = _HOME / "src" / "contextd"
        project = shutil.copytree(source, work / "contextd", ignore=shutil.ignore_patterns("__pycache__"))
        house = build(load_settings(environment(folder, **UNLIMITED)))
        async with open_house(house, follows=False):
            pipeline = pipeline_of(house)
            await pipeline.call("index_codebase", {"path": str(project)}, Caller())
            for title, text in _sections():
                saved = {"summary": title, "description": text, "project_path": str(project)}
                await pipeline.call("checkpoint_save", saved, Caller())
                stored = {"title": title, "content": text, "project_path": str(project)}
                await pipeline.call("memory_store", stored, Caller())
            yield pipeline, str(project)
