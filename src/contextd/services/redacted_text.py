"""A file's text as it is shown: without its secrets, every line in its place, and the way back."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from contextd.domain.placeholders import placeholders_of, restored, rule_of
from contextd.domain.ports import Scrubber


@dataclass(frozen=True, slots=True)
class RedactedText:
    text: str
    secrets: Mapping[str, str] = field(repr=False)
    """Placeholder to what stands there. One that the file itself holds stands for itself."""
    exact: bool
    """Whether the secrets put back give the file's own text: not where invisible characters hid one."""

    def shown_in(self, part: str) -> dict[str, str]:
        """What the placeholders in a part of the text stand for: nothing, where it cannot be told."""
        return {mark: self.secrets.get(mark, "") for mark in placeholders_of(part)}

    def counted_in(self, part: str) -> Counter[str]:
        """How many secrets were taken out of a part, by rule."""
        found: Counter[str] = Counter()
        for mark, count in placeholders_of(part).items():
            if self.secrets.get(mark) != mark:
                found[rule_of(mark)] += count
        return found


def redacted(scrubber: Scrubber, text: str) -> RedactedText:
    scrubbed = scrubber.scrub(text, keep_lines=True)
    own = placeholders_of(text)
    secrets = {mark: secret for mark, secret in scrubbed.replaced.items() if mark not in own}
    secrets |= {mark: mark for mark in own if mark not in scrubbed.replaced}
    return RedactedText(scrubbed.text, secrets, restored(scrubbed.text, secrets) == text)
