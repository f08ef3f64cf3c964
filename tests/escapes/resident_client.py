"""Hands a command to a resident sandbox and prints what comes back.

python resident_client.py SOCKET PROJECT COMMAND ...
"""

import shlex
import socket
import sys


def main(path: str, words: list[str]) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(f"{shlex.join(words)}\n".encode())
        with connection.makefile("rb") as answer:
            for head in answer:
                stream, size = head.split()
                out = sys.stdout.buffer if stream == b"stdout" else sys.stderr.buffer
                out.write(answer.read(int(size)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
