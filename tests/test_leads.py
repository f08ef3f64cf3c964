"""Leads and questions: the language of an error counts, and a question asks about the cause."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contextd.domain.callers import Caller
from contextd.domain.fingerprints import read_error
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.services.error_languages import is_foreign, languages_of
from contextd.services.hypotheses import Hypothesis, Lead, Remedy
from contextd.services.leads import Circumstances, Findings, leads_from
from contextd.services.patterns import Action, Pattern, PatternPack
from contextd.services.questions import questions
from contextd.settings import RateLimit, Settings
from contextd.wiring import build, open_house
from running import Daemon, structured

HERE = Caller(session="tests")
PACK = PatternPack.shipped()
GO_PANIC = (
    "panic: runtime error: invalid memory address or nil pointer dereference\n"
    "[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x48f3a2]"
)
GO_TRACE = "goroutine 1 [running]:\nmain.(*Server).Handle(0x0)\n\t/app/server.go:42 +0x22"
PULL = 'Failed to pull image "registry.local/web:1.4": rpc error: code = NotFound desc = not found'


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def pipeline(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CallPipeline]:
    folder: Path = tmp_path_factory.mktemp("data")
    async with open_house(build(Settings(data_dir=folder, rate_limit=RateLimit(on=False)))) as house:
        yield pipeline_of(house)


async def diagnose(pipeline: CallPipeline, error: str, /, **more: Any) -> dict[str, Any]:
    return (await pipeline.call("troubleshoot", {"error_message": error, **more}, HERE)).data


def cause(id: str) -> str:
    pattern = PACK.get(id)
    assert pattern is not None
    return pattern.root_cause


def commands(answer: dict[str, Any]) -> str:
    return "\n".join(command for action in answer["recommended_actions"] for command in action["commands"])


# --- the language of the error --------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("trace", ["", GO_TRACE])
async def test_a_go_panic_gets_no_advice_for_c(pipeline: CallPipeline, trace: str) -> None:
    answer = await diagnose(pipeline, GO_PANIC, stack_trace=trace)
    assert answer["root_cause"] == cause("go.nil-pointer")
    assert "go vet" in commands(answer)
    assert "fsanitize" not in commands(answer)
    assert "gdb" not in commands(answer)


@pytest.mark.anyio
@pytest.mark.parametrize("category", [None, "runtime"])
async def test_when_the_right_language_is_answered_with_no_the_wrong_one_is_still_not_the_cause(
    pipeline: CallPipeline, category: str | None
) -> None:
    first = await diagnose(pipeline, GO_PANIC, mode="interactive", category=category)
    assert first["questions"][0]["name"] == "go.nil-pointer"
    assert "c.segfault" not in [question["name"] for question in first["questions"]]
    second = await diagnose(
        pipeline, GO_PANIC, session_id=first["session_id"], context={"go.nil-pointer": "no"}
    )
    assert cause("c.segfault") not in second["root_cause"]
    assert "fsanitize" not in commands(second)
    told = next(one for one in second["hypotheses"] if one["description"] == cause("c.segfault"))
    assert "it is of another language: the error is of go" in told["evidence"]


@pytest.mark.anyio
async def test_an_answer_of_yes_outweighs_the_language(pipeline: CallPipeline) -> None:
    answer = await diagnose(pipeline, GO_PANIC, context={"go.nil-pointer": "no", "c.segfault": "yes"})
    assert answer["root_cause"] == cause("c.segfault")


PYTHON = 'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in <module>\n    run()\n'
JAVA = "java.lang.IllegalStateException: x\n\tat com.acme.Api.get(Api.java:42)\n"
NODE = "Error: x\n    at run (/srv/app.js:10:5)\n    at node:internal/main/run_main_module:23:47\n"
RUST = "thread 'main' panicked at src/main.rs:4:5:\nboom\n"
RUBY = "app.rb:3:in 'run': boom (RuntimeError)\n"
CSHARP = (
    "Unhandled exception. System.InvalidOperationException: x\n   at Acme.Api.Get() in /src/Api.cs:line 4\n"
)
PHP = "PHP Fatal error:  Uncaught Exception: x in /srv/a.php:3\n"


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        (GO_PANIC, {"go"}),
        ("http: panic serving 10.0.0.1:80: runtime error: index out of range [1] with length 1", {"go"}),
        (PYTHON + "RuntimeError: x", {"python"}),
        (JAVA, {"java"}),
        (NODE, {"javascript"}),
        (RUST, {"rust"}),
        (RUBY, {"ruby"}),
        (CSHARP, {"csharp"}),
        (PHP, {"php"}),
        ("main.swift:3: Fatal error: Index out of range", {"swift"}),
        ("Segmentation fault (core dumped)", {"c"}),
        # One inside the other: both may be at fault.
        ("SIGSEGV: segmentation violation\nsignal arrived during cgo execution\n" + GO_PANIC, {"c", "go"}),
        (PYTHON + "py4j.Py4JJavaError: java.lang.OutOfMemoryError: Java heap space", {"java", "python"}),
        (PYTHON + "MemoryError: std::bad_alloc", {"c", "python"}),
        ("# A fatal error has been detected by the JRE:\n# SIGSEGV (0xb)\n# C  [libfoo.so+0x1]", {"c"}),
        # Not certain: nothing is pushed down.
        ("process exited with SIGSEGV", set()),
        ("connection refused", set()),
    ],
)
def test_the_languages_of_an_error_are_those_that_are_certain(text: str, languages: set[str]) -> None:
    assert languages_of(read_error(text)) == languages


def test_the_language_is_read_from_a_trace_beside_the_message() -> None:
    assert languages_of(read_error("it crashed with SIGSEGV", GO_TRACE)) == {"go"}


@pytest.mark.parametrize("text", [GO_PANIC, PYTHON, JAVA, NODE, RUST, RUBY, CSHARP, PHP])
def test_each_language_keeps_its_own_patterns_and_the_tools_of_all(text: str) -> None:
    languages = languages_of(read_error(text))
    names = {"csharp": "dotnet", "javascript": "node"}
    own = {names.get(language, language) for language in languages}
    foreign = {pattern.ecosystem for pattern in PACK if is_foreign(pattern, languages)}
    assert not own & foreign
    assert foreign <= {"c", "dotnet", "go", "java", "node", "php", "python", "ruby", "rust", "swift"}
    assert len(foreign) >= 7


@pytest.mark.parametrize(
    ("text", "id"),
    [
        (
            PYTHON + "ImportError: libGL.so.1: cannot open shared object file: No such file",
            "c.shared-library",
        ),
        (RUST + "/usr/bin/ld: cannot find -lssl: No such file or directory", "c.missing-library"),
        (PYTHON + "psycopg.errors.DeadlockDetected: deadlock detected", "postgres.deadlock"),
        (NODE + "connect ECONNREFUSED 127.0.0.1:5432", "network.connection-refused"),
    ],
)
def test_builds_packages_tools_and_databases_serve_every_language(text: str, id: str) -> None:
    findings = Findings(read_error(text), PACK.match(text), (), {}, {})
    lead = next(lead for lead in leads_from(findings, Circumstances({})) if lead.subjects == (id,))
    assert not any("another language" in line for line in lead.evidence)


@pytest.mark.parametrize("pattern", list(PACK), ids=lambda pattern: pattern.id)
def test_no_example_of_a_pattern_takes_it_for_foreign(pattern: Pattern) -> None:
    for example in pattern.examples:
        assert not is_foreign(pattern, languages_of(read_error(example)))


def test_a_pattern_that_somebody_saved_is_never_foreign() -> None:
    shipped = PACK.get("c.segfault")
    assert shipped is not None
    assert is_foreign(shipped, frozenset({"go"}))
    assert not is_foreign(replace(shipped, id="pat-shared-0123"), frozenset({"go"}))


# --- questions ------------------------------------------------------------------------


def a_lead(*actions: Action, subject: str = "zorblax.jam", strength: float = 0.9, **more: Any) -> Lead:
    return Lead(
        subjects=(subject,),
        description="The inlet is blocked.",
        category="resource",
        severity="high",
        strength=strength,
        verification_steps=("See it hum",),
        remedies=tuple(Remedy(action, subject, **more) for action in actions),
    )


def test_a_question_is_about_the_cause_and_never_about_the_fix(daemon: Daemon) -> None:
    answer = structured(daemon.session().call("troubleshoot", error_message=PULL, mode="interactive"))
    asked = next(one["question"] for one in answer["questions"] if one["name"] == "kubernetes.image-pull")
    assert asked.startswith(f"Is this the cause (yes or no)? {cause('kubernetes.image-pull')}")
    assert "To tell: Read the events and the secret `kubectl describe pod POD`" in asked
    assert "Successfully pulled" not in asked


@pytest.mark.anyio
async def test_a_single_clear_hypothesis_is_asked_to_be_confirmed_once(pipeline: CallPipeline) -> None:
    error = (
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."
    )
    first = await diagnose(pipeline, error, mode="interactive")
    assert (len(first["hypotheses"]), first["confidence"]) == (1, "high")
    assert [question["name"] for question in first["questions"]] == ["services.redis-oom"]
    yes = await diagnose(
        pipeline, error, session_id=first["session_id"], context={"services.redis-oom": "yes"}
    )
    assert yes["questions"] == []
    again = await diagnose(pipeline, error, mode="interactive", context={"services.redis-oom": "no"})
    assert again["questions"][0]["name"] == "recent_change"


@pytest.mark.parametrize(
    ("action", "named"),
    [
        (Action("Who holds the lock?", ("lsof FILE",), ""), True),
        (Action("See what is open", ("lsof FILE",), ""), True),
        (Action("If it is a script, see its first line", ("head -n 1 FILE",), ""), True),
        (Action("See what is open, then close it", ("kill PID",), ""), False),
        (Action("Turn it off.", ("zorblax off",), ""), False),
        (Action("See it go", ("rm -rf /var/lib/zorblax",), ""), False),
        (Action("See the manual", (), ""), False),
    ],
)
def test_only_what_looks_is_named_as_a_check(action: Action, named: bool) -> None:
    (asked, *_) = questions([Hypothesis(a_lead(action), 0.5)], {})
    assert ("To tell:" in asked.question) == named
    assert "See it hum" not in asked.question


def test_what_a_model_made_up_is_no_check() -> None:
    look = Action("Who holds the lock?", ("lsof FILE",), "")
    (asked, *_) = questions([Hypothesis(a_lead(look, guessed=True), 0.5)], {})
    assert "To tell:" not in asked.question


def test_what_is_far_fetched_is_not_asked_about() -> None:
    likely, far = a_lead(), a_lead(subject="zorblax.moon")
    asked = questions([Hypothesis(likely, 0.5), Hypothesis(far, 0.01)], {})
    assert [one.name for one in asked] == ["zorblax.jam", "recent_change", "environment"]
    assert questions([Hypothesis(far, 0.01)], {})[0].name == "zorblax.moon"


def test_a_clear_case_that_has_no_name_is_not_asked_about() -> None:
    nameless = Lead((), "The moon is full.", "unknown", "unknown", 0.9)
    assert questions([Hypothesis(nameless, 0.9), Hypothesis(a_lead(), 0.06)], {}) == []


WRITES = re.compile(
    r"(?<!\S)(?:add|apply|chmod|chown|create|createdb|grant|install|login|migrate|prune|pull|rename|restart|restore"
    r"|rm|rollback|set|set-url|setval|start|switch|tidy|update|usermod)(?!\S)|sed -i|journal_mode=|>>"
)


@pytest.mark.parametrize("pattern", list(PACK), ids=lambda pattern: pattern.id)
def test_no_check_of_the_pack_changes_anything(pattern: Pattern) -> None:
    lead = a_lead(*pattern.actions, subject=pattern.id)
    (asked, *_) = questions([Hypothesis(lead, 0.5)], {})
    _, _, check = asked.question.partition("To tell: ")
    told = " ".join(re.findall(r"`([^`]*)`", check))
    assert "--dry-run" in told or not WRITES.search(told)
