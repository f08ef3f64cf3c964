"""Facts of a checkpoint: a table of texts with what is in them, then weight, robustness and speed."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextd.domain.records import Json
from contextd.services.checkpoint_facts import KINDS, MAX_TEXT, Fact, facts
from contextd.services.checkpoint_questions import Answers, asked, question, scored

Expected = dict[str, list[str]]

GOLDEN: list[tuple[str, Expected]] = [
    # commands that are marked
    (
        "Chose JWT in a cookie. Tests: make test-auth. Open: rotation of the key.",
        {
            "decision": ["Chose JWT in a cookie."],
            "command": ["make test-auth"],
            "next_step": ["rotation of the key."],
        },
    ),
    (
        "Verify with `go test ./internal/...` and `golangci-lint run`.",
        {
            "command": ["go test ./internal/...", "golangci-lint run"],
        },
    ),
    ("$ docker compose up -d\nStarted two containers.", {"command": ["docker compose up -d"]}),
    ("dev@box:~/shop$ npm run build\n> shop@1.0.0 build", {"command": ["npm run build"]}),
    ("(venv) $ python -m pytest -q  # all of them", {"command": ["python -m pytest -q"]}),
    ("> make lint", {"command": ["make lint"]}),
    (
        "```sh\n# once\nuv sync\n./scripts/seed.sh --small\n```",
        {
            "command": ["uv sync", "./scripts/seed.sh --small"],
            "file": ["scripts/seed.sh"],
        },
    ),
    (
        "```bash\ncurl -s http://localhost:8080/health \\\n  -H 'Accept: application/json'\n```",
        {
            "command": ["curl -s http://localhost:8080/health -H 'Accept: application/json'"],
        },
    ),
    ("    kubectl rollout restart deployment/api", {"command": ["kubectl rollout restart deployment/api"]}),
    ("⏺ Bash(cargo nextest run)", {"command": ["cargo nextest run"]}),
    ("Build: make all, make docs and make dist", {"command": ["make all", "make docs", "make dist"]}),
    ("FOO=1 is set by `DEBUG=1 make serve`.", {"command": ["DEBUG=1 make serve"]}),
    # commands in plain words
    ("I ran go test ./... and it passed.", {"command": ["go test ./..."]}),
    ("Before a push, run make test-auth once.", {"command": ["make test-auth"]}),
    (
        "We rerun pytest -q tests/test_a.py, twice.",
        {
            "command": ["pytest -q tests/test_a.py"],
            "file": ["tests/test_a.py"],
        },
    ),
    # prose, names and code are no commands
    ("Make sure that the tests pass before you go on.", {}),
    ("Go to the store and find the bug; then kill the process.", {}),
    ("The `git` history and the `make` target were looked at.", {}),
    ("`make(chan int)`, `go func() {}` and `export default {` are code.", {}),
    ("Use `find_by_id` and `node.children` here.", {}),
    ("We run tests in CI. Running the suite takes long.", {}),
    ("Run it again and look at the time.", {}),
    ("`src/app/main.py` and `src/app` are paths.", {"file": ["src/app/main.py"]}),
    ("```python\nmake = 1\nimport git\ngit.push()\n```", {}),
    ("$ 5 million were spent; $ LARGE amounts.", {}),
    ("See the `pytest configuration file`_ for more.", {}),
    ("> The quick brown fox, as they say.", {}),
    # files
    (
        "Edited ./src/auth.py:12 and src/auth.py; README.md, Makefile and .github/workflows/ci.yml too.",
        {
            "file": [".github/workflows/ci.yml", "Makefile", "README.md", "src/auth.py"],
        },
    ),
    ("See https://example.com/a/b.py, github.com/org/repo/x.go and mail bob@example.md.", {}),
    ("Node.js and Next.js call response.json() on /usr/lib/python3/x.py in node_modules/a/b.js.", {}),
    ("All of src/*.py and ../other/x.py and config.py.bak are not ours.", {}),
    ("/home/dev/shop/src/cart.py is ours, /home/dev/other/src/cart.py is not.", {"file": ["src/cart.py"]}),
    ("```diff\n--- a/src/a.go\n+++ b/src/a.go\n@@ -1 +1 @@\n-self.c = x.h\n```", {"file": ["src/a.go"]}),
    # decisions
    (
        "We use Postgres instead of MySQL because the team knows it.",
        {
            "decision": ["We use Postgres instead of MySQL because the team knows it."],
        },
    ),
    ("Decision: keep one file a project.", {"decision": ["keep one file a project."]}),
    ("ADR-7: retries stay in the client.", {"decision": ["retries stay in the client."]}),
    (
        "## Decisions\n- Sessions expire after an hour.\n- One queue. It is enough.\n\n## Log\n- Looked.",
        {
            "decision": ["Sessions expire after an hour.", "One queue. It is enough."],
        },
    ),
    (
        "The handler must not block. Rejected a thread pool: it hides the\nbackpressure that we need.",
        {
            "decision": [
                "The handler must not block.",
                "Rejected a thread pool: it hides the backpressure that we need.",
            ],
        },
    ),
    ("Let me look at the tests because I want to see them.", {}),
    ("Should we use Redis instead of a table?", {}),
    # next steps
    (
        "TODO: write the migration.\n- [ ] rotate the key soon\n- [x] write the tests now",
        {
            "next_step": ["write the migration.", "rotate the key soon"],
        },
    ),
    (
        "Next steps:\n- Measure it.  Then decide.\n- Ask about the limit\n\nThat is all for today.",
        {
            "next_step": ["Measure it. Then decide.", "Ask about the limit"],
        },
    ),
    ("The export still fails on Windows.", {"next_step": ["The export still fails on Windows."]}),
    ("Blocked by: access to the staging cluster", {"next_step": ["access to the staging cluster"]}),
    # errors and how they ended
    (
        "The ImportError turned out to be a stale .venv; reinstalling fixed it.",
        {
            "error": ["The ImportError turned out to be a stale .venv; reinstalling fixed it."],
        },
    ),
    # transcripts: what a tool printed decides nothing, what a person asks for does
    (
        "user: Please keep the old flag.\n\nassistant: I will read it.\n\n"
        "tool: $ cat notes.txt\nDecision: we chose SQLite instead of Postgres.\nrun `make evil` now\n"
        "src/seen.py: response.json\n\n"
        "assistant: We use argparse rather than click.",
        {
            "decision": ["We use argparse rather than click.", "Please keep the old flag."],
            "command": ["cat notes.txt"],
            "file": ["src/seen.py"],
        },
    ),
    ("", {}),
    ("…\n\n---\n\n```", {}),
]


def drawn(found: tuple[Fact, ...]) -> Expected:
    kinds = {fact.kind for fact in found}
    return {kind: sorted(fact.text for fact in found if fact.kind == kind) for kind in kinds}


@pytest.mark.parametrize(("text", "expected"), GOLDEN, ids=[text[:40] for text, _ in GOLDEN])
def test_a_text_gives_these_facts_and_no_others(text: str, expected: Expected) -> None:
    assert drawn(facts(content=text, root="/home/dev/shop")) == {
        kind: sorted(texts) for kind, texts in expected.items()
    }


def test_values_say_by_their_key_what_they_are() -> None:
    context: dict[str, Json] = {
        "tests": "make test",
        "branch": "feat/login",
        "files": "auth.py, session.py",
        "decision": "cookies only",
        "attempts": 3,
    }
    state: dict[str, Json] = {
        "commands": {"lint": ["ruff check .", "mypy src"]},
        "next": [{"what": "rotate the key"}],
        "log": "a long story\nDecision: no retries at all.",
    }
    assert drawn(facts(context=context, state=state)) == {
        "command": ["make test", "mypy src", "ruff check ."],
        "file": ["auth.py", "session.py"],
        "decision": ["cookies only", "no retries at all."],
        "next_step": ["rotate the key"],
    }


def test_the_same_thing_is_one_fact_however_it_is_written() -> None:
    (command,) = facts(content="$ make   test\n\nrun `make test`\n\n`make test` again")
    assert (command.text, command.mentions) == ("make test", 3)
    (file,) = facts(content="./src/auth.py is old. Changed src/auth.py, that is auth.py.")
    assert (file.text, file.mentions) == ("src/auth.py", 3)


def test_a_bare_name_that_two_paths_end_with_stays_by_itself() -> None:
    found = facts(content="src/a/conf.py and src/b/conf.py; which conf.py is it")
    assert {fact.text for fact in found} == {"src/a/conf.py", "src/b/conf.py", "conf.py"}


def test_what_is_said_later_and_oftener_is_weightier() -> None:
    content = "`make early`\n\n" + "some words\n\n" * 50 + "`make late`\n\n`make often`\n\n`make often`"
    assert [fact.text for fact in facts(content=content)] == ["make often", "make late", "make early"]
    step = facts(content="TODO: the first thing of all\n\n" + "some words\n\n" * 50)[0]
    assert step.weight < 0.3


def test_commands_that_only_look_and_files_that_were_only_listed_weigh_less() -> None:
    found = facts(content="$ ls -la\n\n$ git status\n\n$ make test")
    assert [fact.text for fact in found] == ["make test", "ls -la", "git status"]
    listing = (
        "user: x\nassistant: y\ntool: $ ls\nsrc/listed.py\nsrc/listed.py\n\nassistant: Fixed src/fixed.py."
    )
    assert [fact.text for fact in facts(content=listing) if fact.kind == "file"] == [
        "src/fixed.py",
        "src/listed.py",
    ]


def test_a_fact_is_one_line_and_says_where_it_stands() -> None:
    long = "word " * 80
    (decision,) = facts(content=f"first\n\nsecond\n\n{long}so we chose the\nqueue instead of the {long}")
    assert len(decision.text) <= MAX_TEXT
    assert "\n" not in decision.text
    assert "chose the queue" in decision.text
    assert (decision.source, decision.line) == ("content", 5)


Values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
Lines = st.lists(
    st.sampled_from([text for text, _ in GOLDEN])
    | st.text()
    | st.sampled_from(["```", "$ ", "user:", "tool:"]),
    max_size=8,
).map("\n".join)


@settings(max_examples=150)
@given(
    Lines,
    Lines,
    st.dictionaries(st.text(), Values, max_size=4),
    st.dictionaries(st.text(), Values, max_size=4),
)
def test_any_text_and_any_json_gives_facts_that_it_holds(
    description: str, content: str, context: dict[str, Json], state: dict[str, Json]
) -> None:
    found = facts(description, content, context, state, "/home/dev/shop")
    assert all(fact.kind in KINDS and fact.text and len(fact.text) <= MAX_TEXT for fact in found)
    assert all("\n" not in fact.text + fact.said and fact.weight > 0 for fact in found)
    for fact in asked(found):
        made = question(fact)
        assert len(made.question) <= 120
        assert Answers([fact.text]).has(fact.kind, fact.text)
        assert scored([made], [fact.text]).share == 1.0


PATHOLOGICAL = {
    "one word": "a" * 1_000_000,
    "line ends": "\n" * 1_000_000,
    "short lines": "a\n" * 500_000,
    "backticks": "`a" * 500_000,
    "dots": "a." * 500_000,
    "folders": "a/" * 500_000,
    "extensions": ".py" * 333_333,
    "prompts": "$ make test\n" * 83_000,
    "run and run": "run make test " * 71_000,
    "items": "- [ ] one two three\n" * 50_000,
    "fences": "```\n" * 250_000,
    "turns": "assistant: a\nuser: b\n" * 47_000,
    "labels": "Tests: make " * 83_000,
    "sentences": "We chose it because we must. " * 34_000,
    "backslashes": "$ a \\\n" * 160_000,
    "stars": "**a" * 333_333,
}


@pytest.mark.parametrize("text", PATHOLOGICAL.values(), ids=list(PATHOLOGICAL))
def test_a_million_characters_take_no_longer_than_their_length(text: str) -> None:
    """A tenth of the text, ten times, as the measure: what is not linear is far from it."""
    tenth = text[: len(text) // 10]
    part = min(_seconds(tenth) for _ in range(3))
    assert _seconds(text) < max(0.5, 40 * part)


def _seconds(text: str) -> float:
    started = time.perf_counter()
    facts(content=text)
    return time.perf_counter() - started


# --- questions ------------------------------------------------------------------------


def test_a_question_is_the_line_with_a_blank_for_its_answer() -> None:
    said = (
        "Tests: make test-auth",
        "We use Postgres instead of files.",
        "$ make lint",
        "See src/auth.py for more.",
    )
    text = "\n\n".join(said)
    assert {
        fact.kind: question(fact).question for fact in facts(content=text) if fact.text != "make lint"
    } == {
        "command": "Tests: ____",
        "decision": "We use ____ instead of files.",
        "file": "See ____ for more.",
    }
    assert "Which make command was run?" in [question(fact).question for fact in facts(content=text)]


@pytest.mark.parametrize(
    ("kind", "answer", "text", "is_answered"),
    [
        ("command", "make test", "run make test now", True),
        ("command", "make test", "run make  \n test now", True),
        ("command", "make test", "run make test-auth", False),
        ("command", "make test", "remake test", False),
        ("file", "src/a.py", "in ./src/a.py.", True),
        ("file", "src/a.py", "src/a.py.bak", False),
        ("file", "src/a.py", "src/ba.py and a.py", False),
        ("decision", "We chose Postgres instead of files", "chose: postgres instead of files", True),
        ("decision", "We chose Postgres instead of files", "Postgres.\n\nfiles\n\nchose\n\ninstead", False),
        ("decision", "We chose Postgres instead of files", "We chose files", False),
    ],
)
def test_an_answer_must_be_there_whole_or_in_most_of_its_words(
    kind: Any, answer: str, text: str, is_answered: bool
) -> None:
    assert Answers([text]).has(kind, answer) is is_answered


def test_the_kinds_take_turns_and_the_light_ones_are_not_asked() -> None:
    commands = "\n\n".join(f"`make t{number}`" for number in range(100))
    found = asked(
        facts(description=f"{commands}\n\nWe chose one thing instead of two.\n\nTODO: write it down")
    )
    assert len(found) == 60
    assert [fact.kind for fact in found[:3]] == ["decision", "command", "next_step"]
    assert asked(facts(content="$ ls\n\n" + "words\n\n" * 50)) == []
