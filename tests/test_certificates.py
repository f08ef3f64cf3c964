"""Certificates: who may call over the network, and who is turned away."""

import asyncio
import json
import re
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from grpc_health.v1 import health_pb2

from contextd.adapters.certificates import CertificateAuthority, Keypair
from contextd.domain.errors import Conflict, Invalid, StoreUnavailable
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.grpc import contextd_v1_pb2 as wire
from contextd.edge.grpc_server import GrpcServer
from contextd.wiring import House
from grpc_calls import WAIT_S, Client, body_of, client_at
from running import KEYWORD_ONLY, Daemon, command, environment, running_daemon

_PLACE = re.compile(r"gRPC +(127\.0\.0\.1:\d+)")


@dataclass
class Clock:
    """A clock that stands where it is put."""

    at: datetime

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


@dataclass
class Remote:
    """A daemon that listens on a port, and the folder of a good certificate."""

    daemon: Daemon
    address: str
    good: Path


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    data, out = tmp_path_factory.mktemp("tls"), tmp_path_factory.mktemp("good")
    cert(data, "issue", "--name", "good", "--out", str(out))
    with running_daemon(
        data, CONTEXTD_GRPC="127.0.0.1:0", CONTEXTD_RATE_LIMIT="off", **KEYWORD_ONLY
    ) as daemon:
        yield Remote(daemon, address_of(daemon), out)


def address_of(daemon: Daemon) -> str:
    """The daemon tells its places right after its address."""
    health = daemon.tool("status")
    assert health.status_code == 200
    found = _PLACE.search("".join(daemon.log))
    assert found is not None, daemon.log
    return found[1]


def cert(data_dir: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        command("cert", *arguments),
        env=environment(data_dir),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    return ran


def issued(remote: Remote, folder: Path, name: str, *arguments: str) -> Path:
    cert(remote.daemon.data_dir, "issue", "--name", name, "--out", str(folder / name), *arguments)
    return folder / name


def refusal(remote: Remote, certificate: Path | None) -> grpc.StatusCode:
    with (
        client_at(remote.address, certificate, remote.good) as client,
        pytest.raises(grpc.RpcError) as raised,
    ):
        client.execute("status")
    return raised.value.code()


def test_a_client_with_a_certificate_is_served_by_its_name(remote: Remote) -> None:
    with client_at(remote.address, remote.good, remote.good) as client:
        assert client.data("status")["version"]


def test_a_client_without_a_certificate_is_turned_away(remote: Remote) -> None:
    assert refusal(remote, None) is grpc.StatusCode.UNAVAILABLE


def test_a_client_without_encryption_is_turned_away(remote: Remote) -> None:
    with grpc.insecure_channel(remote.address) as channel, pytest.raises(grpc.RpcError) as raised:
        Client(channel).execute("status")
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_certificate_of_another_authority_is_turned_away(remote: Remote, tmp_path: Path) -> None:
    cert(tmp_path / "elsewhere", "issue", "--name", "good", "--out", str(tmp_path / "theirs"))
    assert refusal(remote, tmp_path / "theirs") is grpc.StatusCode.UNAVAILABLE


def test_a_certificate_that_has_ended_is_turned_away(remote: Remote, tmp_path: Path) -> None:
    two_days_ago = Clock(datetime.now(UTC) - timedelta(days=2))
    pair = CertificateAuthority(remote.daemon.data_dir / "pki", two_days_ago).issue("late", None, 1)
    (tmp_path / "client.pem").write_bytes(pair.certificate)
    (tmp_path / "client.key").write_bytes(pair.key)
    assert refusal(remote, tmp_path) is grpc.StatusCode.UNAVAILABLE


def test_a_certificate_that_is_revoked_is_refused_at_once(remote: Remote, tmp_path: Path) -> None:
    folder = issued(remote, tmp_path, "leaver")
    with client_at(remote.address, folder, remote.good) as client:
        assert client.data("status")
        cert(remote.daemon.data_dir, "revoke", "leaver")
        with pytest.raises(grpc.RpcError) as raised:
            client.execute("status")
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert body_of(raised.value)["code"] == "SEC_005"
        with pytest.raises(grpc.RpcError) as raised:
            client.health.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_S)
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "leaver" not in cert(remote.daemon.data_dir, "list").stdout


def test_a_server_certificate_is_of_no_use_to_a_client(remote: Remote, tmp_path: Path) -> None:
    pair = CertificateAuthority(remote.daemon.data_dir / "pki", Clock(datetime.now(UTC))).serving(
        "localhost"
    )
    (tmp_path / "client.pem").write_bytes(pair.certificate)
    (tmp_path / "client.key").write_bytes(pair.key)
    assert refusal(remote, tmp_path) in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED)


