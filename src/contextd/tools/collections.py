"""Collections, as an agent calls them: what is kept for each project."""

from datetime import datetime
from typing import Any

from pydantic import Field

from contextd.domain.callers import Caller
from contextd.domain.records import Drawer
from contextd.services.collections import Collections
from contextd.tools.declaration import Example, Input, Output, tool
from contextd.tools.fields import ProjectPath


class CollectionOf(Input):
    project_path: ProjectPath = Field(description="Absolute path of the project")


class CollectionsAll(Input):
    pass


class Collection(Output):
    name: str
    project_path: str
    counts: dict[str, int] = Field(description="records by kind")
    size_bytes: int
    created_at: datetime


class CollectionMade(Collection):
    created: bool = Field(description="false if it was there already")


class CollectionGone(Collection):
    message: str


class CollectionList(Output):
    collections: list[Collection]
    total: int


@tool(
    toolset="system",
    not_for="indexing code: index_codebase",
    asked="set up storage",
    idempotent=True,
    examples=(Example("ahead of the first record", {"project_path": "/home/dev/shop"}),),
)
async def collection_create(collections: Collections, ask: CollectionOf, caller: Caller) -> CollectionMade:
    """Make a project's store; saving to a project makes it too."""
    made = await collections.create(ask.project_path, caller)
    return CollectionMade(**_shown(made.drawer), created=made.created)


@tool(
    toolset="system",
    not_for="what one project holds in words: checkpoint_list, memory_search",
    asked="disk usage by project",
    read_only=True,
    examples=(Example("all of them", {}),),
)
async def collection_list(collections: Collections, ask: CollectionsAll, caller: Caller) -> CollectionList:
    """List the projects that have a store, with what each holds."""
    drawers = await collections.list(caller)
    return CollectionList(
        collections=[Collection(**_shown(drawer)) for drawer in drawers], total=len(drawers)
    )


@tool(
    toolset="system",
    not_for="a single skill: skill_delete; near-duplicate memories: memory_consolidate",
    asked="wipe or forget a project",
    destructive=True,
)
async def collection_delete(collections: Collections, ask: CollectionOf, caller: Caller) -> CollectionGone:
    """Delete everything kept for a project. This cannot be undone."""
    drawer = await collections.delete(ask.project_path, caller)
    count = sum(drawer.counts.values())
    return CollectionGone(**_shown(drawer), message=f"deleted {count} records; this cannot be undone")


def _shown(drawer: Drawer) -> dict[str, Any]:
    return {
        "name": drawer.project.key,
        "project_path": drawer.project.path,
        "counts": dict(drawer.counts),
        "size_bytes": drawer.size_bytes,
        "created_at": drawer.created_at,
    }


TOOLS = (collection_create, collection_list, collection_delete)
