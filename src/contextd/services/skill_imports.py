"""Skills from elsewhere: what they are to those that are kept, and how they are taken in."""

from dataclasses import dataclass, fields, replace
from typing import Final, Literal

from contextd.domain.callers import Caller
from contextd.domain.errors import NotFound
from contextd.domain.versions import Version
from contextd.services.skill_records import Change, Kept, Skill
from contextd.services.skills import Skills, parse_version

Standing = Literal["new", "changed", "unchanged", "older"]
"""`older` is one that is kept as the version it names, and has been updated since."""

FIRST_VERSION: Final = "1.0.0"


@dataclass(frozen=True, slots=True)
class TakenIn:
    standing: Standing
    kept: Kept


class SkillImports:
    """Where a skill's version or category is empty, it is as the kept one has it, or the first one."""

    def __init__(self, skills: Skills, category: str = "general") -> None:
        self._skills = skills
        self._category = category

    async def take_in(self, skill: Skill, caller: Caller) -> TakenIn:
        """Keep it as a new skill or a new version, or leave what is kept. Raises as those do."""
        known = await self._skills.named(skill, caller)
        whole = self.completed(skill, known)
        if known is None:
            return TakenIn("new", (await self._skills.create(whole, caller)).kept)
        standing = await self._beside(skill, known, caller)
        if standing != "changed":
            return TakenIn(standing, known)
        given = {each.name: getattr(whole, each.name) for each in fields(Change)}
        version = skill.version if _is_above(skill.version, known) else None
        change = Change(**given | {"version": version})
        return TakenIn(standing, await self._skills.update(known.id, change, caller))

    async def standing(self, skill: Skill, caller: Caller) -> Standing:
        known = await self._skills.named(skill, caller)
        return "new" if known is None else await self._beside(skill, known, caller)

    def completed(self, skill: Skill, known: Kept | None = None) -> Skill:
        return replace(
            skill,
            version=skill.version or (known.skill.version if known else FIRST_VERSION),
            category=skill.category or (known.skill.category if known else self._category),
        )

    async def _beside(self, skill: Skill, known: Kept, caller: Caller) -> Standing:
        """Secrets are not kept, so what is compared is what would be kept."""
        clean = await self._skills.as_kept(self.completed(skill, known))
        if _says(clean, known.skill):
            return "changed" if _is_above(skill.version, known) else "unchanged"
        try:
            named = await self._skills.get(known.id, caller, skill.version or None)
        except NotFound:
            return "changed"
        return "older" if _says(clean, named.skill) else "changed"


def _says(skill: Skill, other: Skill) -> bool:
    return replace(skill, version=other.version) == other


def _is_above(version: str, known: Kept) -> bool:
    return bool(version) and parse_version(version).is_above(Version.parse(known.skill.version))