def test_a_certificate_for_one_project_sees_no_other(remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    folder = issued(remote, tmp_path, "narrow", "--project", str(tmp_path / "mine"))
    with client_at(remote.address, folder, remote.good) as client:
        client.execute("checkpoint_save", summary="mine", project_path=str(tmp_path / "mine"))
        with pytest.raises(grpc.RpcError) as raised:
            client.execute("checkpoint_save", summary="theirs", project_path=str(tmp_path / "theirs"))
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_the_daemon_is_not_stopped_from_afar(remote: Remote) -> None:
    with (
        client_at(remote.address, remote.good, remote.good) as client,
        pytest.raises(grpc.RpcError) as raised,
    ):
        client.management.Shutdown(wire.ShutdownRequest(), timeout=WAIT_S)
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert remote.daemon.process.poll() is None


def test_keys_are_readable_by_the_owner_only(remote: Remote) -> None:
    pki = remote.daemon.data_dir / "pki"
    assert stat.S_IMODE(pki.stat().st_mode) == 0o700
    for path in (*pki.iterdir(), remote.good / "client.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    assert "there are none" in cert(tmp_path, "list").stderr
    assert "no certificate named" in cert(tmp_path, "revoke", "nobody", status=1).stderr
    too_long = cert(
        tmp_path, "issue", "--name", "x", "--days", "31", "--out", str(tmp_path / "x"), status=2
    )
    assert "give 1 to 30" in too_long.stderr
    cert(tmp_path, "issue", "--name", "x", "--days", "30", "--out", str(tmp_path / "x"))
    twice = cert(tmp_path, "issue", "--name", "x", "--out", str(tmp_path / "y"), status=1)
    assert "revoke it first" in twice.stderr
    assert not (tmp_path / "y").exists()
    assert "every project" in cert(tmp_path, "list").stdout


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb"])
def test_a_name_that_cannot_be_shown_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid):
        CertificateAuthority(tmp_path, Clock(datetime.now(UTC))).issue(name, None, 1)


def test_a_name_is_free_again_when_its_certificate_has_ended(tmp_path: Path) -> None:
    clock = Clock(datetime.now(UTC))
    authority = CertificateAuthority(tmp_path, clock)
    authority.issue("ci", None, 1)
    with pytest.raises(Conflict):
        authority.issue("ci", None, 1)
    clock.at += timedelta(days=1, seconds=1)
    authority.issue("ci", None, 1)
    assert len(list(authority.ledger)) == 1


def test_a_list_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path, Clock(datetime.now(UTC)))
    authority.issue("ci", None, 1)
    (tmp_path / "certificates.json").write_text("{")
    with pytest.raises(StoreUnavailable):
        authority.ledger.verify("anything")


def test_a_damaged_authority_is_told(tmp_path: Path) -> None:
    (tmp_path / "authority.pem").write_text("no key")
    with pytest.raises(StoreUnavailable, match=r"authority\.pem"):
        CertificateAuthority(tmp_path, Clock(datetime.now(UTC))).root()


@pytest.mark.anyio
async def test_the_servers_certificate_is_another_before_it_ends(
    house: House, pipeline: CallPipeline, tmp_path: Path
) -> None:
    clock = Clock(datetime.now(UTC) - timedelta(hours=20))
    authority = CertificateAuthority(tmp_path / "pki", clock)
    pair = authority.issue("watcher", None, 2)
    settings = replace(house.settings, grpc=("127.0.0.1:0",))
    server = GrpcServer(replace(house, settings=settings, clock=clock, certificates=authority), pipeline)
    await server.start()
    try:
        first = await asyncio.to_thread(shown_by, server.places[0], authority.root(), pair, tmp_path)
        again = await asyncio.to_thread(shown_by, server.places[0], authority.root(), pair, tmp_path)
        clock.at = datetime.now(UTC)
        later = await asyncio.to_thread(shown_by, server.places[0], authority.root(), pair, tmp_path)
    finally:
        await server.close(0)
    assert first.serial_number == again.serial_number != later.serial_number
    assert later.not_valid_after_utc - first.not_valid_after_utc > timedelta(hours=19)
    assert later.not_valid_after_utc - datetime.now(UTC) <= timedelta(days=1)


def shown_by(address: str, root: bytes, pair: Keypair, folder: Path) -> x509.Certificate:
    """The certificate that the server shows in a handshake."""
    (folder / "shown.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=root.decode())
    context.load_cert_chain(folder / "shown.pem")
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=WAIT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        der = secure.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


def test_a_narrow_certificate_is_listed_with_its_project_and_lists_no_other(
    remote: Remote, tmp_path: Path
) -> None:
    (tmp_path / "named").mkdir()
    folder = issued(remote, tmp_path, "narrower", "--project", str(tmp_path / "named"))
    listed = cert(remote.daemon.data_dir, "list").stdout
    assert str(tmp_path / "named") in next(line for line in listed.splitlines() if "narrower" in line)
    with client_at(remote.address, folder, remote.good) as client:
        assert json.loads(client.execute("checkpoint_list").data)["total"] == 0
