"""All attacks, and what one says of a sandbox."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from escapes.attempts import OUTSIDE, Attempt, Sandbox, attempt
from escapes.case import Case
from escapes.files import FILES
from escapes.ground import User
from escapes.kernel import KERNEL
from escapes.limits import LIMITS
from escapes.planting import PLANTING
from escapes.processes import PROCESSES
from escapes.secrets_of_caller import SECRETS
from escapes.sockets import SOCKETS

CASES: Final = (*FILES, *PLANTING, *SECRETS, *SOCKETS, *PROCESSES, *KERNEL, *LIMITS)

Word = Literal["held", "open", "refused", "not applicable"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`refused`: the sandbox did not even start the script. `not applicable`: the attack does not work
    outside either, on this machine and as this user."""

    word: Word
    reason: str = ""


def judge(case: Case, sandbox: Sandbox, user: User) -> Verdict:
    if case.only and (case.only == "root") != (user.uid == 0):
        return Verdict("not applicable", f"an attack for {case.only} users")
    outside = tried_outside(case, user)
    if not outside.worked:
        return Verdict("not applicable", f"does not work outside: {outside.said or 'nothing was said'}")
    inside = attempt(case, sandbox, user)
    if inside.worked:
        return Verdict("open")
    return Verdict("held", inside.said) if inside.ran else Verdict("refused", inside.said)


@cache
def tried_outside(case: Case, user: User) -> Attempt:
    return attempt(case, OUTSIDE, user)


def users() -> Iterator[User]:
    """Who is here; where that is root, also somebody who is not, and root in that one's project."""
    here = User.current()
    yield here
    if here.uid == 0:
        ordinary = User.named("nobody")
        yield from (ordinary, here.among(ordinary))
