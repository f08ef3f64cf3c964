"""Rules out of a gitleaks configuration: any TOML that gitleaks itself would read.

What speaks of files and commits means nothing in a text and is left out, as are rules of paths alone.
A rule that cannot be used refuses the whole file: one left out in silence is a secret that gets out.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import re2

from contextd.domain.errors import Misconfigured
from contextd.scrubbing.detector import compiled
from contextd.scrubbing.rule import Rule
from contextd.scrubbing.values import entropy

PREFIX: Final = "gitleaks-"
_PACKAGE: Final = "maskerlogger"
"""Brought by the extra `rules`; carries gitleaks' own configuration."""
_WINDOW: Final = 4_096
_KEY_WINDOW: Final = 32_768
_ODD: Final = re.compile(r"[^a-z0-9_-]+")
_SETTING: Final = "CONTEXTD_SCRUB_RULES"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is no secret: by a pattern on the secret or the match, or by a word in the secret."""

    patterns: tuple[Any, ...]
    on_match: bool
    words: tuple[str, ...]
    all_of_them: bool

    def holds(self, match: str, secret: str) -> bool:
        target = match if self.on_match else secret
        lowered = secret.lower()
        answers = []
        if self.patterns:
            answers.append(any(pattern.search(target) for pattern in self.patterns))
        if self.words:
            answers.append(any(word in lowered for word in self.words))
        return bool(answers) and (all(answers) if self.all_of_them else any(answers))


def chosen_rules(path: Path | None) -> tuple[Rule, ...]:
    """Those of the file that the settings name; without one, those of the extra."""
    return installed_rules() if path is None else rules_in(path)


def installed_rules() -> tuple[Rule, ...]:
    """Those of the extra `rules`; none where it is not installed."""
    if find_spec(_PACKAGE) is None:
        return ()
    text = files(_PACKAGE).joinpath("config/gitleaks.toml").read_text(encoding="utf-8")
    return parsed_rules(text, _PACKAGE)


def rules_in(path: Path) -> tuple[Rule, ...]:
    """Those of this file. Raises Misconfigured."""
    try:
        return parsed_rules(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(
            f"the rules in {path.name} cannot be read ({type(error).__name__})",
            f"name a gitleaks TOML by {_SETTING}, or leave it out",
        ) from error


def parsed_rules(text: str, source: str) -> tuple[Rule, ...]:
    """Raises Misconfigured, which names the rule."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unusable(source, f"it is not TOML: {error}") from error
    everywhere = tuple(_allowed(table, source))
    return tuple(
        _rule(entry, everywhere, source)
        for entry in table.get("rules", ())
        if isinstance(entry, dict) and entry.get("regex")
    )


def _rule(entry: Mapping[str, Any], everywhere: tuple[Allowed, ...], source: str) -> Rule:
    id = str(entry.get("id") or "without id")
    where = f"{source}, rule {id}"
    try:
        keywords = tuple(dict.fromkeys(str(word).lower() for word in entry.get("keywords", ())))
        rule = Rule(
            name=(PREFIX + _ODD.sub("-", id.lower()))[:64],
            vendor="" if "generic" in id else "gitleaks",
            keywords=keywords,
            pattern=str(entry["regex"]),
            hits=(),
            misses=(),
            group=int(entry.get("secretGroup", 0)),
            window=_KEY_WINDOW if "-----" in str(entry["regex"]) else _WINDOW,
            judge=partial(
                _is_secret, float(entry.get("entropy", 0)), (*_allowed(entry, where), *everywhere)
            ),
            anywhere=not keywords,
        )
        compiled(rule)
    except (ValueError, TypeError) as error:
        raise _unusable(where, str(error)) from error
    return rule


def _is_secret(least: float, allowed: tuple[Allowed, ...], match: str, secret: str) -> bool:
    if least and entropy(secret) <= least:
        return False
    return not any(each.holds(match, secret) for each in allowed)


def _allowed(entry: Mapping[str, Any], where: str) -> Iterator[Allowed]:
    """Both spellings: one `[allowlist]`, or several `[[allowlists]]`."""
    one = entry.get("allowlist")
    for each in (*([one] if one else ()), *entry.get("allowlists", ())):
        together = str(each.get("condition", "OR")).upper() in ("AND", "&&")
        if together and (each.get("paths") or each.get("commits")):
            continue  # a text has neither, so that not all can hold
        try:
            patterns = tuple(re2.compile(pattern) for pattern in each.get("regexes", ()))
        except re2.error as error:
            raise _unusable(f"{where}, allowlist", str(error)) from error
        words = tuple(str(word).lower() for word in each.get("stopwords", ()))
        target = str(each.get("regexTarget", each.get("regex_target", "")))
        yield Allowed(patterns, target in ("match", "line"), words, together)


def _unusable(where: str, why: str) -> Misconfigured:
    return Misconfigured(f"{where}: {why}", f"mend it, or name another file by {_SETTING}")
