"""How to look for a cause that nobody has recorded yet, by the ecosystem that the error comes from."""

from collections.abc import Mapping
from typing import Final

from contextd.domain.fingerprints import ErrorText
from contextd.services.patterns import Action

_SEEN: Final = "the cause, or a place to look next"


def _look(description: str, *commands: str) -> Action:
    return Action(description, commands, _SEEN)


BY_ECOSYSTEM: Final[Mapping[str, tuple[Action, ...]]] = {
    "go": (
        _look("Run the failing package's tests alone, with the race detector.", "go test -race -v ./..."),
        _look("Check that the module files are whole and tidy.", "go mod verify", "go vet ./..."),
    ),
    "python": (
        _look(
            "See which interpreter runs and what is installed in it.", "python -VV", "python -m pip check"
        ),
        _look("Run the failing part with full tracebacks and warnings.", "python -X dev -W default FILE"),
    ),
    "javascript": (
        _look(
            "Compare the versions in use with what the project asks for.", "node --version", "npm ls --all"
        ),
        _look("Run the failing part with stack traces of warnings.", "node --trace-warnings FILE"),
    ),
    "java": (
        _look(
            "See which Java runs and which versions were resolved.", "java -version", "mvn dependency:tree"
        ),
        _look("Read the last 'Caused by' of the stack trace: it is the first cause."),
    ),
    "rust": (
        _look("Run it again with a backtrace.", "RUST_BACKTRACE=1 cargo run"),
        _look("See which versions were resolved, and which twice.", "cargo tree --duplicates"),
    ),
    "c": (
        _look("Build with sanitizers and run again.", "make CFLAGS='-g -fsanitize=address,undefined'"),
        _look("Look at the frames where it stopped.", "gdb --batch -ex run -ex bt ./PROGRAM"),
    ),
    "shell": (
        _look("Run the script with each command shown.", "bash -x SCRIPT"),
        _look("See which program is found, and its version.", "command -v PROGRAM"),
    ),
    "docker": (
        _look(
            "Read the container's last lines and its state.", "docker ps -a", "docker logs --tail 100 NAME"
        ),
        _look("See whether the daemon has room and answers.", "docker info", "docker system df"),
    ),
    "kubernetes": (
        _look("Read what the cluster says of the object.", "kubectl describe pod NAME"),
        _look(
            "Read the newest events and the logs of the last run.",
            "kubectl get events --sort-by=.lastTimestamp",
            "kubectl logs NAME --previous",
        ),
    ),
    "git": (
        _look("See the state of the work tree and where the branch points.", "git status", "git log -3"),
        _look("See what git does, step by step.", "GIT_TRACE=1 git status"),
    ),
    "csharp": (
        _look("Compare the SDK and the packages with what the project asks for.", "dotnet --info"),
        _look("See what was resolved, and build with details.", "dotnet list package", "dotnet build -v n"),
    ),
    "php": (
        _look("Compare the version and the extensions with the project's.", "php -v", "php -m"),
        _look("Check the dependencies and the file's syntax.", "composer diagnose", "php -l FILE"),
    ),
    "ruby": (
        _look("Compare the versions with what the project asks for.", "ruby -v", "bundle check"),
        _look("Run the failing part with warnings and a full trace.", "ruby -w --backtrace-limit=-1 FILE"),
    ),
    "terraform": (
        _look("Check the configuration by itself.", "terraform validate"),
        _look("See what would change, with the log of each request.", "TF_LOG=DEBUG terraform plan"),
    ),
    "aws": (
        _look("See who is asking and where.", "aws sts get-caller-identity", "aws configure list"),
        _look("Repeat the failing call with its requests shown.", "aws SERVICE OPERATION --debug"),
    ),
    "make": (
        _look("See what make would run, and why.", "make --dry-run TARGET", "make --debug=b TARGET"),
        _look("Run the failing command of the recipe alone, in the same folder."),
    ),
    "nginx": (
        _look("Check the configuration by itself.", "nginx -t"),
        _look("Read the end of the error log, and ask the upstream without nginx between."),
    ),
    "sql": (
        _look("Run the failing statement alone, with the values it had."),
        _look("Compare the schema with what the statement expects."),
    ),
}

_ALSO: Final[Mapping[str, str]] = {"npm": "javascript", "cpp": "c"}
"""Ecosystems that another one's tools serve."""

_ANYWHERE: Final = (
    _look("Make it happen again with the smallest input that still fails, and note the exact command."),
    _look("Find the last change before it first failed.", "git log --oneline -20"),
)


def checks_for(error: ErrorText) -> tuple[Action, ...]:
    """From the place of the error to the ecosystem's own tools, then what helps everywhere."""
    own = error.ecosystem or ""
    place = place_of(error)
    there = (_look(f"Read {place}: it happened there."),) if place else ()
    return (*there, *BY_ECOSYSTEM.get(_ALSO.get(own, own), ()), *_ANYWHERE)


def place_of(error: ErrorText) -> str | None:
    """The innermost frame, which Python writes last and the others first."""
    if not error.frames:
        return None
    frame = error.frames[-1 if error.ecosystem == "python" else 0]
    line = f":{frame.line}" if frame.line else ""
    return f"{frame.function or 'the code'} in {frame.file}{line}"
