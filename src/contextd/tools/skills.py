"""Skills, as an agent calls them."""

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from contextd.domain import limits
from contextd.domain.callers import Caller
from contextd.domain.versions import MAX_VERSION_LENGTH
from contextd.services.skill_records import Change, Kept, Skill
from contextd.services.skills import Skills, Sort
from contextd.tools.declaration import Example, Input, Output, optional, tool
from contextd.tools.fields import (
    PREVIEW,
    Detail,
    Id,
    Limit,
    NotBlank,
    Object,
    Offset,
    OneLine,
    Score,
    SearchText,
    Tags,
)


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(metadata, ensure_ascii=False)) > limits.MAX_METADATA_LENGTH:
        raise PydanticCustomError(
            "bad_length", f"must be at most {limits.MAX_METADATA_LENGTH} characters as JSON"
        )
    return metadata


Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_SKILL_NAME_LENGTH), NotBlank, OneLine]
Purpose = Annotated[str, Field(min_length=1, max_length=limits.MAX_SKILL_DESCRIPTION_LENGTH), NotBlank]
Content = Annotated[str, Field(min_length=1, max_length=limits.MAX_SKILL_CONTENT_LENGTH), NotBlank]
Semver = Annotated[str, Field(min_length=1, max_length=MAX_VERSION_LENGTH)]
Author = Annotated[str, Field(min_length=1, max_length=limits.MAX_AUTHOR_LENGTH), NotBlank, OneLine]
Category = Annotated[str, Field(min_length=1, max_length=limits.MAX_CATEGORY_LENGTH), NotBlank, OneLine]
Prerequisite = Annotated[str, Field(min_length=1, max_length=limits.MAX_PREREQUISITE_LENGTH)]
Prerequisites = Annotated[list[Prerequisite], Field(max_length=limits.MAX_PREREQUISITES)]
ExpectedOutcome = Annotated[str, Field(max_length=limits.MAX_SKILL_DESCRIPTION_LENGTH)]
Metadata = Annotated[dict[str, Any], AfterValidator(_small), WithJsonSchema({"type": "object"})]


class SkillCreate(Input):
    name: Name
    description: Purpose = Field(description="What it is for and when to use it")
    content: Content = Field(description="The steps, in Markdown")
    version: Semver = Field(description="semver, such as 1.0.0")
    author: Author
    category: Category = Field(description="debugging, deployment, analysis, …")
    prerequisites: Prerequisites = Field(default_factory=list)
    expected_outcome: ExpectedOutcome = ""
    tags: Tags = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)


class SkillCreated(Output):
    id: str
    name: str
    version: str
    token_count: int = Field(description="tokens as the embedding model counts them")
    created_at: datetime


@tool(
    toolset="skills",
    not_for="facts and lessons: memory_store; changing a skill: skill_update",
    asked="save a procedure, workflow or playbook to reuse",
    timeout_s=120,
    examples=(
        Example(
            "a way of working that proved itself",
            {
                "name": "Debug Go race conditions",
                "description": "Find and mend a data race in a Go program",
                "content": "# Debug races\n\n1. Run the tests with `-race`.\n2. Read both stacks.",
                "version": "1.0.0",
                "author": "platform team",
                "category": "debugging",
                "prerequisites": ["Go 1.21 or newer"],
                "expected_outcome": "go test -race passes",
                "tags": ["go", "concurrency"],
            },
        ),
    ),
)
async def skill_create(skills: Skills, ask: SkillCreate, caller: Caller) -> SkillCreated:
    """Keep a way of working as a skill, so that it can be found and applied again."""
    saved = await skills.create(
        Skill(
            name=ask.name,
            description=ask.description,
            content=ask.content,
            version=ask.version,
            author=ask.author,
            category=ask.category,
            prerequisites=tuple(ask.prerequisites),
            expected_outcome=ask.expected_outcome,
            tags=tuple(ask.tags),
            metadata=ask.metadata,
        ),
        caller,
    )
    kept = saved.kept
    return SkillCreated(
        id=kept.id,
        name=kept.skill.name,
        version=kept.skill.version,
        token_count=saved.token_count,
        created_at=kept.created_at,
    )


