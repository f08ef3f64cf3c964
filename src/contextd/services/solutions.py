"""Commands inside a solution's prose, and what running them may destroy."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contextd.domain.command_risk import assess

MOST_COMMANDS: Final = 10
_LONGEST: Final = 500
_CODE: Final = re.compile(r"`([^`\n]+)`")
_PROMPT: Final = re.compile(r"\s{0,8}[$%]\s(.*)")
_PROGRAMS: Final = frozenset(
    """
    apt apt-get aws az brew bundle bun cargo cd chmod chown conda curl dd docker docker-compose dotnet
    export find gcc gcloud gem git go gradle helm java kill kubectl ln make mkdir mkfs mvn mysql npm npx
    pip pip3 pkill pnpm podman poetry psql python python3 redis-cli rm rustup sed shred sudo systemctl
    tar terraform truncate uv wget xargs yarn
    """.split()
)
_MOST_SUSPECTS: Final = 100
_DANGEROUS: Final = """
    rm rmdir dd mkfs mkfs.ext4 mkfs.xfs shred wipefs chmod chown chgrp git gh kubectl helm docker
    docker-compose podman terraform tofu psql mysql sqlite3 redis-cli mongo mongosh aws gcloud az sudo doas
    systemctl pkill killall curl wget bash sh zsh python python3 perl ruby node npm pip apt apt-get yum dnf
    brew rsync xargs eval fdisk parted crontab userdel dropdb diskutil powershell Remove-Item
    """.split()
_SUSPECT: Final = re.compile(
    rf"""(?<![\w./-]) (?:
        (?:/(?:[\w.-]{{1,40}}/){{0,6}})? (?:{"|".join(map(re.escape, _DANGEROUS))}) (?=\s)
        | find\s+[./~$]
        | (?:drop|truncate|alter)\s+(?:table|database|schema|index|view|user|role)
        | delete\s+from
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""Where a command that can destroy may begin. Words that are common in prose need what follows them."""


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
    """What a reader would type: fenced lines, code spans, lines that begin with a prompt or a program."""
    fenced, prose = _split_at_fences(text)
    prompted = [typed[1] for line in prose if (typed := _PROMPT.match(line))]
    plain = [line for line in prose if _first_word(line) in _PROGRAMS]
    spans = [span for line in prose for span in _CODE.findall(line) if _first_word(span) in _PROGRAMS]
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


def safety_of(commands: Sequence[str], prose: str = "") -> Safety:
    """Of these commands, and of any that the prose tells to run in whatever form."""
    suspects = _suspects(prose)
    risks = [assess(command) for command in (*commands, *suspects[:_MOST_SUSPECTS])]
    reasons = [reason for risk in risks if risk.destructive for reason in risk.reasons]
    if len(suspects) > _MOST_SUSPECTS:
        reasons.append("names more commands than are judged")
    return Safety(bool(reasons), tuple(dict.fromkeys(reasons)))


def _suspects(prose: str) -> list[str]:
    """Every place where a command could begin: a sentence can tell to run one without any mark."""
    places = [
        line[found.start() :][:_LONGEST].rstrip("`'\").")
        for line in prose.splitlines()
        for found in _SUSPECT.finditer(line)
    ]
    return list(dict.fromkeys(places))


def _first_word(line: str) -> str:
    words = line.split(maxsplit=1)
    return words[0] if words else ""
