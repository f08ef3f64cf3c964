"""Exact replacements in a text: what is to go must be there, and in one place unless all are meant."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextd.domain.errors import Invalid, NoMatch


@dataclass(frozen=True, slots=True)
class Edit:
    old: str
    new: str
    replace_all: bool = False


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Each edit sees what the ones before it did. Raises NoMatch; then none was done."""
    for number, edit in enumerate(edits):
        found = text.count(edit.old)
        if found == 0:
            raise NoMatch("edits", f"edits[{number}].old is not in the file")
        if found > 1 and not edit.replace_all:
            raise NoMatch(
                "edits",
                f"edits[{number}].old is in the file {found} times",
                "give more of the text around it, or replace_all",
            )
        if edit.old == edit.new:
            raise Invalid("edits", f"edits[{number}] changes nothing", "give a new text that differs")
        text = text.replace(edit.old, edit.new)
    return text
