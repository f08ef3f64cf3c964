"""`contextd skill`: folders with a SKILL.md in and out, and what is kept."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextd.domain.callers import Caller
    from contextd.domain.errors import Fault
    from contextd.services.skill_imports import SkillImports
    from contextd.services.skill_records import Kept, Skill
    from contextd.wiring import House

_TOLD = {"new": "created", "changed": "updated", "unchanged": "unchanged", "older": "kept newer"}


@click.group()
def skill() -> None:
    """Bring skills in from SKILL.md folders, write them out, and list them."""


@skill.command(name="import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--author", default="unknown", show_default=True, help="For files that name no author.")
@click.option(
    "--category", default="general", show_default=True, help="For new skills whose file names none."
)
def import_skills(paths: tuple[Path, ...], author: str, category: str) -> int:
    """Keep the skills of these folders; what changed becomes a new version.

    A path is a folder with a SKILL.md, such a file, or a folder of such folders. Nothing is run, and of
    the other files in a folder only their paths are kept.

    \b
    contextd skill import .claude/skills
    contextd skill import ~/skills/pdf-processing --author "platform team"
    """
    from contextd.edge.cli.start import run, start

    return run(_import(start({"log_level": "error"}), paths, author, category))


async def _import(house: "House", paths: tuple[Path, ...], author: str, category: str) -> int:
    from contextd.domain.errors import Fault
    from contextd.edge.error_map import codes
    from contextd.services.skill_folders import read_folder, skill_folders
    from contextd.services.skill_imports import SkillImports
    from contextd.wiring import open_house

    status = 0
    folders = [folder for path in paths for folder in skill_folders(path)]
    async with open_house(house, follows=False):
        imports = SkillImports(house.skills, category)
        for folder in folders:
            try:
                found = read_folder(folder, author)
                _check(imports.completed(found))
                taken = await imports.take_in(found, _caller())
            except Fault as fault:
                _complain(folder, fault)
                status = max(status, codes(fault).exit)
            else:
                _tell(_TOLD[taken.standing], taken.kept)
    return status


@skill.command(name="export")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".claude/skills"),
    show_default=True,
    help="Where the folders are written.",
)
@click.option("--force", is_flag=True, help="Also over files with changes that were not imported.")
def export_skills(names: tuple[str, ...], folder: Path, force: bool) -> int:
    """Write skills as folders with a SKILL.md: all of them, or those named by name or id.

    \b
    contextd skill export
    contextd skill export --dir ~/skills "Debug Go race conditions"
    """
    from contextd.edge.cli.start import run, start

    return run(_export(start({"log_level": "error"}), names, folder, force))


async def _export(house: "House", names: tuple[str, ...], folder: Path, force: bool) -> int:
    from contextd.domain.errors import Fault
    from contextd.edge.error_map import codes
    from contextd.services.skill_folders import write_folder
    from contextd.services.skill_imports import SkillImports
    from contextd.services.skill_md import front_matter, to_markdown
    from contextd.wiring import open_house

    status = 0
    async with open_house(house, follows=False):
        imports = SkillImports(house.skills)
        chosen = _chosen([kept async for kept in house.skills.every(_caller())], names)
        for name, kept in _named(chosen).items():
            place = folder / name
            try:
                if not force:
                    await _refuse_to_lose(place, imports)
                text = to_markdown(front_matter(kept.skill, name), kept.skill.content)
                _tell("written" if write_folder(place, text) else "unchanged", kept)
            except Fault as fault:
                _complain(place, fault)
                status = max(status, codes(fault).exit)
    return status


@skill.command(name="list")
def list_skills() -> None:
    """List the skills, newest first, with their versions and how they fared."""
    from contextd.edge.cli.start import run, start

    for kept in run(_all(start({"log_level": "error"}))):
        rate = kept.usage.success_rate
        fared = f"used {kept.usage.uses}" + (f", {rate:.0%} successful" if rate is not None else "")
        click.echo(
            f"{kept.id}  {kept.skill.version:10s} {kept.skill.category:14s} {kept.skill.name}  ({fared})"
        )


async def _all(house: "House") -> "list[Kept]":
    from contextd.wiring import open_house

    async with open_house(house, follows=False):
        return [kept async for kept in house.skills.every(_caller())]


def _caller() -> "Caller":
    from contextd.domain.callers import Caller

    return Caller(transport="cli", session="cli")


def _check(found: "Skill") -> None:
    """Files are held to the same limits as calls. Raises Invalid."""
    from dataclasses import asdict

    from contextd.tools.skills import SkillCreate
    from contextd.tools.validation import parse

    lists = {"tags": list(found.tags), "prerequisites": list(found.prerequisites)}
    parse(SkillCreate, {**asdict(found), **lists})


def _chosen(skills: "list[Kept]", names: tuple[str, ...]) -> "list[Kept]":
    from contextd.services.skill_md import slug

    chosen = []
    for name in names:
        meant = [
            kept for kept in skills if name in (kept.id, kept.skill.name, slug(kept.skill.name, kept.id))
        ]
        if not meant:
            raise click.ClickException(f"there is no skill named {name}: 'contextd skill list' shows them")
        chosen += meant
    return chosen if names else skills


def _named(skills: "list[Kept]") -> "dict[str, Kept]":
    """A folder for each: where two would share one, all but the oldest get the end of their id."""
    from contextd.services.skill_md import slug

    folders: dict[str, Kept] = {}
    for kept in sorted(skills, key=lambda each: each.created_at):
        name = slug(kept.skill.name, kept.id)
        folders[f"{name[:55]}-{kept.id[-8:]}" if name in folders else name] = kept
    return folders


async def _refuse_to_lose(place: Path, imports: "SkillImports") -> None:
    """What stands there may be overwritten if it is kept: as the current version or an older one."""
    from contextd.domain.errors import Conflict, Invalid
    from contextd.services.skill_folders import SKILL_MD, read_skill_md
    from contextd.services.skill_md import from_markdown

    if not (place / SKILL_MD).exists():
        return
    try:
        there = from_markdown(read_skill_md(place), place.name, "")
        kept = await imports.standing(there, _caller()) in ("unchanged", "older")
    except Invalid:
        kept = False
    if not kept:
        raise Conflict(
            "the SKILL.md there holds what is not kept", "import it first, or overwrite it with --force"
        )


def _tell(what: str, kept: "Kept") -> None:
    click.echo(f"{what:10s} {kept.skill.name} {kept.skill.version}")


def _complain(place: Path, fault: "Fault") -> None:
    click.secho(f"{place}: {fault.problem}", fg="red", err=True)
    click.echo(f"  {fault.remedy}", err=True)
