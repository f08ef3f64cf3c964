"""What an MCP client can read and be offered beside tools: resources and completion; prompts are beside."""

from typing import Any, Final

import mcp_types as types

from contextd.domain.callers import Caller
from contextd.domain.errors import Invalid, NotFound
from contextd.edge.mcp_prompts import Prompts
from contextd.edge.mcp_skills import SKILLS, SkillShelf
from contextd.edge.tool_md import tool_md
from contextd.services.checkpoints import Checkpoints, as_json
from contextd.services.collections import Collections
from contextd.services.memories import Memories
from contextd.services.ref_reading import RefReading
from contextd.services.skills import Skills
from contextd.tools.memories import memory_title, shown
from contextd.tools.registry import Registry
from contextd.wiring import House

_CHECKPOINTS: Final = "contextd://checkpoints/"
_MEMORIES: Final = "contextd://memories/"
_TOOLS: Final = "contextd://tools/"
_REFS: Final = "contextd://refs/"
_PAGE: Final = 50
_RECENT_MEMORIES: Final = 10
_MOST_VALUES: Final = 100


class Library:
    def __init__(
        self,
        registry: Registry,
        checkpoints: Checkpoints,
        collections: Collections,
        memories: Memories,
        skills: Skills,
        reading: RefReading,
    ) -> None:
        self._registry = registry
        self._checkpoints = checkpoints
        self._collections = collections
        self._memories = memories
        self._reading = reading
        self._shelf = SkillShelf(skills)
        self.prompts = Prompts(checkpoints)

    # --- resources --------------------------------------------------------------------

    async def resources(self, caller: Caller, cursor: str | None) -> types.ListResourcesResult:
        """Checkpoints, newest first, then skills, then the newest memories and each tool's TOOL.md."""
        offset = _offset(cursor)
        found = await self._checkpoints.recent(caller, None, "created_at", offset, _PAGE)
        resources = [
            types.Resource(
                uri=f"{_CHECKPOINTS}{record.id}",
                name=record.id,
                title=record.title,
                mime_type="application/json",
            )
            for record in found.records
        ]
        skills, total = await self._shelf.resources(
            caller, max(0, offset - found.total), _PAGE - len(resources)
        )
        resources += skills
        more = offset + _PAGE < found.total + total
        if not more:
            resources += [
                types.Resource(
                    uri=f"{_MEMORIES}{memory.id}",
                    name=memory.id,
                    title=memory_title(memory),
                    mime_type="application/json",
                )
                for memory in await self._memories.recent(caller, _RECENT_MEMORIES)
            ]
            resources += [
                types.Resource(
                    uri=f"{_TOOLS}{tool.name}",
                    name=tool.name,
                    description=tool.description,
                    mime_type="text/markdown",
                )
                for tool in self._registry
            ]
        return types.ListResourcesResult(
            resources=resources, next_cursor=str(offset + _PAGE) if more else None
        )

    def templates(self) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=f"{_CHECKPOINTS}{{id}}",
                    name="checkpoint",
                    title="A checkpoint, whole",
                    mime_type="application/json",
                ),
                types.ResourceTemplate(
                    uri_template=f"{_MEMORIES}{{id}}",
                    name="memory",
                    title="A memory, whole",
                    mime_type="application/json",
                ),
                self._shelf.template(),
                types.ResourceTemplate(
                    uri_template=f"{_REFS}{{ref}}",
                    name="ref",
                    title="What an answer left out, whole",
                    mime_type="text/plain",
                ),
                types.ResourceTemplate(
                    uri_template=f"{_TOOLS}{{name}}",
                    name="tool",
                    title="TOOL.md: when to use a tool, and when not",
                    mime_type="text/markdown",
                ),
            ]
        )

    async def read(self, uri: str, caller: Caller) -> types.ReadResourceResult:
        """Raises NotFound."""
        text, kind = await self._text_of(uri, caller)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)]
        )

    async def _text_of(self, uri: str, caller: Caller) -> tuple[str, str]:
        if uri.startswith(_CHECKPOINTS):
            record = await self._checkpoints.restore(uri.removeprefix(_CHECKPOINTS), caller)
            return as_json(record), "application/json"
        if uri.startswith(_MEMORIES):
            whole = await self._memories.get(uri.removeprefix(_MEMORIES), caller)
            return shown(whole).model_dump_json(indent=1), "application/json"
        if uri.startswith(_REFS):
            return await self._reading.whole(uri.removeprefix(_REFS), caller), "text/plain"
        skill = await self._shelf.read(uri, caller)
        if skill is not None:
            return skill
        tool = self._registry.get(uri.removeprefix(_TOOLS)) if uri.startswith(_TOOLS) else None
        if tool is None:
            raise NotFound("resource", uri[:512], "resources/list shows what there is")
        return tool_md(tool), "text/markdown"

    async def skills(self, caller: Caller, cursor: str | None) -> dict[str, Any]:
        offset = _offset(cursor)
        entries, total = await self._shelf.entries(caller, offset, _PAGE)
        return {
            "skills": entries,
            **({"nextCursor": str(offset + _PAGE)} if offset + _PAGE < total else {}),
        }

    async def skill(self, uri: str, caller: Caller) -> dict[str, Any]:
        """Raises NotFound."""
        return {"skill": await self._shelf.entry(uri, caller)}

    # --- completion -------------------------------------------------------------------

    async def complete(
        self,
        ref: types.PromptReference | types.ResourceTemplateReference,
        argument: types.CompletionArgument,
        caller: Caller,
    ) -> types.CompleteResult:
        template = ref.uri if isinstance(ref, types.ResourceTemplateReference) else ""
        if template.startswith(SKILLS) or argument.name == "category":
            values = await self._shelf.values(argument.name, caller)
        elif argument.name == "id" and template:
            values = await self._ids(template, caller)
        else:
            values = await self._values(argument.name, caller)
        found = [value for value in values if value.startswith(argument.value)]
        return types.CompleteResult(
            completion=types.Completion(
                values=found[:_MOST_VALUES], total=len(found), has_more=len(found) > _MOST_VALUES
            )
        )

    async def _values(self, name: str, caller: Caller) -> list[str]:
        if name == "project_path":
            return [drawer.project.path for drawer in await self._collections.list(caller)]
        if name == "name":
            return sorted(tool.name for tool in self._registry)
        if name not in ("tag", "tags"):
            return []
        found = await self._checkpoints.recent(caller, None, "created_at", 0, _MOST_VALUES)
        memories = await self._memories.recent(caller, _MOST_VALUES)
        tags = [record.tags for record in found.records] + [memory.tags for memory in memories]
        return sorted({tag for each in tags for tag in each})

    async def _ids(self, template: str, caller: Caller) -> list[str]:
        if template.startswith(_MEMORIES):
            return [memory.id for memory in await self._memories.recent(caller, _MOST_VALUES)]
        found = await self._checkpoints.recent(caller, None, "created_at", 0, _MOST_VALUES)
        return [record.id for record in found.records]


def library_of(house: House) -> Library:
    return Library(
        house.registry, house.checkpoints, house.collections, house.memories, house.skills, house.reading
    )


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise Invalid("cursor", "cursor is not one of this server's", "send next_cursor as it came")
    return int(cursor)
