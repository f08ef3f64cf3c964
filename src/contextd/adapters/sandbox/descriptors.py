"""Waiting for descriptors on the event loop, without a thread and without a stream around them."""

import asyncio
import os


async def readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _tell, waiting)
    try:
        await waiting
    finally:
        loop.remove_reader(descriptor)


async def writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()
    loop.add_writer(descriptor, _tell, waiting)
    try:
        await waiting
    finally:
        loop.remove_writer(descriptor)


async def read_all(descriptor: int, most: int = 65_536) -> bytes:
    """Until its end, or so many bytes."""
    read = b""
    while len(read) < most:
        await readable(descriptor)
        piece = os.read(descriptor, most - len(read))
        if not piece:
            break
        read += piece
    return read


def write_all(descriptor: int, content: bytes) -> asyncio.Future[None]:
    """And close it. What fits is written at once; that nobody reads it any more is not an error."""
    os.set_blocking(descriptor, False)
    rest = _written(descriptor, memoryview(content))
    if rest:
        return asyncio.ensure_future(_write_rest(descriptor, rest))
    os.close(descriptor)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


async def _write_rest(descriptor: int, rest: memoryview) -> None:
    try:
        while rest := _written(descriptor, rest):
            await writable(descriptor)
    finally:
        os.close(descriptor)


def _written(descriptor: int, content: memoryview) -> memoryview:
    """What is left of it."""
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    except BlockingIOError:
        return content
    except BrokenPipeError:
        return content[:0]
    return content


def _tell(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