class SkillSearch(Input):
    query: SearchText = Field(description="What the skill should help with")
    top_k: Limit = 5
    category: Category | None = Field(None, description="Only this category")
    tags: Tags = Field(default_factory=list, description="Only those with all of these")
    detail: Detail = Field("full", description="refs: no long texts; preview: their beginning")


class SkillListed(Output):
    id: str
    name: str
    description: str = optional()
    content: str = optional()
    version: str = optional()
    author: str = optional()
    category: str = optional()
    prerequisites: list[str] = optional()
    expected_outcome: str = optional()
    tags: list[str] = optional()
    usage_count: int = optional()
    success_rate: Score | None = optional("null while no outcome is known")
    metadata: Object = optional()
    created_at: datetime = optional()
    updated_at: datetime = optional()


class SkillFound(SkillListed):
    score: Score
    distance: Score | None = optional("cosine distance; null for a hit by words alone")


class SkillsFound(Output):
    sparse: ClassVar = True

    results: list[SkillFound]
    query: str = optional()
    top_k: int = optional()


@tool(
    toolset="skills",
    not_for="lessons of a project: memory_search; following the steps: skill_apply",
    asked="is there a procedure, playbook or how-to for a task; how do we usually do this",
    timeout_s=10,
    read_only=True,
    examples=(
        Example("by meaning", {"query": "two goroutines write the same map", "category": "debugging"}),
    ),
)
async def skill_search(skills: Skills, ask: SkillSearch, caller: Caller) -> SkillsFound:
    """Find skills by meaning and by words; ids lead to skill_apply."""
    hits = await skills.search(ask.query, caller, ask.category, ask.tags, ask.top_k)
    wholes = [SkillFound(**_shown(hit.kept), score=hit.score, distance=hit.distance) for hit in hits]
    results = [_shortened(whole, ask.detail, caller) for whole in wholes]
    if ask.detail == "refs":
        return SkillsFound(results=results)
    return SkillsFound(results=results, query=ask.query, top_k=ask.top_k)


class SkillList(Input):
    limit: Limit = 10
    offset: Offset = 0
    category: Category | None = Field(None, description="Only this category")
    tags: Tags = Field(default_factory=list, description="Only those with all of these")
    sort_by: Sort = "created_at"


class SkillsListed(Output):
    skills: list[SkillListed]
    total: int
    limit: int
    offset: int


@tool(
    toolset="skills",
    not_for="finding one for a task: skill_search",
    asked="all procedures there are",
    read_only=True,
    examples=(Example("those that are used most", {"sort_by": "usage_count", "limit": 3}),),
)
async def skill_list(skills: Skills, ask: SkillList, caller: Caller) -> SkillsListed:
    """List skills page by page: newest, last updated, most used or most successful first."""
    page = await skills.page(caller, ask.sort_by, ask.offset, ask.limit, ask.category, ask.tags)
    return SkillsListed(
        skills=[SkillListed(**_shown(kept)) for kept in page.skills],
        total=page.total,
        limit=ask.limit,
        offset=ask.offset,
    )


class SkillUpdate(Input):
    id: Id = Field(description="From skill_search or skill_list")
    name: Name | None = None
    description: Purpose | None = None
    content: Content | None = None
    version: Semver | None = Field(None, description="Above the current one; by default its next patch")
    category: Category | None = None
    prerequisites: Prerequisites | None = None
    expected_outcome: ExpectedOutcome | None = None
    tags: Tags | None = None
    metadata: Metadata | None = None


class SkillUpdated(Output):
    id: str
    name: str
    version: str
    updated_at: datetime


