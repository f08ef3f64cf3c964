"""A story: an agent explores a real repository, this one, in branches. Its own window holds summaries
alone, the daemon is killed in between, and everything that was read can be read again."""

import json
import re
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contextd.adapters.tokens import O200kCounter
from running import Daemon, Session, running_daemon, structured

COUNT = O200kCounter().count
SOURCE = Path(__file__).parent.parent / "src" / "contextd"
WINDOW = 1_500
"""What the parent may spend on all of it."""
SUBTASKS = {
    "Find how a search of memories is ranked": ("memories ranked by doubt and stale anchors", "relevance"),
    "Find how secrets are scrubbed": ("scrub secrets from json strings", "scrub_json"),
    "Find how a write becomes durable": ("writer thread commit durable sqlite", "swap"),
}


@dataclass
class Agent:
    """Counts what reaches its own window, and what reached its branches."""

    session: Session
    window: int = 0
    branches: int = 0
    summaries: list[str] = field(default_factory=list)

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        message = self.session.call(tool, **arguments)
        text = message["result"]["content"][0]["text"]
        if "branch_id" in arguments and tool != "return":
            self.branches += COUNT(text)
        else:
            self.window += COUNT(text)
        return structured(message)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of this repository, large enough to fill a window."""
    root = tmp_path_factory.mktemp("project") / "contextd"
    for room in ("domain", "services", "scrubbing", "adapters/sqlite"):
        shutil.copytree(SOURCE / room, root / room, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def explore(agent: Agent, branch_id: str, project: Path, query: str, symbol: str) -> str:
    """Search, follow a symbol, read a text whole: what an agent does, on the branch's bill."""
    found = agent.call(
        "search_code", path=str(project), query=query, limit=6, branch_id=branch_id, token_budget=4_000
    )
    names = [hit["symbol"]["name"] for hit in found["results"]]
    files = [hit["file"]["path"] for hit in found["results"]]
    if found.get("refs"):
        agent.call("ref_get", ref=found["refs"][0], branch_id=branch_id, token_budget=2_000)
    looked = agent.call("symbol_lookup", path=str(project), symbol=symbol, branch_id=branch_id)
    assert looked["definitions"], symbol
    where = looked["definitions"][0]["file"]
    return f"Look at {files[0]} ({names[0]}) and {files[1]}; {symbol} is in {where}."


def test_a_window_holds_summaries_while_branches_hold_the_reading(data_dir: Path, project: Path) -> None:
    with running_daemon(data_dir, CONTEXTD_RATE_LIMIT="off") as daemon:
        structured(daemon.session().call("index_codebase", path=str(project)))
        agent = Agent(daemon.session())
        opened: dict[str, str] = {}
        for description, (query, symbol) in SUBTASKS.items():
            branch = agent.call(
                "branch",
                description=description,
                prompt=f"{description}: name the files and functions.",
                project_path=str(project),
            )
            opened[branch["branch_id"]] = explore(agent, branch["branch_id"], project, query, symbol)
        unfinished = agent.branches
        daemon.stop(signal.SIGKILL)
    # Killed in the middle, and another daemon goes on.
    with running_daemon(data_dir, CONTEXTD_RATE_LIMIT="off") as daemon:
        agent.session = daemon.session()
        for branch_id, summary in opened.items():
            status = agent.call("branch_status", branch_id=branch_id)
            assert status["state"] == "active"
            returned = agent.call("return", branch_id=branch_id, message=summary)
            assert returned["summary"] == summary
            assert returned["used"] <= returned["budget"]
        assert agent.window <= WINDOW
        assert unfinished > 5 * agent.window
        _everything_read_is_within_reach(agent, list(opened))
        _the_ledger_says_the_same(daemon, agent)


def _everything_read_is_within_reach(agent: Agent, branches: list[str]) -> None:
    for branch_id in branches:
        trail = structured(agent.session.call("ref_get", ref=branch_id))["content"]
        steps = re.findall(r"^(ref-\S+) (\w+)", trail, re.MULTILINE)
        tools = [tool for _, tool in steps]
        assert tools[0] == "prompt"
        assert {"search_code", "symbol_lookup"} <= set(tools)
        for ref, tool in steps:
            held = structured(agent.session.call("ref_get", ref=ref, token_budget=32_768))
            assert held["content"]
            if tool == "search_code":
                assert json.loads(held["content"])["results"]


def _the_ledger_says_the_same(daemon: Daemon, agent: Agent) -> None:
    """Of the second daemon's session: what was folded is what the branches cost, less the summaries."""
    report = structured(agent.session.call("analytics_get", token_budget=8_000))
    assert report["tokens"]["folded"] > 0
    assert report["session"]["folded"] == report["tokens"]["folded"]
