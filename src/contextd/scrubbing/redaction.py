"""Placeholders in the place of findings, and the account of them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from contextd.scrubbing.findings import Finding
from contextd.scrubbing.hiding import plain
from contextd.scrubbing.placeholders import placeholder


@dataclass(slots=True)
class Account:
    """What was redacted in one text."""

    keep_lines: bool = False
    findings: Counter[str] = field(default_factory=Counter)
    replaced: dict[str, str] = field(default_factory=dict)
    """Placeholder to what it stands for; empty once it stands for two."""

    def certain(self) -> dict[str, str]:
        return {mark: secret for mark, secret in self.replaced.items() if secret}


def redacted(
    text: str, found: Iterable[Finding], key: Callable[[], bytes], account: Account, marks: list[int]
) -> tuple[str, list[int]]:
    """The text with placeholders, and where the marks are in it. Only what is between them is counted."""
    parts: list[str] = []
    moved = list(marks)
    at = 0
    for finding in found:
        secret = text[finding.start : finding.end]
        cover = placeholder(finding.name, finding.known or plain(secret) or secret, key())
        if marks[0] <= finding.start and finding.end <= marks[1]:
            account.findings[finding.name] += 1
            account.replaced[cover] = secret if account.replaced.get(cover, secret) == secret else ""
        if account.keep_lines:
            cover += "\n" * secret.count("\n")
        parts += text[at : finding.start], cover
        at = finding.end
        growth = len(cover) - len(secret)
        moved = [new + growth if old >= at else new for old, new in zip(marks, moved, strict=True)]
    return "".join([*parts, text[at:]]), moved
