"""The pattern pack: every pattern by its own examples, then matching, loading and speed."""

import re
import statistics
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.domain.command_risk import assess
from contextd.services.patterns import (
    CATEGORIES,
    SCOPES,
    SEVERITIES,
    Pattern,
    PatternPack,
    parsed,
)

ROOT = Path(__file__).parent.parent
PACK = PatternPack.shipped()
PATTERNS = list(PACK)
FOLDER = ROOT / "src/contextd/services/pattern_pack"
every_pattern = pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)

KNOWN_DANGERS = {
    "kubectl delete deployment NAME --cascade=orphan",
    "sudo journalctl --vacuum-size=500M",
}
"""What the pack advises although it removes something. Anything else that turns up here is a mistake."""

CALM = (
    "INFO: Application startup complete.\nUvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
    "2024-05-01T10:00:00Z info http request method=GET path=/healthz status=200 duration=1.2ms",
    "PASS src/app.test.ts\nTests: 42 passed, 42 total\nSnapshots: 0 total\nTime: 3.1 s",
    "The cache holds a thousand entries; the oldest is evicted first. Killed time is not counted.",
    "Add a retry to the client, so that a timeout of the server does not reach the user.",
    "Compiling contextd v0.1.0\nFinished `dev` profile [unoptimized + debuginfo] target(s) in 2.31s",
    "def connect(self, host: str, port: int = 5432) -> Connection:\n    return Connection(host, port)",
    "Your branch is up to date with 'origin/main'.\n\nnothing to commit, working tree clean",
)

TOML = """
ecosystem = "zig"
[[pattern]]
id = "zig.leak"
category = "resource"
severity = "high"
error_pattern = "memory leaked"
keywords = ["memory address 0x"]
regex = 'memory address 0x[0-9a-f]+ leaked'
root_cause = "Nobody freed it."
solution = "Free it."
verification_steps = ["Run it again"]
tags = ["zig"]
examples = ["error(gpa): memory address 0x7f leaked:"]
"""


def best(text: str) -> set[str]:
    """The first match, and those as specific."""
    matches = PACK.match(text)
    return {pattern.id for pattern, score in matches if score == matches[0][1]}


def a_pattern(
    id: str = "own.thing", error_pattern: str = "the frobnicator is out of cheese", **more: object
) -> Pattern:
    return Pattern(
        **{  # type: ignore[arg-type] # what differs is given by the test
            "id": id,
            "ecosystem": "own",
            "category": "runtime",
            "severity": "low",
            "error_pattern": error_pattern,
            "root_cause": "It has none.",
            "solution": "Give it some.",
            "verification_steps": (),
            "actions": (),
            "tags": (),
            "examples": (),
            "misses": (),
            **more,
        }
    )


# --- the table ------------------------------------------------------------------------


@every_pattern
def test_a_pattern_is_the_best_match_of_its_examples_and_no_match_of_its_misses(pattern: Pattern) -> None:
    assert len(pattern.examples) >= 2
    for example in pattern.examples:
        assert pattern.id in best(example), PACK.match(example)
    for miss in pattern.misses:
        assert pattern.id not in {other.id for other, _ in PACK.match(miss)}


@every_pattern
def test_a_pattern_says_what_an_engineer_needs(pattern: Pattern) -> None:
    assert len(pattern.root_cause.split()) >= 8
    assert len(pattern.solution.split()) >= 8
    assert pattern.verification_steps
    assert pattern.tags
    assert 1 <= len(pattern.actions) <= 3
    for action in pattern.actions:
        assert action.description
        assert action.commands
        assert action.expected_outcome


def test_the_pack_is_large_and_covers_many_ecosystems() -> None:
    assert len(PACK) >= 150
    assert len({pattern.ecosystem for pattern in PACK}) >= 10
    assert {pattern.category for pattern in PACK} == set(CATEGORIES)
    assert {pattern.severity for pattern in PACK} == set(SEVERITIES)
    assert {pattern.scope for pattern in PACK} == set(SCOPES)


def test_no_two_patterns_share_an_example_or_a_name() -> None:
    examples = Counter(example for pattern in PACK for example in pattern.examples)
    assert [example for example, count in examples.items() if count > 1] == []
    shown = Counter(pattern.error_pattern for pattern in PACK)
    assert [name for name, count in shown.items() if count > 1] == []


def test_each_command_that_destroys_is_known_to_do_so() -> None:
    commands = {command for pattern in PACK for action in pattern.actions for command in action.commands}
    assert {command for command in commands if assess(command).destructive} == KNOWN_DANGERS


@pytest.mark.parametrize("text", CALM)
def test_text_without_an_error_matches_nothing(text: str) -> None:
    assert PACK.match(text) == []


# --- matching -------------------------------------------------------------------------


def test_the_more_specific_pattern_comes_first() -> None:
    matches = PACK.match(
        "psql: error: port 5432 failed: Connection refused\n\tIs the server running on that host"
    )
    assert [pattern.id for pattern, _ in matches][:2] == [
        "postgres.connection-refused",
        "network.connection-refused",
    ]
    scores = [score for _, score in matches]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)


