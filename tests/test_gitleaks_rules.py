"""gitleaks' configuration as rules of ours: what it says of texts holds, what cannot be used is refused."""

from pathlib import Path

import pytest

from contextd.domain.errors import Misconfigured
from contextd.scrubbing.gitleaks_rules import chosen_rules, installed_rules, parsed_rules, rules_in
from contextd.scrubbing.rules import RULES
from contextd.scrubbing.scrubber import SecretScrubber

CONFIG = r"""
title = "ours"

[[allowlists]]
stopwords = ["harmless"]
paths = ['''\.png$''']

[[rules]]
id = "Acme Badge"
description = "a badge"
regex = '''(badge)-([a-z0-9]{12})'''
secretGroup = 2
entropy = 2.5
keywords = ["BADGE-"]
tags = ["acme"]

[[rules.allowlists]]
regexes = ['''^0000''']

[[rules.allowlists]]
condition = "AND"
regexes = ['''^1111''']
stopwords = ["k7q"]

[[rules.allowlists]]
regexTarget = "match"
regexes = ['''^badge-2222''']

[[rules]]
id = "acme-pin"
regex = '''\bpin:([0-9]{6})\b'''

[rules.allowlist]
regexes = ["123456"]

[[rules]]
id = "acme-file"
path = '''\.p12$'''
"""


def findings(text: str) -> dict[str, int]:
    return dict(SecretScrubber(parsed_rules(CONFIG, "ours")).scrub(text).findings)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see badge-k7qz2mxv9rtb", True),
        ("see badge-aaaaaaaaaaaa", False),
        ("see badge-0000mxv9rtbz", False),
        ("see badge-1111mxv9rtbw", True),
        ("see badge-1111mxvk7q9z", False),
        ("see badge-2222mxv9rtbz", False),
        ("see badge-harmless9rtb", False),
    ],
    ids=["secret", "entropy", "allowed", "one of two", "both of two", "by the match", "everywhere"],
)
def test_entropy_and_allowlists_decide_as_gitleaks_has_it(text: str, found: bool) -> None:
    assert findings(text) == ({"gitleaks-acme-badge": 1} if found else {})


def test_the_group_is_the_secret_and_the_rest_stays() -> None:
    scrubbed = SecretScrubber(parsed_rules(CONFIG, "ours")).scrub("see badge-k7qz2mxv9rtb")
    assert scrubbed.text.startswith("see badge-[REDACTED:gitleaks-acme-badge:")


def test_a_rule_without_keywords_runs_on_every_text() -> None:
    assert findings("open with pin:739184 please") == {"gitleaks-acme-pin": 1}
    assert findings("open with pin:123456 please") == {}


def test_a_rule_of_paths_alone_is_left_out() -> None:
    assert [rule.name for rule in parsed_rules(CONFIG, "ours")] == [
        "gitleaks-acme-badge",
        "gitleaks-acme-pin",
    ]


def test_they_stand_beside_ours_and_ours_names_what_both_find() -> None:
    theirs = '[[rules]]\nid = "github"\nregex = "ghp_[A-Za-z0-9]{36}"\nkeywords = ["ghp_"]\n'
    scrubber = SecretScrubber([*RULES, *parsed_rules(theirs, "theirs")])
    assert scrubber.scrub("ghp_" + "a1B2" * 9).findings == {"github-token": 1}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('[[rules]]\nid = "odd"\nregex = "("\nkeywords = ["odd"]', "rule odd"),
        ('[[rules]]\nid = "odd"\nregex = "größe"\nkeywords = ["odd"]', "rule odd"),
        ('[[rules]]\nid = "odd"\nregex = "(?<=a)b"\nkeywords = ["odd"]', "rule odd"),
        (
            '[[rules]]\nid = "odd"\nregex = "x"\n[[rules.allowlists]]\nregexes = ["["]',
            "rule odd, allowlist",
        ),
        ("rules = [", "not TOML"),
    ],
    ids=["pattern", "beyond ASCII", "look-behind", "allowlist", "no TOML"],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, names: str) -> None:
    (tmp_path / "odd.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Misconfigured) as refused:
        rules_in(tmp_path / "odd.toml")
    assert "odd.toml" in refused.value.problem
    assert names in refused.value.problem


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured):
        chosen_rules(tmp_path / "none.toml")


def test_the_extra_brings_its_rules_by_being_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "maskerlogger/config").mkdir(parents=True)
    (tmp_path / "maskerlogger/__init__.py").touch()
    (tmp_path / "maskerlogger/config/gitleaks.toml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [rule.name for rule in installed_rules()] == ["gitleaks-acme-badge", "gitleaks-acme-pin"]
    assert [rule.name for rule in chosen_rules(None)] == [rule.name for rule in installed_rules()]
