"""What a branch is told when it starts, and what is learned when it ends."""

from dataclasses import dataclass
from typing import Final

from contextd.domain.answers import as_json
from contextd.domain.branches import Branch
from contextd.domain.callers import Caller
from contextd.domain.errors import NotWorthKeeping
from contextd.domain.limits import BRANCH_MEMORIES, MAX_QUERY_LENGTH, MAX_SUMMARY_LENGTH
from contextd.domain.ports import TokenCounter
from contextd.services.memories import Memories
from contextd.services.memory_quality import refuse_junk
from contextd.services.memory_ranking import Found
from contextd.services.memory_records import Draft

_SURE: Final = 0.6
_RELEVANT: Final = 0.35
_CANDIDATES: Final = 10


@dataclass(frozen=True, slots=True)
class Lesson:
    id: str
    title: str
    content: str
    confidence: float
    tokens: int


class BranchMemories:
    def __init__(self, memories: Memories, tokens: TokenCounter) -> None:
        self._memories = memories
        self._tokens = tokens

    async def relevant(self, task: str, project_path: str, caller: Caller, most: int) -> tuple[Lesson, ...]:
        """A few that are about the task, sure, current and of good trust; whole, within `most` tokens."""
        query = task[:MAX_QUERY_LENGTH]
        found = await self._memories.search(
            query, project_path, caller, limit=_CANDIDATES, min_confidence=_SURE
        )
        chosen: list[Lesson] = []
        for each in found:
            lesson = self._lesson(each)
            if _may_be_told(each) and lesson.tokens <= most and len(chosen) < BRANCH_MEMORIES:
                chosen.append(lesson)
                most -= lesson.tokens
        return tuple(chosen)

    def worth(self, title: str, content: str) -> bool:
        try:
            refuse_junk(title, content)
        except NotWorthKeeping:
            return False
        return True

    async def distil(self, branch: Branch, project_path: str, caller: Caller) -> str:
        """A memory of what came of the branch. Raises NotWorthKeeping."""
        stored = await self._memories.store(
            Draft(
                project_path=project_path,
                title=branch.description[:MAX_SUMMARY_LENGTH],
                content=branch.summary,
                outcome="failure" if branch.ended == "failed" else "success",
                source="distilled",
            ),
            caller,
        )
        return stored.memory.id

    def _lesson(self, found: Found) -> Lesson:
        memory = found.memory
        told = as_json({"id": memory.id, "title": memory.title, "content": memory.content})
        return Lesson(memory.id, memory.title, memory.content, found.confidence, self._tokens.count(told))


def _may_be_told(found: Found) -> bool:
    """What a stranger wrote is never injected, nor what the code has moved on from."""
    return found.memory.trust != "low" and not found.stale and found.score >= _RELEVANT
