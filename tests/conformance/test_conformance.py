"""Every server scenario of the official suite, for each version that it covers.

Some scenarios call tools, prompts and resources that only a fixture can have: they run against
`fixture_server`, which is the daemon with these beside its own. The others also run against the
daemon exactly as `contextd serve` starts it.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

import running
from conformance.suite import Check, Findings, Suite
from running import Daemon, running_daemon

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]

NEED_NO_FIXTURE = {
    "caching",
    "completion-complete",
    "dns-rebinding-protection",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "ping",
    "prompts-list",
    "resources-list",
    "sep-2164-resource-not-found",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-stateless",
    "tools-list",
}
ANNOUNCED_NOT_AT_ALL = {
    "sep-2575-server-honors-notification-filter",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-subscription-ack",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
    "sep-2575-server-tags-subscription-id",
}
"""Skipped for the product as it is: its lists do not change while it runs, so it offers no such stream."""


@pytest.fixture(scope="module", params=["2025-06-18", "2025-11-25", "2026-07-28"])
def suite(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return Suite(request.param, tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def fixture_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    def fixture_command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "conformance.fixture_server", *arguments]

    tests = str(Path(__file__).parent.parent)
    with ExitStack() as stack:
        with patch.object(running, "command", fixture_command):
            daemon = stack.enter_context(
                running_daemon(
                    tmp_path_factory.mktemp("fixture"), CONTEXTD_RATE_LIMIT="off", PYTHONPATH=tests
                )
            )
        yield daemon


@pytest.fixture(scope="module")
def beside_fixtures(suite: Suite, fixture_daemon: Daemon) -> Findings:
    return suite.run(fixture_daemon.mcp)


@pytest.fixture(scope="module")
def as_it_is(suite: Suite, daemon: Daemon) -> Findings:
    return suite.run(daemon.mcp)


def test_every_scenario_passes_beside_the_fixtures(suite: Suite, beside_fixtures: Findings) -> None:
    assert beside_fixtures.exit_status == 0, beside_fixtures.says
    assert {check.scenario for check in beside_fixtures.checks} == suite.scenarios()
    assert [check for check in beside_fixtures.checks if check.status not in ("SUCCESS", "INFO")] == []
    _report("beside the fixtures", suite, beside_fixtures.checks)


def test_no_scenario_passes_because_its_fixture_is_missing(suite: Suite, beside_fixtures: Findings) -> None:
    """To the suite, a tool that is not there also rejects bad input, and JSON needs no resuming."""
    checks = beside_fixtures.checks
    assert [check for check in checks if "Unknown tool" in check.details + check.says] == []
    assert [check for check in checks if "Unknown prompt" in check.details + check.says] == []
    resumed = {check.id: check.status for check in checks}.get("server-sse-disconnect-resume")
    assert resumed == ("SUCCESS" if "server-sse-polling" in suite.scenarios() else None)


def test_the_product_as_it_is_passes_what_needs_no_fixture(suite: Suite, as_it_is: Findings) -> None:
    generic = [c for c in as_it_is.checks if c.scenario in NEED_NO_FIXTURE and not _wants_a_fixture(c)]
    assert {check.scenario for check in generic} == suite.scenarios() & NEED_NO_FIXTURE
    skipped = {check.id for check in generic if check.status == "SKIPPED"}
    assert skipped <= ANNOUNCED_NOT_AT_ALL
    assert [c for c in generic if c.status not in ("SUCCESS", "INFO", "SKIPPED")] == []
    _report("as it is", suite, generic)


def test_all_that_the_product_sends_is_valid_by_the_schema(as_it_is: Findings) -> None:
    wire = [check for check in as_it_is.checks if check.id.startswith("wire-schema")]
    assert wire
    assert [check for check in wire if check.status != "SUCCESS"] == []


def _wants_a_fixture(check: Check) -> bool:
    return check.says.startswith("Not testable: server does not list the diagnostic tool")


def _report(how: str, suite: Suite, checks: list[Check]) -> None:
    """Shown by `pytest -s`."""
    counted = [check for check in checks if check.status in ("SUCCESS", "FAILURE")]
    passed = sum(check.status == "SUCCESS" for check in counted)
    scenarios = len({check.scenario for check in checks})
    print(f"{suite.version} {how}: {passed}/{len(counted)} checks in {scenarios} scenarios")
