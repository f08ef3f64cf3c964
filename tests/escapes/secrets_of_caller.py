"""Secrets in the environment and in the arguments of whoever started the sandbox."""

from typing import Final

from escapes.case import Case

SECRETS: Final = (
    Case("reads its own environment", "secrets", "env"),
    Case("reads /proc/1/environ", "secrets", "cat /proc/1/environ /proc/self/environ | tr '\\0' '\\n'"),
    Case("reads every /proc/*/environ", "secrets", "cat /proc/[0-9]*/environ | tr '\\0' '\\n'"),
    Case(
        "reads the arguments of others", "secrets", ": @victim@; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'"
    ),
)
