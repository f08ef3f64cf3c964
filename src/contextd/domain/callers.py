"""Who asks. Domain code sees a caller and never a session's machinery."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from contextd.domain.limits import DEFAULT_TOKENS
from contextd.domain.records import Project

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Report `done, total, message` to a caller that asked for progress."""


async def _no_progress(done: float, total: float | None, message: str | None) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Principal:
    """`projects` None may see every project; otherwise just these keys."""

    name: str
    projects: frozenset[str] | None = None

    def may_use(self, project: Project) -> bool:
        return self.projects is None or project.key in self.projects

    @property
    def scope(self) -> str:
        """Who it is and what it may see: what is held for one scope is shown to no other."""
        return self.name if self.projects is None else f"{self.name} {' '.join(sorted(self.projects))}"


LOCAL = Principal("local")
"""The person at this machine: stdio, the command line, loopback without tokens."""


@dataclass(slots=True)
class Tally:
    """What one call used, counted on the way for its analytics event."""

    project: Project | None = None
    cache_hits: int = 0
    cache_misses: int = 0
    kept_out: list[str] = field(default_factory=list)
    """Texts that the same call at full detail would have answered besides."""
    folded: int = 0
    """Tokens that a branch used and its parent did not get."""
    isolation: str | None = None
    """The level at which a command ran."""
    exit_code: int | None = None
    secrets: Counter[str] = field(default_factory=Counter)
    """By rule, what the tool itself found and removed, before the server looks at the answer."""
    redacted: Mapping[str, int] | None = None
    """By rule, what the server then found in the answer, if anything."""


@dataclass(frozen=True, slots=True)
class Caller:
    principal: Principal = LOCAL
    transport: str = "inproc"
    session: str | None = None
    client: str | None = None
    request_id: str = ""
    progress: Progress = field(default=_no_progress)
    tally: Tally = field(default_factory=Tally)
    tokens: int = DEFAULT_TOKENS
    """What the answer to this call may cost."""
    branch: str | None = None
    """The branch that pays for it."""

    @property
    def key(self) -> str:
        """Whose rate limits and branches these are: the session's, else the principal's."""
        return self.session or f"principal:{self.principal.name}"
