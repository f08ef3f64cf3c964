"""A story: an error is diagnosed, fixed and kept; it meets another project, is found and verified; the
figures show it. Told by two agents over MCP, without an LLM."""

from collections.abc import Iterator

import pytest

from running import Daemon, Session, running_daemon, structured

FIRST = """Traceback (most recent call last):
  File "/home/ann/shop/app/orders.py", line 88, in place
    pool.run(statement, values)
  File "/home/ann/shop/.venv/lib/site-packages/poolside/pool.py", line 41, in run
    cursor.execute(statement, values)
sqlite3.OperationalError: database is locked (attempt 3, worker 4411)"""
LATER = """Traceback (most recent call last):
  File "/srv/build/7f3a/warehouse/stock.py", line 12, in count
    pool.run(statement, values)
  File "/srv/build/7f3a/env/lib/site-packages/poolside/pool.py", line 39, in run
    cursor.execute(statement, values)
sqlite3.OperationalError: database is locked (attempt 9, worker 17)"""
FIX = "Open the file with a busy timeout and begin transactions IMMEDIATE: PRAGMA busy_timeout = 5000"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running_daemon(tmp_path_factory.mktemp("story"), CONTEXTD_RATE_LIMIT="off") as daemon:
        yield daemon


def error_line(text: str) -> str:
    return text.splitlines()[-1]


def test_an_agent_that_failed_yesterday_does_not_fail_the_same_way_today(world: Daemon) -> None:
    ann, bob = world.session(), world.session()
    _ann_meets_the_error_and_keeps_what_helped(ann)
    _bob_meets_it_in_another_project_and_is_told(bob)
    _what_they_learned_is_found_by_whoever_comes_next(world.session())
    _the_figures_show_it(world.session())


def _ann_meets_the_error_and_keeps_what_helped(ann: Session) -> None:
    diagnosis = structured(ann.call("troubleshoot", error_message=error_line(FIRST), stack_trace=FIRST))
    assert diagnosis["llm"].startswith("off")
    assert diagnosis["hypotheses"]
    assert sum(each["probability"] for each in diagnosis["hypotheses"]) <= 1
    assert structured(ann.call("remediation_search", error_message=error_line(FIRST)))["total"] == 0
    saved = structured(
        ann.call(
            "remediation_save",
            error_message=error_line(FIRST),
            error_type="OperationalError",
            solution=FIX,
            stack_trace=FIRST,
            project_path="/home/ann/shop",
            tags=["sqlite"],
        )
    )
    assert saved["merged"] is False
    stored = structured(
        ann.call(
            "memory_store",
            project_path="/home/ann/shop",
            title="SQLite writers must wait for each other",
            content="Several workers write to one file. A busy timeout and IMMEDIATE transactions end the"
            " 'database is locked' failures; retrying in Python did not.",
            outcome="success",
            tags=["sqlite"],
        )
    )
    assert stored["confidence"] == pytest.approx(0.8)


def _bob_meets_it_in_another_project_and_is_told(bob: Session) -> None:
    found = structured(
        bob.call("remediation_search", error_message=error_line(LATER), stack_trace=LATER, tags=["sqlite"])
    )
    best = found["results"][0]
    assert best["solution"] == FIX
    assert best["error_type_match"] is True
    assert best["stack_trace_match"] is True
    assert best["match_score"] > 0.9
    told = structured(
        bob.call("troubleshoot", error_message=error_line(LATER), stack_trace=LATER, mode="guided")
    )
    assert any(issue["solution"] == FIX for issue in told["similar_issues"])
    fixed = structured(
        bob.call(
            "troubleshoot",
            error_message=error_line(LATER),
            session_id=told["session_id"],
            mode="guided",
            outcome="fixed",
        )
    )
    assert fixed["session_id"] == told["session_id"]
    again = structured(
        bob.call(
            "remediation_save", error_message=error_line(LATER), error_type="OperationalError", solution=FIX
        )
    )
    assert (again["merged"], again["seen_count"]) == (True, 2)


def _what_they_learned_is_found_by_whoever_comes_next(eve: Session) -> None:
    project = "/home/ann/shop"
    hits = structured(eve.call("memory_search", query="database is locked", project_path=project))[
        "results"
    ]
    assert [hit["title"] for hit in hits] == ["SQLite writers must wait for each other"]
    helped = structured(eve.call("memory_feedback", id=hits[0]["id"], helpful=True))
    assert helped["confidence"] > hits[0]["confidence"]
    other = structured(eve.call("memory_search", query="database is locked", project_path="/srv/warehouse"))
    assert other["results"] == []


def _the_figures_show_it(eve: Session) -> None:
    figures = structured(eve.call("analytics_get", period="daily"))
    used = {feature["feature"]: feature["count"] for feature in figures["top_features"]}
    assert used["troubleshoot"] == 3
    assert used["remediation_search"] == 2
    assert used["remediation_save"] == 2
    assert figures["search_precision"] == 1.0
    assert figures["performance"]["overall_success_rate"] == 1.0
    assert figures["total_sessions"] == 3
    assert figures["total_time_saved_min"] is None