def test_a_cause_is_found_in_a_long_stack_trace() -> None:
    frames = "".join(
        f"\tat com.acme.Layer{number}.call(Layer{number}.java:{number})\n" for number in range(400)
    )
    text = (
        f"java.lang.RuntimeException: failed\n{frames}Caused by: java.lang.NoSuchMethodError: 'void x()'\n"
    )
    assert best(text) == {"java.no-such-method"}


def test_colours_capitals_and_curly_quotes_do_not_hide_an_error() -> None:
    assert best("\x1b[31mfatal error: \x1b[1mconcurrent map \x1b[0mwrites") == {"go.concurrent-map"}
    assert best("PANIC: ASSIGNMENT TO ENTRY IN NIL MAP") == {"go.nil-map-write"}
    assert best("main.c:5: error: implicit declaration of function \u2018f\u2019") == {
        "c.implicit-declaration"
    }
    assert best("main.cpp:6:10: error: no match for \u2018operator<<\u2019") == {"c.no-matching-function"}


def test_an_empty_text_matches_nothing() -> None:
    assert PACK.match("") == []
    assert PACK.match("all is well") == []


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.one_of(st.sampled_from([example for each in PATTERNS for example in each.examples]), st.text())
    )
)
def test_any_text_is_matched_with_scores_between_zero_and_one(parts: list[str]) -> None:
    matches = PACK.match("\n".join(parts))
    assert all(0 < score < 1 for _, score in matches)
    assert len({pattern.id for pattern, _ in matches}) == len(matches)


def test_hostile_text_is_matched_quickly() -> None:
    everything = " ".join(word for pattern in PACK for word in pattern.keywords)
    texts = (
        everything * 10,
        "\n".join(example for pattern in PACK for example in pattern.examples) * 3,
        "TypeError: " * 6_000,
        "cannot import name '" * 4_000,
        "\x1b[31m" * 12_000,
        "a" * 60_000,
        "\u2019" * 60_000,
    )
    for text in texts:
        started = time.perf_counter()
        PACK.match(text[:60_000])
        assert time.perf_counter() - started < 0.5


def test_an_ordinary_error_is_matched_in_far_less_than_three_milliseconds() -> None:
    times = []
    for pattern in PATTERNS:
        started = time.perf_counter()
        PACK.match(pattern.examples[0] * 5)
        times.append(time.perf_counter() - started)
    assert statistics.median(times) < 0.003


# --- more patterns, and broken ones ---------------------------------------------------


def test_a_pattern_without_keywords_is_recognised_by_its_own_words() -> None:
    own = a_pattern(error_pattern="short\nThe Frobnicator is out of cheese")
    pack = PACK.with_patterns([own])
    assert len(pack) == len(PACK) + 1
    assert pack.get("own.thing") is own
    assert [pattern for pattern, _ in pack.match("12:00 error: the frobnicator is out of cheese!")] == [own]
    assert PACK.get("own.thing") is None
    assert PACK.match("the frobnicator is out of cheese") == []


def test_a_pattern_of_an_id_that_exists_replaces_it() -> None:
    mine = a_pattern(id="go.nil-map-write", solution="Ask Ada.")
    pack = PACK.with_patterns([mine])
    assert len(pack) == len(PACK)
    assert pack.get("go.nil-map-write") is mine


def test_a_pattern_of_too_few_letters_matches_nothing_rather_than_everything() -> None:
    assert PatternPack([a_pattern(error_pattern="e")]).match("error: e") == []
    assert PatternPack([]).match("error") == []


def test_a_file_becomes_patterns() -> None:
    (pattern,) = parsed("zig.toml", TOML)
    assert pattern.ecosystem == "zig"
    assert pattern.scope == "family"
    assert pattern.actions == ()
    assert PatternPack([pattern]).match(pattern.examples[0])[0][0] is pattern


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        ('"resource"', '"weather"', "category is one of configuration"),
        ('"high"', '"dire"', "severity is one of low"),
        ("0x[0-9a-f]+", "0x(", "the regex is not RE2"),
        ("zig.leak", "zag.leak", "begins with 'zig.'"),
        ("zig.leak", "Zig leak", "ids are lower-case"),
        ('"memory address 0x"', '"0x"', "keywords have at least"),
        ('severity = "high"', 'severity = "high"\nscope = "vague"', "scope is one of exact"),
        ('solution = "Free it."', "", "solution"),
        ('tags = ["zig"]', 'tags = ["zig"]\ncolour = "red"', "colour"),
        ('ecosystem = "zig"', "", "ecosystem"),
        ("[[pattern]]", "[[pattern]", "zig.toml"),
    ],
)
def test_a_broken_file_is_an_error_that_names_it(wrong: str, right: str, told: str) -> None:
    assert wrong in TOML
    with pytest.raises(ValueError, match=re.escape(told)) as error:
        parsed("zig.toml", TOML.replace(wrong, right, 1))
    assert str(error.value).startswith("zig.toml: ")


