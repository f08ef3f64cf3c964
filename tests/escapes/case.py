"""One attack, as data: what it tries, and how it is seen that it worked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from escapes.ground import Ground

Kind = Literal["files", "planting", "secrets", "sockets", "processes", "kernel", "limits"]
KINDS: Final[Mapping[Kind, str]] = {
    "files": "files outside the project",
    "planting": "what runs later, outside",
    "secrets": "secrets of the caller",
    "sockets": "network, sockets, shared memory",
    "processes": "processes and terminals outside",
    "kernel": "the kernel and its devices",
    "limits": "what a command may use up",
}

Way = Literal["plain", "descriptor", "terminal", "terminated", "killed"]
"""How it is started. `descriptor`: with descriptors that the caller left open. `terminal`: from a shell in
a terminal. `terminated`, `killed`: and the sandbox's process is ended by SIGTERM or SIGKILL meanwhile."""

ESCAPED: Final = "ESCAPED"
"""What a script prints when its attack worked and there is no secret to show for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    name: str
    kind: Kind
    script: str
    """For bash, or for the system's Python. `@name@` stands for an attribute of the ground."""
    language: Literal["bash", "python"] = "bash"
    way: Way = "plain"
    arrange: Callable[[Ground], None] | None = None
    """Makes ready what the attack needs, from outside."""
    damage: Callable[[Ground], bool] | None = None
    """Looks from outside whether the attack worked. Without it, the script shows the ground's secret or
    says ESCAPED."""
    only: Literal["root", "ordinary"] | None = None
    """Whose attack it is, where it says nothing of the other."""
    outside: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, str] = field(default_factory=dict)
    """Amounts in the script, smaller outside where they only prove that it works."""
