"""The network of a sandbox with hosts: what the policy names is reached, by the daemon, and no more."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from contextd.adapters.sandbox.host_rules import HostRules, host_rule
from contextd.domain.errors import SandboxUnavailable
from contextd.domain.sandboxing import Policy
from sandboxes import Ground, ground, place

__all__ = ["ground", "place"]

CURL = "curl -sS --max-time 10 --noproxy ''"


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"page for {self.headers['Host']}".encode()
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "http://elsewhere.example/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """The test's output is for the test."""


@pytest.fixture
def server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving.server_port
        serving.shutdown()
        thread.join(timeout=10)


def only_bubblewrap(ground: Ground) -> None:
    if ground.level != "bubblewrap":
        pytest.skip("landlock has no network: see below")


def test_a_named_host_is_reached_and_others_are_refused_and_told(ground: Ground, server: int) -> None:
    only_bubblewrap(ground)
    policy = Policy(hosts=(f"127.0.0.1:{server}",))
    ran = ground.run(
        f"{CURL} http://127.0.0.1:{server}/; echo; {CURL} http://evil.example/; {CURL} https://evil.example/;"
        f" {CURL} http://127.0.0.1:1/",
        policy,
    )
    assert f"page for 127.0.0.1:{server}" in ran.stdout, ran.stderr
    assert ran.finished.refused_hosts == ("evil.example:80", "evil.example:443", "127.0.0.1:1")


def test_there_is_no_way_around_the_proxy(ground: Ground, server: int) -> None:
    only_bubblewrap(ground)
    policy = Policy(hosts=(f"127.0.0.1:{server}",))
    ran = ground.run(f"curl -sS --max-time 10 --noproxy '*' http://127.0.0.1:{server}/", policy)
    assert ran.stdout == ""
    assert ran.finished.exit_code == 7


def test_a_tunnel_goes_to_the_named_host(ground: Ground, server: int) -> None:
    only_bubblewrap(ground)
    policy = Policy(hosts=(f"127.0.0.1:{server}",))
    ran = ground.run(f"{CURL} --proxytunnel http://127.0.0.1:{server}/", policy)
    assert ran.stdout == f"page for 127.0.0.1:{server}"


def test_a_redirect_leads_nowhere_that_is_not_named(ground: Ground, server: int) -> None:
    only_bubblewrap(ground)
    policy = Policy(hosts=(f"127.0.0.1:{server}",))
    ran = ground.run(f"{CURL} -L http://127.0.0.1:{server}/away", policy)
    assert ran.finished.refused_hosts == ("elsewhere.example:80",)


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
        b"A " * 40_000,
        b"CONNECT [::::]:x HTTP/1.1\r\n\r\n",
    ],
)
def test_nonsense_is_answered_by_hanging_up(ground: Ground, server: int, words: bytes) -> None:
    only_bubblewrap(ground)
    policy = Policy(hosts=(f"127.0.0.1:{server}",))
    ran = ground.run(
        "exec 3<>/dev/tcp/127.0.0.1/3128; cat >&3; timeout 15 cat <&3; echo over", policy, stdin=words
    )
    assert ran.stdout.endswith("over\n")
    assert "200" not in ran.stdout


def test_landlock_refuses_a_policy_with_hosts(ground: Ground) -> None:
    if ground.level != "landlock":
        pytest.skip("bubblewrap has a network of its own")
    with pytest.raises(SandboxUnavailable, match="hosts"):
        ground.run("true", Policy(hosts=("pypi.org",)))


@pytest.mark.parametrize(
    ("rule", "host", "port", "allowed"),
    [
        ("pypi.org", "pypi.org", 443, True),
        ("pypi.org", "pypi.org", 80, False),
        ("pypi.org:80", "pypi.org", 80, True),
        ("PyPI.org.", "pypi.org", 443, True),
        ("pypi.org", "evil-pypi.org", 443, False),
        ("pypi.org", "a.pypi.org", 443, False),
        ("*.github.com", "api.github.com", 443, True),
        ("*.github.com", "a.b.github.com", 443, True),
        ("*.github.com", "github.com", 443, False),
        ("*.github.com", "evilgithub.com", 443, False),
        ("[2001:db8::1]:8443", "2001:db8::1", 8443, True),
    ],
)
def test_a_rule_matches_what_it_says(rule: str, host: str, port: int, allowed: bool) -> None:
    assert HostRules.of([rule]).allow(host, port) is allowed


@pytest.mark.parametrize(
    "text", ["", "*", "*.", "http://pypi.org", "a b", "pypi.org:0", "pypi.org:99999", "a/b", "*x.org"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="use a name"):
        host_rule(text)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::a00:1", False),
    ],
)
def test_a_name_leads_to_public_addresses_alone(address: str, allowed: bool) -> None:
    """Whoever owns a named host must not be able to point it into the network of the daemon."""
    rules = HostRules.of(["example.org", "10.1.2.3"])
    assert rules.allow_address("example.org", address) is allowed
    assert rules.allow_address("10.1.2.3", "10.1.2.3")
