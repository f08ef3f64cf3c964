"""Whether a rung holds, by trying it: a command in it must not reach what it must not reach."""

import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextd.adapters.sandbox.execution import perform
from contextd.adapters.sandbox.layout import lay_out
from contextd.adapters.sandbox.rung import Rung
from contextd.domain.errors import SandboxUnavailable
from contextd.domain.sandboxing import Job, Limits, Policy, Stream

_SECONDS: Final = 20.0
_NOBODY: Final = 65_534
_COMMAND: Final = """
exec 2>/dev/null
cat "$CANARY" && echo "it reads files outside"
echo x >>"$CANARY"
(exec 3<>"/dev/tcp/127.0.0.1/$PORT") && echo "it reaches the network"
for each in 1 "$DAEMON"; do
    [ "$each" = $$ ] || ! grep -aq = "/proc/$each/environ" || echo "it reads the environment of others"
done
echo inside >made && echo held
"""


async def probe(rung: Rung) -> None:
    """Raises SandboxUnavailable, which says what does not hold."""
    with (
        tempfile.TemporaryDirectory(prefix="contextd-probe-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        ground = _Ground.prepared(folder, for_root=rung.takes_root)
        said = ground.judged(await _ask(rung, ground, listener.getsockname()[1]))
        if said != "held":
            raise SandboxUnavailable(f"{rung.level} does not hold: {said}")


@dataclass(frozen=True, slots=True)
class _Ground:
    """A project, and beside it a file that is none of its business."""

    project: Path
    canary: Path

    @classmethod
    def prepared(cls, folder: str, *, for_root: bool) -> "_Ground":
        place = Path(os.path.realpath(folder))
        ground = cls(place / "project", place / "canary")
        ground.canary.touch()
        ground.project.mkdir()
        if os.geteuid() == 0 and not for_root:
            place.chmod(0o711)
            os.chown(ground.project, _NOBODY, _NOBODY)
        return ground

    def judged(self, said: list[str]) -> str:
        if self.canary.read_bytes():
            return "it writes files outside"
        if not (self.project / "made").exists():
            return "it cannot write in its project"
        return said[0] if said else "it says nothing"


async def _ask(rung: Rung, ground: _Ground, port: int) -> list[str]:
    said = bytearray()

    def hear(stream: Stream, piece: bytes) -> None:
        said.extend(piece)

    project = str(ground.project)
    layout = lay_out(project, Policy(), (), named=True)
    job = Job(_COMMAND, project, project, _SECONDS)
    told = {"CANARY": str(ground.canary), "PORT": str(port), "DAEMON": str(os.getpid()), "PATH": os.defpath}
    await perform(await rung.start(layout), job, Limits(), told, rung.level, hear)
    return said.decode(errors="replace").splitlines()