def test_a_regex_that_does_not_compile_is_refused_when_a_pack_is_made() -> None:
    with pytest.raises(ValueError, match=r"own\.thing: the regex is not RE2"):
        PatternPack([a_pattern(regex="(")])


# --- the page about it ----------------------------------------------------------------


def test_the_page_tells_the_vocabulary_and_every_ecosystem() -> None:
    page = (ROOT / "docs/patterns.md").read_text(encoding="utf-8")
    assert f"{len(PACK)} patterns ship" in page
    words = {*CATEGORIES, *SEVERITIES, *SCOPES, *(path.stem for path in FOLDER.glob("*.toml"))}
    assert {word for word in words if f"`{word}`" not in page} == set()


def test_the_pattern_of_its_page_works_as_written() -> None:
    page = (ROOT / "docs/patterns.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (pattern,) = parsed("example.toml", text)
    pack = PACK.with_patterns([pattern])
    assert all(pack.match(example)[0][0] is pattern for example in pattern.examples)
    assert not any(pattern in dict(pack.match(miss)) for miss in pattern.misses)
    assert pattern.actions


# --- commands are for everybody's case ------------------------------------------------

COMMANDS = [
    (pattern.id, command)
    for pattern in PATTERNS
    for action in pattern.actions
    for command in action.commands
]

INVENTED = re.compile(
    r"""(?x)
    (?<![\w.-])(?: app | bar | company | customers? | foo | invoices? | main | myapp | orders | prod | shop
        | staging | users? | web )(?!\w)
    | :\d{4,5}\b | \s-[pP]\s\d+ | \b(?:acme|example)\b | git@[a-z]
    """
)
"""Names that the author of a pattern made up, or took from the example at hand."""
OF_EVERYBODY = ("mysql.user", "select user,")

FILE = re.compile(
    r"(?<![\w*./-])(?:[\w./-]*/)?([a-z][\w-]*\.(?:c|csv|db|jar|js|log|php|py|rb|sh|sql|ya?ml))\b"
)
FILES_OF_EVERYBODY = {"console.log", "copy.db", "error.log", "kafka-topics.sh", "manage.py", "recovered.db"}

TABLE = re.compile(r"\b(?:from|join|into|describe|grant \S+ on) ([a-z][\w.]*)")
CATALOGUES = ("information_schema.", "mysql.", "pg_", "sys.")


@pytest.mark.parametrize(("id", "command"), COMMANDS)
def test_what_depends_on_the_case_is_a_word_in_capitals(id: str, command: str) -> None:
    plain = command
    for known in OF_EVERYBODY:
        plain = plain.replace(known, "")
    assert INVENTED.findall(plain) == []
    assert set(FILE.findall(plain)) <= FILES_OF_EVERYBODY
    if re.match(r"(?:sudo )?(?:-u postgres )?(?:psql|mysql|sqlite3) ", command):
        assert [name for name in TABLE.findall(plain) if not name.startswith(CATALOGUES)] == []


@pytest.mark.parametrize(
    "command",
    [
        'psql -c "select max(id) from orders"',
        "mysql -e 'describe shop.things'",
        "sqlite3 app.db .schema",
        "ss -ltnp 'sport = :8080'",
        "pg_isready -h HOST -p 5432",
        "sed -i 's/x//' run.sh",
        "ssh -T git@github.com",
        "curl https://api.acme.io/v1/me",
        "docker build -t app .",
        "git log origin/main",
    ],
)
def test_an_invented_name_would_be_noticed(command: str) -> None:
    named = [name for name in TABLE.findall(command) if not name.startswith(CATALOGUES)]
    assert INVENTED.search(command) or set(FILE.findall(command)) - FILES_OF_EVERYBODY or named


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("what():  std::bad_alloc", "c.bad-alloc"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 1.5 GiB", "python.cuda-out-of-memory"),
        ("Topic invoices not present in metadata after 60000 ms.", "services.kafka-topic-missing"),
        ("main.swift:3:8: error: no such module 'Alamofire'", "swift.no-such-module"),
        (
            "go: git.corp.net/a/b@v1.0.0: reading https://proxy.golang.org/git.corp.net/a/b/@v/v1.0.0.mod: "
            "410 Gone",
            "go.private-module",
        ),
        (
            "go: module git.corp.net/a/b: git ls-remote -q origin in /go/vcs/ab: exit status 128:"
            "\n\tfatal: could not read Username for 'https://git.corp.net': terminal prompts disabled",
            "go.private-module",
        ),
    ],
)
def test_an_error_that_people_meet_often_is_known(text: str, id: str) -> None:
    assert best(text) == {id}


def test_a_private_go_module_is_advised_to_be_named_private() -> None:
    pattern = PACK.get("go.private-module")
    assert pattern is not None
    assert any("GOPRIVATE" in command for action in pattern.actions for command in action.commands)
