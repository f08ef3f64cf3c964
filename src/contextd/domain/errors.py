"""The tree of what can go wrong. One class is one entry of the catalogue.

A fault says what happened and what to do about it, in the caller's words. It names
fields and never repeats their values: a value may be a secret. Wire codes are not here;
they live in `edge/error_map.py`.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

Category = Literal[
    "validation",
    "not_found",
    "internal",
    "timeout",
    "unauthorized",
    "forbidden",
    "conflict",
    "rate_limited",
    "unavailable",
    "cancelled",
]


class Fault(Exception):
    """Anything that ends a call and is told to the caller."""

    id: ClassVar[str]
    category: ClassVar[Category]
    hint: ClassVar[str]
    """What to do, in general: the catalogue's column. A raised fault may be more precise."""

    def __init__(
        self, problem: str, remedy: str | None = None, details: Mapping[str, object] | None = None
    ) -> None:
        self.problem = problem
        self.remedy = remedy or self.hint
        self.details: dict[str, object] = dict(details or {})
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """Category, problem and remedy in one line: some clients show nothing else."""
        return f"[{self.category}] {self.problem}: {self.remedy}"


# --- validation -----------------------------------------------------------------------


class Invalid(Fault):
    """A field of the input is not acceptable. `details` are `{field, error}`."""

    id = "VAL_000"
    category = "validation"
    hint = "compare the field with the tool's input schema"

    def __init__(self, field: str, error: str, remedy: str | None = None) -> None:
        self.field = field
        self.error = error
        super().__init__(error, remedy, {"field": field, "error": error})


class MissingField(Invalid):
    id = "VAL_001"
    hint = "give every required field"


class WrongType(Invalid):
    id = "VAL_002"
    hint = "send the JSON type that the schema names; numbers are not quoted"


class BadLength(Invalid):
    id = "VAL_003"
    hint = "keep within the length that the message names"


class OutOfRange(Invalid):
    id = "VAL_004"
    hint = "keep within the range that the message names; nothing is clamped"


class NotAChoice(Invalid):
    id = "VAL_005"
    hint = "use one of the values that the message lists"


class UnknownField(Invalid):
    id = "VAL_006"
    hint = "remove the field, or see the schema for the name that was meant"


class BadPath(Invalid):
    id = "VAL_007"
    hint = "give a clean absolute path without '..' components"


class BadText(Invalid):
    id = "VAL_008"
    hint = "send valid Unicode without NUL, and names without any control character"


class BadFormat(Invalid):
    id = "VAL_009"
    hint = "use the format that the message names"


class TooLarge(Invalid):
    id = "VAL_011"
    hint = "send less in one request"


class EmptyQuery(Invalid):
    id = "VAL_010"
    hint = "say what to search for"


class WrongMethod(Fault):
    id = "VAL_012"
    category = "validation"
    hint = "use a method that the Allow header names"


class NotWorthKeeping(Invalid):
    id = "MEM_001"
    hint = "say what was learned: what was tried, what came of it and why, in a sentence or more"


# --- not found ------------------------------------------------------------------------


class NotFound(Fault):
    id = "REC_001"
    category = "not_found"
    hint = "check the id; a list or search tool shows what exists"

    def __init__(self, what: str, id: str, remedy: str | None = None) -> None:
        super().__init__(f"{what} not found", remedy, {"what": what})


class Gone(Fault):
    id = "REC_003"
    category = "not_found"
    hint = "use what the message names instead"


class UnknownTool(Fault):
    id = "TOOL_001"
    category = "not_found"
    hint = "list the tools to see their names"

    def __init__(self) -> None:
        super().__init__("unknown tool")


class NotAProject(Fault):
    id = "IDX_001"
    category = "not_found"
    hint = "give the folder of a project: it must hold go.mod or a source file of a supported language"


class NotIndexed(Fault):
    id = "IDX_003"
    category = "not_found"
    hint = "run index_codebase on it first"

    def __init__(self) -> None:
        reason = "Project not indexed. Run index_codebase first."
        super().__init__("the project is not indexed", None, {"reason": reason})


# --- the caller and its allowance -----------------------------------------------------


class Unauthorized(Fault):
    id = "SEC_001"
    category = "unauthorized"
    hint = "send 'Authorization: Bearer TOKEN'; make one with 'contextd token create --name NAME'"

    def __init__(self, problem: str = "a valid token is required") -> None:
        super().__init__(problem)


