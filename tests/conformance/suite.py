"""The conformance suite as a command, and what it found."""

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from node.npm import environment, installed

EXPECTED_FAILURES = Path(__file__).with_name("expected-failures.yml")
_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_LISTED = re.compile(r"^\s+- (\S+) \[", re.MULTILINE)


@dataclass(frozen=True)
class Check:
    scenario: str
    id: str
    status: str
    says: str
    details: str


@dataclass(frozen=True)
class Findings:
    checks: list[Check]
    exit_status: int
    says: str


@dataclass(frozen=True)
class Suite:
    """The server scenarios of one version of the specification."""

    version: str
    folder: Path

    def scenarios(self) -> set[str]:
        done = self._run("list", "--server", "--spec-version", self.version)
        return set(_LISTED.findall(done.stdout))

    def run(self, url: str) -> Findings:
        results = Path(tempfile.mkdtemp(dir=self.folder))
        done = self._run(
            *("server", "--url", url, "--suite", "all", "--spec-version", self.version),
            *("--expected-failures", str(EXPECTED_FAILURES), "--output-dir", str(results)),
        )
        checks = [check for folder in sorted(results.iterdir()) for check in _checks(folder)]
        return Findings(checks, done.returncode, (done.stdout + done.stderr)[-4000:])

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        package = installed("@modelcontextprotocol/conformance") / "@modelcontextprotocol" / "conformance"
        return subprocess.run(
            ["node", str(package / "dist" / "index.js"), *arguments],
            env=environment(self.folder / "home"),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


def _checks(folder: Path) -> list[Check]:
    named = _FOLDER.fullmatch(folder.name)
    assert named is not None, folder.name
    return [
        Check(
            scenario=named.group(1),
            id=check["id"],
            status=check["status"],
            says=check.get("errorMessage", ""),
            details=json.dumps(check.get("details")),
        )
        for check in json.loads((folder / "checks.json").read_text())
    ]
