"""Who may use the daemon: tokens, projects, open addresses."""

import json
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from contextd.adapters.token_vault import TokenFile
from contextd.domain.errors import Conflict, Invalid, StoreUnavailable
from running import Daemon, command, environment, running_daemon


@dataclass(frozen=True)
class Guarded:
    daemon: Daemon
    everyone: str
    only_a: str

    def tool(self, token: str | None, name: str, /, **arguments: object) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.post(f"{self.daemon.url}/api/v1/tools/{name}", json=arguments, headers=headers)


def contextd(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environment(data_dir),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    data_dir = tmp_path_factory.mktemp("guarded")
    everyone = contextd(data_dir, "token", "create", "--name", "everyone").stdout.strip()
    only_a = contextd(data_dir, "token", "create", "--name", "ci", "--project", "/srv/a").stdout.strip()
    with running_daemon(data_dir, CONTEXTD_RATE_LIMIT="off") as daemon:
        yield Guarded(daemon, everyone, only_a)


@pytest.mark.parametrize(
    "path", ["/mcp", "/api", "/metrics", "/health", "/ready", "/api/v1/openapi.json", "/nope"]
)
def test_nothing_is_served_without_a_token_once_there_is_one(guarded: Guarded, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {guarded.everyone}"}):
        answer = httpx2.get(guarded.daemon.url + path, headers={"Accept": "text/event-stream", **headers})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        told = answer.json()["error"]["data"] if path == "/mcp" else answer.json()
        assert told["code"] == "SEC_001"


def test_a_token_opens_every_door(guarded: Guarded) -> None:
    assert guarded.tool(guarded.everyone, "status").status_code == 200
    session = guarded.daemon.session(authorization=f"Bearer {guarded.everyone}")
    assert session.call("status")["result"]["isError"] is False


def test_a_projects_token_sees_its_project_alone(guarded: Guarded) -> None:
    for project in ("a", "b"):
        saved = guarded.tool(
            guarded.everyone,
            "checkpoint_save",
            summary=f"zebra of {project}",
            project_path=f"/srv/{project}",
        )
        assert saved.status_code == 200
    ours = guarded.tool(guarded.only_a, "checkpoint_search", query="zebra").json()["data"]["results"]
    assert [hit["summary"] for hit in ours] == ["zebra of a"]
    assert guarded.tool(guarded.only_a, "checkpoint_list").json()["data"]["total"] == 1
    listed = guarded.tool(guarded.only_a, "collection_list").json()["data"]["collections"]
    assert [collection["project_path"] for collection in listed] == ["/srv/a"]


def test_a_projects_token_is_refused_elsewhere(guarded: Guarded) -> None:
    theirs = guarded.tool(
        guarded.everyone, "checkpoint_save", summary="theirs", project_path="/srv/b"
    ).json()["data"]["id"]
    for name, arguments in {
        "checkpoint_save": {"summary": "x", "project_path": "/srv/b"},
        "checkpoint_search": {"query": "x", "project_path": "/srv/b"},
        "checkpoint_list": {"project_path": "/srv/b"},
        "collection_create": {"project_path": "/srv/b"},
        "collection_delete": {"project_path": "/srv/b"},
    }.items():
        answer = guarded.tool(guarded.only_a, name, **arguments)
        assert answer.status_code == 403, name
        assert answer.json()["code"] == "SEC_002"
    # An id of another project must look the same as one that never was.
    unknown = guarded.tool(guarded.only_a, "checkpoint_restore", id="cp-0123456789ab-00000000000000000")
    foreign = guarded.tool(guarded.only_a, "checkpoint_restore", id=theirs)
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.json()["message"] == unknown.json()["message"]


def test_a_revoked_token_is_refused_at_once(guarded: Guarded) -> None:
    data_dir = guarded.daemon.data_dir
    secret = contextd(data_dir, "token", "create", "--name", "brief").stdout.strip()
    assert guarded.tool(secret, "status").status_code == 200
    assert contextd(data_dir, "token", "revoke", "brief").returncode == 0
    assert guarded.tool(secret, "status").status_code == 401


def test_the_command_line_lists_names_and_never_secrets(guarded: Guarded) -> None:
    listed = contextd(guarded.daemon.data_dir, "token", "list").stdout
    assert "everyone" in listed
    assert "/srv/a" in listed
    assert guarded.everyone not in listed
    taken = contextd(guarded.daemon.data_dir, "token", "create", "--name", "ci")
    assert taken.returncode == 1
    assert "exists" in taken.stderr
    assert contextd(guarded.daemon.data_dir, "token", "revoke", "nobody").returncode == 1


def test_secrets_are_kept_as_hashes_readable_by_the_owner_alone(guarded: Guarded) -> None:
    file = guarded.daemon.data_dir / "tokens.json"
    assert guarded.everyone not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_anonymous_callers_may_be_allowed_beside_tokens(guarded: Guarded) -> None:
    with running_daemon(guarded.daemon.data_dir, CONTEXTD_ALLOW_ANONYMOUS="true") as both:
        url = f"{both.url}/api/v1/tools/status"
        assert httpx2.post(url, json={}).status_code == 200
        assert httpx2.post(url, json={}, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_an_open_address_without_tokens_does_not_start(tmp_path: Path) -> None:
    refused = contextd(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "contextd token create" in refused.stderr


def test_an_open_address_takes_addresses_and_listed_names(tmp_path: Path) -> None:
    settings = {"CONTEXTD_ALLOW_ANONYMOUS": "true", "CONTEXTD_ALLOWED_HOSTS": "ctx.example"}
    with running_daemon(tmp_path, "--host", "0.0.0.0", **settings) as opened:
        url = opened.url.replace("0.0.0.0", "127.0.0.1") + "/health"

        def status(host: str) -> int:
            return httpx2.get(url, headers={"Host": host}).status_code

        assert status("192.0.2.7:8080") == 200
        assert status("ctx.example") == 200
        assert status("rebound.example") == 421


def test_a_port_that_is_taken_is_told_with_what_to_do(guarded: Guarded) -> None:
    port = guarded.daemon.url.rsplit(":", 1)[1]
    refused = contextd(guarded.daemon.data_dir, "serve", "--port", port)
    assert refused.returncode == 2
    assert "CONTEXTD_HTTP_PORT" in refused.stderr


def test_an_address_of_another_machine_is_told_with_what_to_do(guarded: Guarded) -> None:
    for host in ("192.0.2.7", "no-such-host.invalid"):
        refused = contextd(guarded.daemon.data_dir, "serve", "--host", host, "--port", "0")
        assert refused.returncode == 2
        assert "CONTEXTD_HTTP_HOST" in refused.stderr


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "blank"),
        ("  ", "blank"),
        ("a\nb", "control characters"),
        ("a\x1b[31m", "control characters"),
        ("a" * 101, "longer than 100"),
    ],
)
def test_a_name_that_cannot_be_listed_is_refused_and_makes_no_token(
    tmp_path: Path, name: str, says: str
) -> None:
    refused = contextd(tmp_path, "token", "create", "--name", name)
    assert refused.returncode == 2
    assert says in refused.stderr
    assert not refused.stdout
    with pytest.raises(Invalid, match=says):
        TokenFile(tmp_path / "tokens.json").create(name, None)
    assert not (tmp_path / "tokens.json").exists()


def test_a_name_of_many_letters_and_scripts_is_taken(tmp_path: Path) -> None:
    vault = TokenFile(tmp_path / "tokens.json")
    for name in ("a" * 100, "Ann's laptop", "笔记本"):
        assert vault.verify(vault.create(name, None)) is not None


def test_a_list_of_no_tokens_says_so(tmp_path: Path) -> None:
    listed = contextd(tmp_path, "token", "list")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "there are no tokens" in listed.stderr


def test_a_vault_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    vault = TokenFile(tmp_path / "tokens.json")
    secret = vault.create("a", None)
    with pytest.raises(Conflict):
        vault.create("a", None)
    for broken in ("", "{}", '{"tokens": 3}', json.dumps({"tokens": [{}]})):
        (tmp_path / "tokens.json").write_text(broken)
        with pytest.raises(StoreUnavailable):
            vault.verify(secret)
        with pytest.raises(StoreUnavailable):
            list(TokenFile(tmp_path / "tokens.json"))
    (tmp_path / "tokens.json").unlink()
    assert vault.verify(secret) is None
