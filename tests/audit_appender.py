"""Appends to an audit log until it has appended enough, or is killed: run as a process by tests.

Prints the request id of each entry that is on disk, so that what was acknowledged is known.
"""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from contextd.adapters.audit_log import FileAuditLog
from contextd.adapters.clock import SystemClock
from contextd.adapters.telemetry import make_telemetry
from contextd.domain.auditing import AuditEntry
from contextd.scrubbing.scrubber import SecretScrubber


def audit_log(data_dir: Path) -> FileAuditLog:
    return FileAuditLog(
        data_dir, SecretScrubber(), make_telemetry(None, "0", lambda text: text), SystemClock()
    )


def entry(request_id: str, text: str = "hello") -> AuditEntry:
    return AuditEntry(
        at=datetime.now(UTC),
        request_id=request_id,
        trace_id=None,
        principal="local",
        client="test",
        session=None,
        branch=None,
        project="/srv/shop",
        tool="echo",
        input={"text": text},
        output=f'{{"result":"{text}"}}',
        tokens=7,
    )


async def append(data_dir: Path, name: str, count: int) -> None:
    log = audit_log(data_dir)
    try:
        for number in range(count):
            durable = number % 2 == 0
            await log.append(entry(f"{name}-{number}"), durable=durable)
            if durable:
                print(f"{name}-{number}", flush=True)
    finally:
        await log.close()


if __name__ == "__main__":
    asyncio.run(append(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