class NoCertificate(Unauthorized):
    id = "SEC_005"
    hint = "show a certificate; make one with 'contextd cert issue --name NAME --out DIR'"


class Forbidden(Fault):
    id = "SEC_002"
    category = "forbidden"
    hint = "use a token that covers this project ('contextd token create --project PATH')"


class WrongHost(Forbidden):
    """A page elsewhere made its own name point here: the DNS-rebinding attack."""

    id = "SEC_003"
    hint = "use the address that the daemon listens on, or add the name to CONTEXTD_ALLOWED_HOSTS"


class WrongOrigin(Forbidden):
    id = "SEC_004"
    hint = "add the web origin to CONTEXTD_ALLOWED_ORIGINS if it may call the daemon"


class RateLimited(Fault):
    id = "LIM_001"
    category = "rate_limited"
    hint = "wait for retry_after_ms, then call again"

    def __init__(self, tool: str, retry_after_ms: int) -> None:
        super().__init__(
            f"rate limit exceeded for tool: {tool}",
            f"try again in {retry_after_ms} ms",
            {"tool": tool, "retry_after_ms": retry_after_ms},
        )


class TimedOut(Fault):
    id = "LIM_002"
    category = "timeout"
    hint = "try again, or ask for less in one call"

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(
            f"{tool} did not finish within {seconds:g} s", None, {"tool": tool, "timeout_s": seconds}
        )


class Cancelled(Fault):
    id = "LIM_003"
    category = "cancelled"
    hint = "call again if the answer is still wanted"


# --- the server and what stands behind it ---------------------------------------------


class Conflict(Fault):
    id = "REC_002"
    category = "conflict"
    hint = "read the current state, then try again"


class IndexingInProgress(Conflict):
    id = "IDX_002"
    hint = "wait until it is done: get_status says when, and searches answer from the index as it was"

    def __init__(self) -> None:
        super().__init__("the project is being indexed already")


class Unavailable(Fault):
    id = "SRV_001"
    category = "unavailable"
    hint = "try again shortly; 'contextd doctor' says what is down"


class StoreUnavailable(Unavailable):
    id = "SRV_002"
    hint = "check the disk, or the server that CONTEXTD_STORE or QDRANT_URI names"


class EmbedderUnavailable(Unavailable):
    id = "SRV_003"
    hint = "check EMBEDDING_BASE_URL; records are kept and embedded when it is back"


class LanguageModelUnavailable(Unavailable):
    id = "SRV_005"
    hint = "check CONTEXTD_LLM_BASE_URL and the daily token cap; answers are made without it meanwhile"


class Draining(Unavailable):
    id = "SRV_004"
    hint = "connect again: the daemon is shutting down or restarting"

    def __init__(self) -> None:
        super().__init__("the daemon is shutting down")


# --- folding and references ------------------------------------------------------------


class NoSuchBranch(Fault):
    id = "FOLD_001"
    category = "not_found"
    hint = "use a branch_id that the branch tool gave to you; finished ones are forgotten after three days"

    def __init__(self) -> None:
        super().__init__("branch not found")


class BranchEnded(Fault):
    id = "FOLD_002"
    category = "conflict"
    hint = "call without branch_id, or open a new branch; branch_status shows what came of this one"

    def __init__(self, state: str) -> None:
        super().__init__(f"the branch has ended: it is {state}", None, {"state": state})


class TooDeep(Invalid):
    id = "FOLD_003"
    hint = "return this branch first, or do the subtask within it"


class TooManyBranches(Fault):
    id = "FOLD_004"
    category = "conflict"
    hint = "return one of the open branches first"


class DaemonFull(Unavailable):
    id = "FOLD_005"
    hint = "try again when others have returned their branches"


class BudgetBeyondParent(Invalid):
    id = "FOLD_006"
    hint = "ask for no more than the parent has left; branch_status shows it"


class BranchTimedOut(Fault):
    id = "FOLD_007"
    category = "timeout"
    hint = "return it with what was found so far; ref_get with the branch_id lists what it read"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the branch's time of {seconds:g} s is over", None, {"timeout_s": seconds})


class BudgetExhausted(Fault):
    id = "FOLD_008"
    category = "conflict"
    hint = "call return with a summary of what was found, then go on in its parent or a new branch"

    def __init__(self, branch_id: str, budget: int, used: int) -> None:
        super().__init__(
            f"the branch's budget of {budget} tokens is used up",
            None,
            {"branch_id": branch_id, "budget": budget, "used": used},
        )


