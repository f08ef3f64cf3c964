"""Work for a process of the pool that dies of a certain text. Each such process imports it: it is light."""

import os
import signal
from typing import Final

from contextd.adapters import digest_processes
from contextd.domain.code import Digest, Source, Trouble

DEADLY: Final = "this text kills whoever reads it"


def digest_or_die(sources: list[Source]) -> list[Digest | Trouble]:
    if any(DEADLY in source.text for source in sources):
        os.kill(os.getpid(), signal.SIGKILL)
    return digest_processes._digest_here(sources)
