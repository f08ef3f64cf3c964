"""Which paths nobody should lose."""

import re
from typing import Final

_BLOCK_DEVICE: Final = re.compile(
    r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|md|dm-|loop|mapper/|mem\b|kmem\b|port\b|zvol/|block/)"
)
_HARMLESS_DEVICE: Final = re.compile(
    r"/dev/(?:null|zero|full|stdout|stderr|stdin|tty\w*|fd/\d+|pts/\d+|shm/.+)"
)
_SYSTEM_TREE: Final = re.compile(
    r"/(?:bin|boot|dev|etc|lib\w*|proc|root|sbin|sys|usr|System|Library|Windows)(?:/.*)?", re.IGNORECASE
)
_TOP_FOLDER: Final = re.compile(r"/\*?|/(?:home|var|opt|srv|mnt|media|Users|Volumes)(?:/\*?)?")
_HOME: Final = re.compile(r"(?:~\w*|/home/[^/]+|/Users/[^/]+)(?:/\*?|/\.\*?)?")
_UNSET_THEN_SLASH: Final = re.compile(r"\$\{?\w+\}?/\*?")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]?\*?")
_TEMPORARY: Final = re.compile(r"(?:/private)?(?:/var)?/tmp/.+|/dev/shm/.+")
_LONGEST_NAME: Final = 200
_IDENTITY: Final = re.compile(
    r"(?:.*/)?(?:\.git(?:/.*)?|\.ssh(?:/.*)?|\.gnupg(?:/.*)?|\.aws/.*|\.kube/config"
    r"|\.env(?!\.(?:example|sample|template|dist))(?:\.\w+)?|\.(?:bash|zsh)(?:rc|_history)|\.(?:bash_)?profile"
    r"|id_(?:rsa|ed25519|ecdsa)|authorized_keys|known_hosts)"
)
_KEPT_DATA: Final = (
    ".sqlite",
    ".sqlite3",
    ".db",
    ".mdb",
    ".pem",
    ".key",
    ".kdbx",
    ".tfstate",
    ".jks",
    ".p12",
)


def is_block_device(path: str) -> bool:
    return _BLOCK_DEVICE.match(path) is not None


def is_harmless_device(path: str) -> bool:
    return _HARMLESS_DEVICE.fullmatch(path) is not None


def is_system(path: str) -> bool:
    """The root, a folder of the system, a home as a whole: what a machine or a person lives by."""
    clean = re.sub(r"/(?:\./)+|//+", "/", path)
    if _TEMPORARY.fullmatch(clean) or is_harmless_device(clean):
        return False
    return any(
        shape.fullmatch(clean) for shape in (_SYSTEM_TREE, _TOP_FOLDER, _HOME, _UNSET_THEN_SLASH, _DRIVE)
    ) or (clean.rstrip("/*") in ("", "..", "../..", "../../..") and clean.startswith(("/", "..")))


def is_identity(path: str) -> bool:
    """Keys, history and settings of a person or a repository: small files that are missed."""
    return _IDENTITY.fullmatch(path[-_LONGEST_NAME:]) is not None and not path.endswith(".lock")


def is_precious(path: str) -> bool:
    """What holds an identity, keys or data."""
    return is_identity(path) or path.lower().endswith(_KEPT_DATA)