class OtherProject(Invalid):
    id = "FOLD_009"
    hint = "leave project_path out: a branch works in its parent's project"


class TreeFull(TooManyBranches):
    id = "FOLD_010"
    hint = "return the outermost branch and open a new one"


class NoSuchRef(Fault):
    id = "REF_001"
    category = "not_found"
    hint = "use a ref as an answer gave it; refs are kept for three days, then call the tool again"

    def __init__(self) -> None:
        super().__init__("there is nothing under this ref, or no longer")


# --- safe tools -----------------------------------------------------------------------


class SandboxUnavailable(Unavailable):
    """No rung of the ladder holds on this machine. Nothing was run."""

    id = "SBX_001"
    hint = "run 'contextd doctor': it says what this machine lacks and how to get it"


class OutsideProject(Forbidden):
    id = "SBX_002"
    hint = "name a path inside the project; links that lead out of it are not followed"


class AuditUnavailable(Unavailable):
    """A call that must be written down cannot be: it is refused, or its answer withheld."""

    id = "AUD_001"
    hint = "make room on the disk of CONTEXTD_DATA_DIR and check that contextd may write to it"


class HardLinked(OutsideProject):
    """Another of its names may lie outside, and be somebody's secret."""

    id = "FILE_001"
    hint = (
        "make a copy of its own of it ('cp --remove-destination'), or have the daemon run with"
        " CONTEXTD_ALLOW_HARD_LINKS=true; pnpm links node_modules so unless package-import-method is copy"
    )

    def __init__(self) -> None:
        super().__init__("the file has several names (hard links), and the others may lie outside")


class ProtectedPath(Forbidden):
    id = "FILE_002"
    hint = "leave it to the person at the machine; the project's policy says what may be written"


class NotText(Invalid):
    id = "FILE_003"
    hint = "use safe_bash with a program that knows the format"


class UnknownPlaceholder(Invalid):
    """It stands for a secret of another file, another session or an earlier day."""

    id = "FILE_004"
    hint = "read this file with safe_read in this session, then write it; elsewhere name a variable instead"


class NoMatch(Invalid):
    id = "FILE_005"
    hint = "read the file again with safe_read, and repeat its text exactly"


class FileChanged(Conflict):
    id = "FILE_006"
    hint = "read it again with safe_read, then write with the new sha256"

    def __init__(self, problem: str = "the file has changed meanwhile, and nothing was written") -> None:
        super().__init__(problem)


# --- tool processes -------------------------------------------------------------------


class ToolProcessDown(Unavailable):
    """It did not start, ended in the middle of a call, or keeps failing and is left alone for a while."""

    id = "PLG_001"
    hint = "call again: it is started anew; the daemon's log has what it printed"


class ToolProcessFailed(Fault):
    """The tool itself says that it could not do it."""

    id = "PLG_002"
    category = "internal"
    hint = "change what you ask of it, or see the plugin's own documentation"


class ToolProcessMisspoke(Fault):
    """What it answered, or how it describes itself, is not what it promised when it was installed."""

    id = "PLG_003"
    category = "internal"
    hint = "tell the plugin's author, or install another version of it"


class NotInstallable(Fault):
    """Nothing was installed."""

    id = "PLG_004"
    category = "validation"
    hint = "mend the plugin, or get it from somewhere else"


class NoSuchPlugin(Fault):
    id = "PLG_005"
    category = "not_found"
    hint = "'contextd plugin list' shows those that are installed"

    def __init__(self) -> None:
        super().__init__("there is no plugin of this name")


# --- contextd itself ------------------------------------------------------------------


class Internal(Fault):
    id = "SRV_500"
    category = "internal"
    hint = "try again; the daemon's log has the cause under this request id"

    def __init__(self, request_id: str = "") -> None:
        details = {"request_id": request_id} if request_id else {}
        super().__init__("something went wrong inside contextd", None, details)


class Misconfigured(Fault):
    """The settings cannot work together; raised before anything is served."""

    id = "CFG_001"
    category = "validation"
    hint = "see 'contextd config' for each value and where it came from"


def catalogue() -> Iterator[type[Fault]]:
    """Every fault that has an id of its own, in the order of the ids."""

    def walk(cls: type[Fault]) -> Iterator[type[Fault]]:
        for sub in cls.__subclasses__():
            yield sub
            yield from walk(sub)

    yield from sorted(walk(Fault), key=lambda cls: cls.id)
