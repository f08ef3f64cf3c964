"""Where a sentence tells to run something, without any mark around it.

Every word that the rules know as a program may begin a command. Where it ends is not known, so it is
read up to the end of its clause, and past that when options follow there: a false alarm costs little.
"""

import re
from collections.abc import Iterator
from typing import Final

from contextd.domain.command_risk.disguises import undisguised
from contextd.domain.command_risk.verdict import assess, program_in

_LONGEST: Final = 500
_LOOKED_BACK: Final = 40
_WORD: Final = re.compile(r"(?<![\w.$/~:-])(?:[\w.~$-]*/){0,8}[A-Za-z_][\w.:+-]*")
_BESIDES: Final = re.compile(
    r"""(?<![\w.-]) (?:
        (?:drop|truncate|alter)\s+(?:table|database|schema|index|view|materialized|user|role|column|keyspace
            |sequence|tablespace|owned|constraint|trigger|partition)\b
        | (?-i:TRUNCATE|DROP)\s+[\w"]
        | delete\s+from\s+(?!(?:the|a|an|your|our|this|that|its|their|there|here)\b)
        | update\s+(?:only\s+)?[\w."`]+\s+(?:\w+\s+){0,2}set\s+[\w."`]+\s*=
        | (?:reset\s+master|purge\s+binary)\b
        | db\s?\.\s?\w
        | (?:for|while|until)\s[^\n]{1,200};\s*do\b
    )
    | (?<!\S) (?: (?:cat|echo|printf|:)\s[^>\n]{0,200}>\s?\S | >\s?/ | :\(\)\s?\{ )""",
    re.VERBOSE | re.IGNORECASE,
)
"""Commands that begin with no program of the rules: statements, loops, redirections."""
_NOT_HEADS: Final = frozenset(
    "if then do at time nice timeout command exec env script batch watch trap screen parallel".split()
)
"""Words of prose that may stand before a command: what comes after them is found for itself."""
_ALSO_VERBS: Final = frozenset("kill halt reboot shutdown poweroff wipe scrub skill unlink erase".split())
_LIKE_AN_ARGUMENT: Final = re.compile(r"-\w|--|\$|/|~|\d+\b|now\b|[\w-]*[./*=:]\S")
_TOLD: Final = re.compile(
    r"(?:\A|[:;,(`'\"$#>]|\b(?:run|execute|issue|type|then|and|use|with|via|do))\s*\Z", re.I
)
_SPOKEN_OF: Final = re.compile(
    r"\s+(?:is|was|are|were|has|had|have|does|did|do|can|cannot|could|will|would|should|must|may|might|fails?"
    r"|failed|says|said|itself|needs?)\b(?!\s+-)",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"""'[^'\n]*'(?!\w) | "[^"\n]*" | (?P<end>
        (?<=[\w'"`)*]) [,;.!?]+ (?=\s|\Z) (?!\s+-)
        | (?<=\w\w) : (?=\s|\Z)
        | [ \t] (?:and|then|or|but|before|after|because|when|while|so|which|until|since|if
            |unless|to) [ \t] (?!-)
        | [`\u2013\u2014\u2192\u201c-\u201f\u00ab\u00bb] | \u2019(?!\w)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_GITS: Final = re.compile(r"(?<![\w-])git\s{1,8}\Z")
"""`git rm` is git's, and judged as such."""
_LOOP: Final = re.compile(r"(?:for|while|until)\s", re.IGNORECASE)
_OPTION: Final = re.compile(r"\s--?\w")
_WRAPPED: Final = re.compile(r"\\\n|\n[ \t]{0,200}(?=--?\w)")
"""A line that ends within a command: an option begins the next one."""
_JUDGED_BY_OPERANDS: Final = frozenset("git kill mv cp gmv gcp".split())
"""One word too many changes what these do, so they end with their clause."""


def told_in(prose: str) -> list[tuple[str, ...]]:
    """What may be commands: each with its possible extents, the shortest first."""
    lines = _WRAPPED.sub(" ", undisguised(prose)).splitlines()
    return list(dict.fromkeys(told for line in lines for told in _told_in_line(line)))


def _told_in_line(line: str) -> Iterator[tuple[str, ...]]:
    heads = sorted({*_programs(line), *(found.start() for found in _BESIDES.finditer(line))})
    for start, following in zip(heads, (*heads[1:], len(line)), strict=False):
        rest = line[start : start + _LONGEST]
        extents = (rest,) if _LOOP.match(rest) else _extents(rest, rest[: following - start])
        if len(extents) > 1 or len(extents[0].split()) > 1 or assess(extents[0]).destructive:
            yield extents


def _extents(rest: str, up_to_next: str) -> tuple[str, ...]:
    clause = _clause(rest)
    by_operands = program_in(rest.split(maxsplit=1)[0]) in _JUDGED_BY_OPERANDS
    goes_on = not by_operands and _OPTION.search(up_to_next[len(clause) :])
    return (clause, up_to_next) if goes_on else (clause,)


def _programs(line: str) -> Iterator[int]:
    for found in _WORD.finditer(line):
        word = found[0].rstrip(".:-+")
        program = program_in(word)
        before = line[max(0, found.start() - _LOOKED_BACK) : found.start()]
        after = line[found.start() + len(word) : found.end() + _LONGEST]
        if program is None or program in _NOT_HEADS or _SPOKEN_OF.match(after) or _GITS.search(before):
            continue
        if program not in _ALSO_VERBS or _is_told(before, after):
            yield found.start()


def _is_told(before: str, after: str) -> bool:
    """Of a word that is a verb as well: whether arguments follow it, or it ends what one is told to run."""
    if _LIKE_AN_ARGUMENT.match(after.lstrip(" \t")):
        return after[:1] in (" ", "\t")
    return not _clause(f"x{after}")[1:].strip(" '\")") and _TOLD.search(before) is not None


def _clause(text: str) -> str:
    for found in _CLAUSE.finditer(text):
        if found["end"]:
            text = text[: found.start()]
            break
    text = text.rstrip(" \t`'\"") if text.count("'") % 2 or text.count('"') % 2 else text.rstrip()
    return text.removesuffix(")") if "(" not in text else text
