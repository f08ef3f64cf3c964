"""Our sandbox in a process that stays, as it does in the daemon: hundreds of attacks must not load it each.

python -m escapes.resident SOCKET     waits there for commands, until its standard input ends
"""

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from contextd.adapters.sandbox import Ladder, PolicyFile
from contextd.domain.errors import Fault
from contextd.domain.sandboxing import Job, Stream
from contextd.settings import load_settings, passed_on
from escapes.canaries import identity
from escapes.ground import User

CLIENT = str(Path(__file__).parent / "resident_client.py")


@contextmanager
def resident(python: str, user: User, environment: Mapping[str, str]) -> Iterator[str]:
    """Where one waits."""
    with tempfile.TemporaryDirectory(prefix="contextd-escapes-", dir="/var/tmp") as folder:
        if os.getuid() == 0:
            os.chown(folder, user.uid, user.gid)
        path = f"{folder}/resident.sock"
        process = subprocess.Popen(
            [python, "-m", "escapes.resident", path],
            env={"PATH": "/usr/bin:/bin", "HOME": folder, "CONTEXTD_DATA_DIR": folder, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **identity(user.uid, user.gid),
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield path
            process.stdin.close()


async def _serve(path: str) -> None:
    settings = load_settings()
    policies = PolicyFile(settings.policies)
    own = (settings.data_dir, settings.policies, settings.file)
    ladder = Ladder(settings.sandbox, [str(each) for each in own], policies.names, passed_on)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A line of the project and the command; back come pieces, each after its stream and its length."""

        def tell(stream: str, piece: bytes) -> None:
            writer.write(f"{stream} {len(piece)}\n".encode() + piece)

        def sink(stream: Stream, piece: bytes) -> None:
            tell(stream, piece)

        project, *command = shlex.split((await reader.readline()).decode())
        policy = policies.policy(project)
        job = Job(shlex.join(command), project, project, policy.limits.timeout_s)
        try:
            await ladder.run(job, policy, sink)
        except Fault as fault:
            tell("stderr", f"{fault.id}: {fault}\n".encode())
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_unix_server(answer, path):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.buffer.read)
    await ladder.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
