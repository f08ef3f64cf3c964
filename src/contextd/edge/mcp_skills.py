"""Skills as resources, and by the methods of MCP's skills extension (SEP-2640).

A skill is served as the one file that is kept of it: its SKILL.md. The extension wants the name in the
URI; the id before it makes the URI unique and leads to the skill without a search.
"""

import hashlib
import re
from typing import Any, Final

import mcp_types as types

from contextd.domain.callers import Caller
from contextd.domain.errors import NotFound
from contextd.services.skill_md import front_matter, slug, to_markdown
from contextd.services.skill_records import Kept
from contextd.services.skills import Skills

EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILLS: Final = "contextd://skills/"
_SKILL_MD: Final = re.compile(r"skill://([^/]+)/([^/]+)/SKILL\.md")
_MARKDOWN: Final = "text/markdown"
_MOST_VALUES: Final = 100


class SkillUri(types.RequestParams):
    uri: str


class SkillShelf:
    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    async def resources(self, caller: Caller, offset: int, limit: int) -> tuple[list[types.Resource], int]:
        """A page of them, newest first, and how many there are."""
        page = await self._skills.page(caller, "created_at", offset, limit)
        listed = [
            types.Resource(
                uri=f"{SKILLS}{kept.id}",
                name=_name(kept),
                title=kept.skill.name,
                description=kept.skill.description,
                mime_type=_MARKDOWN,
            )
            for kept in page.skills
        ]
        return listed, page.total

    def template(self) -> types.ResourceTemplate:
        return types.ResourceTemplate(
            uri_template=f"{SKILLS}{{id}}",
            name="skill",
            title="A skill as SKILL.md; an earlier version as {id}@{version}",
            mime_type=_MARKDOWN,
        )

    async def read(self, uri: str, caller: Caller) -> tuple[str, str] | None:
        """Text and type; None for a URI of another kind. Raises NotFound."""
        if uri.startswith(SKILLS):
            id, _, version = uri.removeprefix(SKILLS).partition("@")
            kept = await self._skills.get(id, caller, version or None)
        elif uri.startswith("skill://"):
            kept = await self._served(uri, caller)
        else:
            return None
        return _text(kept), _MARKDOWN

    async def entries(self, caller: Caller, offset: int, limit: int) -> tuple[list[dict[str, Any]], int]:
        page = await self._skills.page(caller, "created_at", offset, limit)
        return [_entry(kept) for kept in page.skills], page.total

    async def entry(self, uri: str, caller: Caller) -> dict[str, Any]:
        """Raises NotFound."""
        return _entry(await self._served(uri, caller))

    async def values(self, name: str, caller: Caller) -> list[str]:
        """What an argument of this name may be, of the newest skills."""
        page = await self._skills.page(caller, "created_at", 0, _MOST_VALUES)
        match name:
            case "id":
                return [kept.id for kept in page.skills]
            case "name":
                return sorted({kept.skill.name for kept in page.skills})
            case "category":
                return sorted({kept.skill.category for kept in page.skills})
            case "tag" | "tags":
                return sorted({tag for kept in page.skills for tag in kept.skill.tags})
            case _:
                return []

    async def _served(self, uri: str, caller: Caller) -> Kept:
        parts = _SKILL_MD.fullmatch(uri)
        if parts is not None:
            kept = await self._skills.get(parts[1], caller)
            if parts[2] == _name(kept):
                return kept
        raise NotFound("skill", uri[:512], "skills/list shows what there is")


def _name(kept: Kept) -> str:
    return slug(kept.skill.name, kept.id)


def _text(kept: Kept) -> str:
    return to_markdown(front_matter(kept.skill, _name(kept)), kept.skill.content)


def _entry(kept: Kept) -> dict[str, Any]:
    uri = f"skill://{kept.id}/{_name(kept)}/SKILL.md"
    raw = _text(kept).encode()
    digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    return {
        "uri": uri,
        "frontmatter": front_matter(kept.skill, _name(kept)),
        "resources": [{"uri": uri, "digest": digest, "size": len(raw)}],
    }
