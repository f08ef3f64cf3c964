"""The daemon is started by who needs it first: one, however many need it at once."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

from contextd.proxy.place import Place, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

_PATIENCE_S = 30.0
_LOOK_AGAIN_S = 0.02
_LAST_LOOK_S = 1.0
_SHOWN = 600
"""Of the log's end, when the daemon did not start."""


def connected(place: Place, python: str) -> socket.socket:
    """A socket to the daemon, which is started if nobody listens. Raises Unreachable."""
    try:
        return place.connect()
    except (ConnectionError, FileNotFoundError):
        if not place.is_local:
            raise Unreachable(f"nobody listens at {place.address}: start contextd there") from None
    run = f"{place.data_dir}/run"
    os.makedirs(run, 0o700, exist_ok=True)
    lock = os.open(f"{run}/start.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return _start(place, python, lock, time.monotonic() + _PATIENCE_S)
    finally:
        os.close(lock)


def _start(place: Place, python: str, lock: int, deadline: float) -> socket.socket:
    """Who has the lock starts it; the others wait for the lock or for the daemon, whichever is first."""
    process: subprocess.Popen[bytes] | None = None
    while time.monotonic() < deadline:
        try:
            return place.connect()
        except (ConnectionError, FileNotFoundError):
            pass
        if process is None and _is_ours(lock):
            process = _spawn(place, python)
        elif process is not None and process.poll() is not None:
            # Perhaps because somebody else has just started one, which will listen in a moment.
            deadline = min(deadline, time.monotonic() + _LAST_LOOK_S)
        time.sleep(_LOOK_AGAIN_S)
    if process is not None and process.poll() is not None:
        raise Unreachable(f"the daemon did not start: {_last_words(place)}")
    raise Unreachable(
        f"the daemon did not answer in {_PATIENCE_S:g} s: see {place.data_dir}/run/daemon.log"
    )


def _is_ours(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _spawn(place: Place, python: str) -> subprocess.Popen[bytes]:
    """On its own: it outlives us, and has neither our terminal nor our folder."""
    log = os.open(f"{place.data_dir}/run/daemon.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        return subprocess.Popen(
            [python or sys.executable, "-P", "-m", "contextd", "serve", "--background"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "CONTEXTD_DATA_DIR": place.data_dir},
        )
    except OSError as error:
        raise Unreachable(f"the daemon cannot be started ({error}): run 'contextd tools install'") from None
    finally:
        os.close(log)


def _last_words(place: Place) -> str:
    with open(f"{place.data_dir}/run/daemon.log", errors="replace") as log:
        return " ".join(log.read()[-_SHOWN:].split()) or "it said nothing"
