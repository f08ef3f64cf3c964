"""What must be covered whole: the tools, their validation and the error map."""

import subprocess
import sys

WHOLE = ("src/contextd/tools/*", "src/contextd/edge/error_map.py")


def main() -> int:
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "coverage",
            "report",
            f"--include={','.join(WHOLE)}",
            "--fail-under=100",
            "-m",
        ],
        check=False,
    )
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