@tool(
    toolset="skills",
    not_for="a new way of working: skill_create",
    asked="edit a procedure",
    timeout_s=120,
)
async def skill_update(skills: Skills, ask: SkillUpdate, caller: Caller) -> SkillUpdated:
    """Change a skill as a new version; earlier versions stay and skill_apply can name them."""
    change = Change(
        name=ask.name,
        description=ask.description,
        content=ask.content,
        version=ask.version,
        category=ask.category,
        prerequisites=None if ask.prerequisites is None else tuple(ask.prerequisites),
        expected_outcome=ask.expected_outcome,
        tags=None if ask.tags is None else tuple(ask.tags),
        metadata=ask.metadata,
    )
    kept = await skills.update(ask.id, change, caller)
    return SkillUpdated(
        id=kept.id, name=kept.skill.name, version=kept.skill.version, updated_at=kept.updated_at
    )


class SkillDelete(Input):
    id: Id = Field(description="From skill_search or skill_list")


class SkillDeleted(Output):
    id: str
    message: str


@tool(
    toolset="skills",
    not_for="correcting one: skill_update keeps the versions",
    asked="throw away a procedure",
    destructive=True,
)
async def skill_delete(skills: Skills, ask: SkillDelete, caller: Caller) -> SkillDeleted:
    """Delete a skill with all its versions and its record of use. This cannot be undone."""
    versions = await skills.delete(ask.id, caller)
    noun = "version" if versions == 1 else "versions"
    return SkillDeleted(
        id=ask.id, message=f"the skill and its {versions} {noun} are deleted; this cannot be undone"
    )


class SkillApply(Input):
    id: Id = Field(description="From skill_search or skill_list")
    success: bool | None = Field(None, description="How it went, when that is known")
    version: Semver | None = Field(None, description="An earlier version; by default the current one")


class SkillApplied(Output):
    id: str
    name: str
    version: str
    content: str
    prerequisites: list[str]
    expected_outcome: str
    usage_count: int
    success_rate: Score | None = Field(description="null while no outcome is known")


@tool(
    toolset="skills",
    budget=limits.WHOLE_TOKENS,
    not_for="finding one: skill_search",
    asked="follow a procedure's instructions",
)
async def skill_apply(skills: Skills, ask: SkillApply, caller: Caller) -> SkillApplied:
    """Get a skill's steps to follow. Each call counts as a use, and with success as its outcome."""
    kept = await skills.apply(ask.id, caller, ask.success, ask.version)
    shown = _shown(kept)
    return SkillApplied(**{name: shown[name] for name in SkillApplied.model_fields})


def _shown(kept: Kept) -> dict[str, Any]:
    skill = kept.skill
    return {
        "id": kept.id,
        "name": skill.name,
        "description": skill.description,
        "content": skill.content,
        "version": skill.version,
        "author": skill.author,
        "category": skill.category,
        "prerequisites": list(skill.prerequisites),
        "expected_outcome": skill.expected_outcome,
        "tags": list(skill.tags),
        "usage_count": kept.usage.uses,
        "success_rate": kept.usage.success_rate,
        "metadata": dict(skill.metadata),
        "created_at": kept.created_at,
        "updated_at": kept.updated_at,
    }


def _shortened(whole: SkillFound, detail: Detail, caller: Caller) -> SkillFound:
    if detail == "full":
        return whole
    if detail == "refs":
        named = ("id", "name", "score", *(("success_rate",) if whole.success_rate is not None else ()))
        caller.tally.kept_out.append(whole.without(*named))
        return whole.only(*named)
    texts = {name: getattr(whole, name) for name in ("description", "content", "expected_outcome")}
    rest = {"prerequisites": whole.prerequisites, "metadata": whole.metadata}
    caller.tally.kept_out += [*(text[PREVIEW:] for text in texts.values()), json.dumps(rest)]
    shorter = {name: text[:PREVIEW] for name, text in texts.items()}
    return whole.model_copy(update={**shorter, "prerequisites": [], "metadata": {}})


TOOLS = (skill_create, skill_search, skill_list, skill_update, skill_delete, skill_apply)
