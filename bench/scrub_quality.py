"""What share of gitleaks' own samples the scrubber finds, with our rules alone and with gitleaks' beside.

    python bench/scrub_quality.py GITLEAKS [--seed N] [--rules TOML] [--clean FOLDER ...] [--missed]

GITLEAKS is a checkout of github.com/gitleaks/gitleaks; `go` makes the samples. A sample is *found* when
there is a finding in it, and *gone* when gitleaks' rule for it, read by contextd, finds nothing afterwards.
A clean folder's findings are counted a megabyte (10^6 bytes of text).
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from contextd.scrubbing.gitleaks_rules import PREFIX, chosen_rules, rules_in
from contextd.scrubbing.rules import RULES
from contextd.scrubbing.scrubber import SecretScrubber
from gitleaks_samples import Sample, samples

LARGEST = 4_000_000


def texts(folder: Path) -> Iterator[tuple[Path, str, int]]:
    """Files of text, with their size."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or ".git" in path.parts:
            continue
        raw = path.read_bytes()
        if len(raw) <= LARGEST and b"\0" not in raw[:4_096]:
            yield path, raw.decode("utf-8", "replace"), len(raw)


def row(
    name: str, scrubber: SecretScrubber, judges: Mapping[str, SecretScrubber], made: Sequence[Sample]
) -> str:
    found = gone = false = 0
    for sample in made:
        scrubbed = scrubber.scrub(sample.text)
        if not sample.secret:
            false += bool(scrubbed.findings)
            continue
        found += bool(scrubbed.findings)
        judge = judges.get(PREFIX + sample.rule)
        gone += bool(scrubbed.findings) if judge is None else not judge.scrub(scrubbed.text).findings
    true = sum(sample.secret for sample in made)
    return (
        f"| {name} | {found} of {true} ({found / true:.2%}) | {gone} of {true} ({gone / true:.2%})"
        f" | {false} of {len(made) - true} |"
    )


def missed(scrubber: SecretScrubber, made: Iterable[Sample]) -> Iterator[str]:
    rules = Counter(each.rule for each in made if each.secret and not scrubber.scrub(each.text).findings)
    return (f"{count:5} {rule}" for rule, count in rules.most_common())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("gitleaks", type=Path)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rules", type=Path, help="instead of those of the extra `rules`")
    options.add_argument("--clean", type=Path, nargs="*", default=[])
    options.add_argument("--missed", action="store_true")
    asked = options.parse_args()
    made = samples(asked.gitleaks, asked.seed)
    theirs = rules_in(asked.gitleaks / "config/gitleaks.toml")
    judges = {rule.name: SecretScrubber([rule]) for rule in theirs}
    scrubbers = {"ours alone": SecretScrubber()}
    if more := chosen_rules(asked.rules):
        scrubbers["with optional rules"] = SecretScrubber([*RULES, *more])
    print("| rules | found | gone | false samples found |\n| --- | --- | --- | --- |")
    for name, scrubber in scrubbers.items():
        print(row(name, scrubber, judges, made))
    if asked.missed:
        print(*missed(scrubbers["ours alone"], made), sep="\n")
    for folder in asked.clean:
        for name, scrubber in scrubbers.items():
            found: Counter[str] = Counter()
            size = 0
            for _, text, bytes_ in texts(folder):
                found.update(scrubber.scrub(text).findings)
                size += bytes_
            total = sum(found.values())
            print(f"{folder.name}, {name}: {total} in {size / 1e6:.1f} MB, {total / size * 1e6:.2f} a MB")


if __name__ == "__main__":
    main()
