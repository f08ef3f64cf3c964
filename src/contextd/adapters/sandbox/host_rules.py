"""Which hosts a policy lets a command reach, and at which addresses they may be."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DEFAULT_PORT: Final = 443
_RULE: Final = re.compile(
    r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>(?:\*\.)?[A-Za-z0-9_.-]+))(?::(?P<port>\d{1,5}))?"
)
_TRANSLATED: Final = ipaddress.ip_network("64:ff9b::/96")
"""Where IPv4 addresses are reached through IPv6."""


@dataclass(frozen=True, slots=True)
class HostRule:
    """`name` in small letters; one that begins with `*.` stands for all names below it."""

    name: str
    port: int

    def matches(self, host: str, port: int) -> bool:
        if port != self.port:
            return False
        return host.endswith(self.name[1:]) if self.name.startswith("*.") else host == self.name


def host_rule(text: str) -> HostRule:
    """Raises ValueError."""
    found = _RULE.fullmatch(text.strip())
    if found is None or not 0 < int(found["port"] or DEFAULT_PORT) < 65_536:
        raise ValueError("use a name as pypi.org, *.github.com or host:port")
    return HostRule((found["six"] or found["name"]).lower().rstrip("."), int(found["port"] or DEFAULT_PORT))


@dataclass(frozen=True, slots=True)
class HostRules:
    rules: tuple[HostRule, ...]

    @classmethod
    def of(cls, hosts: Sequence[str]) -> "HostRules":
        return cls(tuple(host_rule(host) for host in hosts))

    def allow(self, host: str, port: int) -> bool:
        return any(rule.matches(host, port) for rule in self.rules)

    def allow_address(self, host: str, address: str) -> bool:
        """A name may lead to a public address alone: to another only where the policy names the address.

        Otherwise whoever owns a name could have the daemon connect to its own network.
        """
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address):
            found = found.ipv4_mapped or _translated(found)
        return (found.is_global and not found.is_multicast) or host in (address, "localhost")


def _translated(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _TRANSLATED else address
