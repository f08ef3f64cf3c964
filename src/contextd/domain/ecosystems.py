"""Which ecosystem an error comes from, by what only that one writes."""

import re
from typing import Final

from contextd.domain.stack_frames import language_of

_LOOKED_AT: Final = 4_000


def _mark(ecosystem: str, *patterns: str) -> tuple[str, re.Pattern[str]]:
    return ecosystem, re.compile("|".join(patterns), re.MULTILINE)


_MARKS: Final = (
    _mark(
        "npm", r"\bnpm (?:ERR!|error )|\bERR_PNPM_|\byarnpkg\b|yarn-error", r"\bE(?:RESOLVE|LIFECYCLE)\b"
    ),
    _mark("shell", r"command not found", r"^(?:\S{0,200}/)?(?:ba|z|da|k)?sh: ", r"\(publickey\)|\.ps1\b"),
    _mark(
        "kubernetes",
        r"nodes are available|Error from server \(|Back-off (?:restarting|pulling)",
        r"\bkube(?:ctl|let|rnetes)\b",
        r"\b(?:CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled)\b|(?:Liveness|Readiness) probe",
        r"\b(?:PersistentVolumeClaim|MountVolume|configmaps?|Deployment|StatefulSet|DaemonSet)\b",
        r"INSTALLATION FAILED|connection to the server \S{1,200} was refused|converting YAML to JSON",
        r"Failed to pull image|\b[Pp]od \S{1,200} ",
    ),
    _mark(
        "docker",
        r"Error response from daemon|Docker daemon|[Dd]ocker(?:file| compose|-compose|-entrypoint)",
        r"failed to solve:|OCI runtime|exec format error|failed to register layer|Cannot start service",
    ),
    _mark(
        "git",
        r"\bknown to git\b|\bgit (?:repository|process)|\.git(?:modules|/|')|Merge conflict|failed to push",
        r"non-fast-forward|overwritten by (?:merge|checkout)|\bLFS\b|dubious ownership|[Yy]our branch is",
        r"unrelated histories",
    ),
    _mark("aws", r"An error occurred \(\w{1,60}\) when calling|\bbotocore\b"),
    _mark(
        "php",
        r"^PHP |\.php(?::| on line )|Call to (?:a member|undefined)|Undefined array key",
        r"\bphp \^|composer\.json|set of packages\.$",
    ),
    _mark("python", r"\bsqlalchemy\.|\bdjango\.|\bpsycopg|(?<![.\w])ssl\.SSL|\brequests\."),
    _mark(
        "csharp",
        r"\b(?:CS|NU|MSB|NETSDK)\d{4}\b|\b(?:System|Microsoft|Npgsql)\.[\w.]{1,120}Exception|\.csproj\b",
    ),
    _mark(
        "sql",
        r"\bORA-\d{5}|\bSQLSTATE\b|^ERROR \d{4} \(|^(?:.{0,80} )?(?:ERROR|FATAL):  |\bsqlite3?\b|SQLITE_",
        r"MySQL server|^Msg \d+, Level|violates (?:unique|foreign)",
    ),
    _mark("terraform", r"\bterraform\b|state lock$|\.tf line \d|credential sources|Cycle: \w+[._]"),
    _mark(
        "rust",
        r"^error\[E\d{4}\]|panicked at|\bRUST_BACKTRACE\b|\bcargo\b|\.rs:\d+",
        r"^error: (?:linker `|failed to (?:select a version|run custom build)|could not compile)",
    ),
    _mark(
        "c",
        r"AddressSanitizer|(?<!\[signal )\bSIGSEGV\b|Segmentation fault",
        r"\.(?:c|cc|cpp|cxx|h|hpp)(?::\d|: No such)",
        r"/ld(?:\.\w+)?: |undefined reference|shared librar|GLIBC|terminate called|double free|core dumped",
        r"\bLNK\d{4}",
    ),
    _mark(
        "go",
        r"^panic: |^goroutine \d|\.go:\d+|\bdial (?:tcp|udp|unix)|\bx509: ",
        r"rpc error: code = |\bgo\.(?:mod|sum)\b",
        r"fatal error: (?:all goroutines|concurrent map)|context deadline|runtime error: ",
        r"\bGo (?:files|struct)\b",
        r"^sql: |go/pkg/mod|^json: cannot|^(?:Get|Post|Put|Head|Delete) \"http",
    ),
    _mark(
        "ruby",
        r"\.rb:\d+|NoMethodError|nil:NilClass|\bBundler\b|\bGem::|\bActiveRecord::",
        r"\bGemfile\b|\(LoadError\)|uninitialized constant",
    ),
    _mark(
        "java",
        r"\b(?:com|org|io|net|java|javax|jakarta|kotlin|scala)\.[\w.$]{1,200}(?:Exception|Error)\b",
        r"Exception in thread|\.(?:java|kt):\d+|What went wrong:|Web server failed to start",
        r"Manifest merger|^\[ERROR\] (?:Failed to execute goal|Tests run)|^scala\.|^\[Consumer clientId",
    ),
    _mark("swift", r"\.swift\b|Optional value: file|no such module"),
    _mark("elixir", r"^\*\* \(\w{1,60}Error\)|\.exs?:\d+"),
    _mark(
        "javascript",
        r"\bTS\d{4}\b|\bnode(?::|_modules\b)|\.(?:[jt]sx?|mjs|cjs)\b|Cannot read propert|is not a function",
        r"Cannot find module|\bERR_[A-Z]{2}|\bE(?:CONN(?:REFUSED|RESET)|ADDRINUSE|NOENT|NOSPC)\b|\[vite\]",
        r"JavaScript|ReferenceError:|outside a module|valid JSON|digital envelope|\bReact\b",
        r"webpack|Hydration|no-unused-vars|^expect\(",
        r"\b(?:Axios|Mongo|TokenExpired)\w{0,40}Error",
    ),
    _mark(
        "python",
        r"Traceback \(most recent|No module named|\.py:\d+|\bpip\b|matching distribution",
        r"externally-managed|satisfies the requirement",
        r"(?:^|[\s:])(?:[a-z_]\w{0,60}\.){1,8}\w{1,60}(?:Error|Exception)\b",
        r"^E? {0,8}(?:Key|Value|Type|Attribute|Index|Name|Import|OS|IO|Runtime|Assertion|Recursion)Error\b",
        r"^(?:ModuleNotFound|FileNotFound|Permission|ZeroDivision|Unicode\w{6}|Indentation|Syntax)Error\b",
        r"(?:Attribute|Assertion)Error: |\b(?:SolverProblem|PackagesNotFound)Error\b|/MainProcess\]",
    ),
    _mark("make", r"^make(?:\[\d+\])?: |Makefile:\d|\*\*\* missing separator|\bCMake\b|/BUILD\b"),
    _mark("nginx", r"\bnginx: |connecting to upstream|\[emerg\]"),
    _mark(
        "shell",
        r"^(?:curl|wget|cp|mv|rm|tar|ssh|scp|rsync|chmod|chown|mkdir|ls|gzip|sudo|apt|apt-get|dpkg): |^E: ",
        r"\.sh: |Host key verification|unbound variable",
    ),
)
"""The first that fits is taken: from what is most telling to what others may write too."""

KNOWN: Final = frozenset(ecosystem for ecosystem, _ in _MARKS) | {"dart"}


def ecosystem_of(message: str, stack_trace: str = "") -> str | None:
    """By the frames of a trace, or else by words that belong to one ecosystem; None for neither."""
    seen = message[:_LOOKED_AT]
    by_frames = language_of(stack_trace) or language_of(seen)
    if by_frames:
        return by_frames
    return next((ecosystem for ecosystem, mark in _MARKS if mark.search(seen)), None)
