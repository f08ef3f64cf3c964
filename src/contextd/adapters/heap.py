"""The process's heap, where the C library lets us at it."""

import ctypes
import sys


def give_back() -> None:
    """Return freed memory to the system: loading a large file leaves megabytes that glibc would keep."""
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
