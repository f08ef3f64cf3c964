"""Commands inside a solution's prose, and what running them may destroy."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contextd.domain.command_risk import assess, told_in
from contextd.services.command_lines import is_command_line, is_command_span

MOST_COMMANDS: Final = 10
_LONGEST: Final = 500
_CODE: Final = re.compile(r"`([^`\n]+)`")
_PROMPT: Final = re.compile(r"\s{0,8}[$%]\s(.*)")
_LIST_MARK: Final = re.compile(r"\s{0,8}(?:[-*\u2022]|\d{1,2}[.)])\s+")
_MOST_SUSPECTS: Final = 100


@dataclass(frozen=True, slots=True)
class Safety:
    """By the classifier of commands alone: what data or a model says of itself counts for nothing."""

    destructive: bool
    warnings: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        return f"May destroy data: {'; '.join(self.warnings)}." if self.destructive else ""


SAFE: Final = Safety(destructive=False)


def commands_in(text: str) -> tuple[str, ...]:
    """What a reader would type: fenced lines, code spans, lines after a prompt or of a command's shape.

    A sentence that holds a command is none: where the command ends in it is not certain.
    """
    fenced, prose = _split_at_fences(text)
    prompted = [typed[1] for line in prose if (typed := _PROMPT.match(line))]
    plain = [line for each in prose if is_command_line(line := _LIST_MARK.sub("", each))]
    spans = [span for line in prose for span in _CODE.findall(line) if is_command_span(span)]
    found = (line.strip().removeprefix("$ ") for line in (*fenced, *prompted, *plain, *spans))
    kept = [line[:_LONGEST] for line in found if line and not line.startswith("#")]
    return tuple(dict.fromkeys(kept))[:MOST_COMMANDS]


def _split_at_fences(text: str) -> tuple[list[str], list[str]]:
    """The lines inside code fences, and the others."""
    fenced: list[str] = []
    prose: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        else:
            (fenced if inside else prose).append(line)
    return fenced, prose


def code_in(text: str) -> tuple[str, ...]:
    """Every code span, whatever it begins with: much that destroys begins with no program's name."""
    return tuple(dict.fromkeys(span[:_LONGEST] for span in _CODE.findall(text)))


def safety_of(commands: Sequence[str], prose: str = "", most_suspects: int = _MOST_SUSPECTS) -> Safety:
    """Of these commands, and of any that the prose tells to run in whatever form.

    Prose with more suspects than `most_suspects` counts as destructive: the others are not judged.
    """
    fenced, _ = _split_at_fences(prose)
    suspects = told_in(prose)
    told = (extent for extents in suspects[:most_suspects] for extent in extents)
    judged = dict.fromkeys((*commands, *code_in(prose), "\n".join(fenced), *told))
    risks = [assess(command) for command in judged]
    reasons = [reason for risk in risks if risk.destructive for reason in risk.reasons]
    if len(suspects) > most_suspects:
        reasons.append("names more commands than are judged")
    return Safety(bool(reasons), tuple(dict.fromkeys(reasons)))
