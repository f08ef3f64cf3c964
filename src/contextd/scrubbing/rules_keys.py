"""Keys and tokens of public standards: PEM, PGP, age, JWT."""

import base64
from typing import Final

from contextd.scrubbing.rule import Rule
from contextd.scrubbing.samples import mixed, upper
from contextd.scrubbing.values import is_an_encoded_jwt, is_anything

_BASE64: Final = r"[A-Za-z0-9+/=]"
_LINE_NUMBER: Final = r"[0-9]{1,6}[ \t]*[\s:|?-]"
_FILE_NAME: Final = r"\n[\w./][\w./-]*[:-]"
_GAP: Final = rf"(?:\s|[\"'+,>|#*\\]|{_LINE_NUMBER}|{_FILE_NAME})*"
"""What stands between the lines of a key: newlines, escaped or not, quotes, what `cat -n` or grep add."""

_HEADERS: Final = rf"(?:[A-Za-z-]{{3,20}}: [^\n\\]{{1,200}}{_GAP})*"
_LINE: Final = rf"{_BASE64}{{16,}}"
_LONG_LINES: Final = rf"(?:{_GAP}{_LINE})*"
_ANY_LINES: Final = rf"(?:{_GAP}{_BASE64}+)*{_GAP}"
_BEGIN: Final = r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_END: Final = r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"

_PEM_LINES: Final = "\n".join([mixed(64)] * 12 + [mixed(20) + "=="])
_PEM: Final = f"-----BEGIN RSA PRIVATE KEY-----\n{_PEM_LINES}\n-----END RSA PRIVATE KEY-----"
_PGP: Final = (
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: none\n\n"
    f"{_PEM_LINES}\n={mixed(4)}\n-----END PGP PRIVATE KEY BLOCK-----"
)
_ENCRYPTED: Final = _PEM.replace(
    "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0F\n\n", 1
)
_NUMBERED: Final = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(_PEM.splitlines(), 1))

KEY_RULES: Final = (
    Rule(
        name="private-key",
        vendor="PEM",
        keywords=("private key-----", "private key block-----"),
        pattern=rf"{_BEGIN}{_GAP}{_HEADERS}{_LINE}(?:{_ANY_LINES}{_END}|{_LONG_LINES})",
        hits=(
            _PEM,
            _PGP,
            _ENCRYPTED,
            _NUMBERED,
            _PEM.replace("\n", "\\n"),
            _PEM.replace("RSA ", "OPENSSH "),
            _PEM.replace("RSA ", "")[:400],
        ),
        misses=(
            "-----BEGIN PUBLIC KEY-----\n" + mixed(64) + "\n-----END PUBLIC KEY-----",
            'if "-----BEGIN PRIVATE KEY-----" in text: return load(text)',
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        ),
        window=32_768,
        judge=is_anything,
    ),
    Rule(
        name="private-key-tail",
        vendor="PEM",
        keywords=("private key-----", "private key block-----"),
        pattern=rf"{_LINE}{_ANY_LINES}{_END}",
        hits=("\n".join(_PEM.splitlines()[-4:]), "\n".join(_NUMBERED.splitlines()[-3:])),
        misses=("...\n-----END PRIVATE KEY-----", "a line\n-----END RSA PRIVATE KEY-----"),
        window=32_768,
        judge=is_anything,
    ),
    Rule(
        name="putty-private-key",
        vendor="PuTTY",
        keywords=("private-lines:",),
        pattern=rf"Private-Lines: [0-9]+\s+({_LINE}{_LONG_LINES}(?:{_GAP}{_BASE64}{{1,15}})?)",
        hits=(f"Private-Lines: 2\n{mixed(64)}\n{mixed(40)}==\nPrivate-MAC: 00",),
        misses=("Private-Lines: 14",),
        window=8_192,
        judge=is_anything,
    ),
    Rule(
        name="age-secret-key",
        vendor="age",
        keywords=("age-secret-key-",),
        pattern=r"(?i)AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{50,}",
        hits=("AGE-SECRET-KEY-1" + upper(58),),
        misses=("AGE-SECRET-KEY-1...", "age1" + mixed(58)),
    ),
    Rule(
        name="password-hash",
        vendor="crypt",
        keywords=("$1$", "$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$apr1$", "$argon2"),
        pattern=r"\$2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}"
        r"|\$(?:1|5|6|7|y|apr1)\$(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,24}\$[./A-Za-z0-9]{20,}"
        r"|\$argon2(?:id|i|d)\$v=[0-9]+\$[a-z0-9=,]+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,}",
        hits=(
            f"root:$6${mixed(16)}${mixed(86)}:19000:0:99999:7:::",
            f"(1, 'ann', '$2y$12${mixed(53)}', 1)",
            f"admin:$apr1${mixed(8)}${mixed(22)}",
            f"$argon2id$v=19$m=65536,t=3,p=4${mixed(22)}${mixed(43)}",
        ),
        misses=("awk '{print $1$2$6$7}'", "$2y$12$short", "echo $5$6"),
    ),
    Rule(
        name="jwt",
        vendor="RFC 7519",
        keywords=(".ey",),
        pattern=r"\bey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_/\\-]{10,}\.[A-Za-z0-9_/\\-]{10,}={0,2}",
        hits=(
            f"eyJhbGciOiJIUzI1NiJ9.eyJ{mixed(60)}.{mixed(43)}",
            f"Authorization: Bearer eyJ{mixed(120)}.eyJ{mixed(3000)}.{mixed(342)}",
        ),
        misses=("eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0"),
        window=16_384,
    ),
    Rule(
        name="jwt-base64",
        vendor="RFC 7519",
        keywords=("zxlk",),
        pattern=r"\bZXlK[A-Za-z0-9+/]{60,}={0,2}",
        hits=(base64.b64encode(f"eyJ{mixed(40)}.eyJ{mixed(40)}.{mixed(43)}".encode()).decode(),),
        misses=("ZXlK" + mixed(80), base64.b64encode(b"eyJhbGciOiJIUzI1NiJ9").decode()),
        window=16_384,
        judge=is_an_encoded_jwt,
    ),
    Rule(
        name="jwe",
        vendor="RFC 7516",
        keywords=("eyj",),
        pattern=r"\beyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        hits=(f"eyJ{mixed(60)}.{mixed(342)}.{mixed(16)}.{mixed(200)}.{mixed(22)}",),
        misses=("eyJ" + mixed(60),),
        window=16_384,
    ),
)
