"""What a machine without a sandbox lacks, and what its owner can do about it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contextd.domain.errors import SandboxUnavailable

_INSTEAD: Final = "or set CONTEXTD_SANDBOX=off to run commands without one, at your own risk"
_SWITCHES: Final = (
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are off",
        "kernel.unprivileged_userns_clone=1",
    ),
    ("user/max_user_namespaces", "0", "user namespaces are off", "user.max_user_namespaces=15000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor restricts user namespaces",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
"""Under /proc/sys: the value that forbids, what that means, and the setting that allows."""


def refusal(choice: str, troubles: Sequence[str]) -> SandboxUnavailable:
    if not sys.platform.startswith("linux"):
        return SandboxUnavailable(
            f"there is no sandbox for {sys.platform} yet",
            f"run contextd in a Linux container or virtual machine, {_INSTEAD}",
        )
    tried = "; ".join(dict.fromkeys(troubles)) or f"nothing was found for {choice}"
    problem, remedy = _cause()
    return SandboxUnavailable(f"no sandbox holds here: {problem}{tried}", f"{remedy}, {_INSTEAD}")


def _cause() -> tuple[str, str]:
    for name, forbids, meaning, setting in _SWITCHES:
        if _value(name) == forbids:
            return f"{meaning}; ", f"as root run: sysctl -w {setting}"
    return "", "install bubblewrap, or let the container that this runs in make user namespaces"


def _value(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text(encoding="ascii").strip()
    except OSError:
        return ""
