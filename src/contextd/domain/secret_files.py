"""Files that hold secrets, known by their names, and the commands that would show one."""

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

_NAMES: Final = re.compile(
    r"""
    \.env(?:\..+)? | .+\.env | \.envrc
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)? | .+\.(?:pem|key|p12|pfx|jks|keystore|ppk|kdbx|ovpn)
    | \.netrc | _netrc | \.pgpass | \.my\.cnf | \.git-credentials | \.htpasswd | \.pypirc | \.npmrc
    | \.dockercfg | \.vault-token | credentials(?:\.(?:json|ya?ml|toml|ini|csv))?
    | secrets?\.(?:json|ya?ml|toml|ini|env)
    | service[-_]account.*\.json | client_secret.*\.json | kubeconfig | .+\.tfvars(?:\.json)? | .+\.tfstate
    | shadow | gshadow
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PLACES: Final = re.compile(
    r"/(?:\.ssh/(?!(?:known_hosts|config|authorized_keys)$|.+\.pub$)|\.gnupg/|\.aws/|\.azure/|\.kube/config$"
    r"|\.docker/config\.json$|\.config/gcloud/|proc/[^/]+/environ$|run/secrets/)",
    re.IGNORECASE,
)
_SAMPLES: Final = re.compile(
    r".*[._-](?:example|sample|template|tmpl|dist|defaults?|schema|test|pub)(?:\..+)?", re.IGNORECASE
)
_SHOWS_NOTHING: Final = frozenset(
    "[ [[ test ls stat file find fd du touch rm mkdir chmod chown ln git echo printf true cd pushd export"
    " set source . docker docker-compose podman dotenv direnv openssl ssh ssh-add ssh-keygen kubectl helm"
    " terraform tofu ansible-playbook gcloud aws npm npx pnpm yarn node python python3 uv make cargo"
    " go".split()
)
"""Programs that use such a file, or speak of it, and do not print it."""
_BEFORE: Final = frozenset(
    "sudo doas env command exec time nice nohup timeout xargs then do else !".split()
)
_OPERATORS: Final = frozenset({"|", "||", "&&", "&", ";", "(", ")", "{", "}", "|&", ";;"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_DEEPEST: Final = 4


def is_secret_file(path: str) -> bool:
    """By its name alone. Samples and public keys are not."""
    name = PurePosixPath(path).name
    if not name or _SAMPLES.fullmatch(name):
        return False
    return bool(_NAMES.fullmatch(name) or _PLACES.search(f"/{path.lstrip('~/')}"))


def secret_files_shown(command: str, depth: int = 0) -> Iterator[str]:
    """The files of secrets that a shell command would print, as far as its words tell."""
    program, is_read = "", False
    for word in _words(command):
        if word in _OPERATORS or word.isspace():
            program, is_read = "", False
        elif word in ("<", ">", ">>", ">|", "&>"):
            is_read = word == "<"
            if not is_read:
                program = program or "echo"
        elif not program and (word in _BEFORE or word.startswith("-") or _ASSIGNMENT.fullmatch(word)):
            continue
        elif not program:
            program = PurePosixPath(word).name
        elif " " in word.strip() and depth < _DEEPEST:
            yield from secret_files_shown(word, depth + 1)
        elif (is_read or program not in _SHOWS_NOTHING) and _is_named(word):
            yield word.rpartition("=")[2].lstrip("@")


def _is_named(word: str) -> bool:
    """Also as the value of an option, and as curl's `@file`."""
    return is_secret_file(word.rpartition("=")[2].lstrip("@"))


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return command.split()
