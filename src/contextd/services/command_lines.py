"""Tells a line that is a command from a sentence that begins with a program's name."""

import re
from collections.abc import Mapping
from typing import Final

_ANY_OPERAND: Final = frozenset(
    """
    cat cd chgrp chmod chown cp createdb df dig dropdb du echo g++ gcc getent grep head jq killall less ln
    ls lsof lvremove mkdir modprobe mv nslookup ping pkill printenv pytest rm rmdir rmmod shellcheck ssh-add
    sudo tail touch tsc unset vgremove which xargs zcat
    """.split()
)
"""What follows these may be any name; few sentences begin with them."""
_ALONE: Final = frozenset(
    "df dmesg env htop ifconfig ls lsblk make mount pwd pytest reboot top yarn".split()
)
_SUBCOMMANDS: Final[Mapping[str, frozenset[str]]] = {
    program: frozenset(words.split())
    for programs, words in {
        "apt apt-get yum dnf": (
            "install update upgrade remove purge autoremove clean search list dist-upgrade"
        ),
        "brew": "install update upgrade uninstall services link unlink doctor cleanup reinstall tap",
        "pip pip3 pipx": "install uninstall list freeze check show cache download",
        "npm pnpm yarn bun": (
            "ci install i add remove uninstall run test start build cache audit update dedupe rebuild "
            "exec dlx login config init link publish outdated ls why view explain pkg whoami"
        ),
        "npx bunx": "prisma tsc eslint prettier jest vite next playwright create-react-app rimraf",
        "poetry uv pdm pipenv": (
            "install add remove run sync lock update shell pip venv build init tool python"
        ),
        "conda mamba": "install create activate env update remove list clean",
        "cargo": "build test run check clean update add install fix fmt clippy doc tree bench",
        "rustup": "update default toolchain target component override show",
        "go": "build test run mod get install clean vet fmt env list generate work tool version",
        "git": (
            "add am apply bisect blame branch checkout cherry-pick clean clone commit config diff fetch "
            "gc grep init lfs log merge mv pull push rebase reflog remote reset restore revert rm show "
            "stash status submodule switch tag worktree"
        ),
        "docker podman": (
            "build compose container cp exec image images info inspect kill load login logs network node "
            "ps pull push rename restart rm rmi run save service stack start stats stop swarm system tag "
            "context manifest top volume"
        ),
        "docker-compose": "up down build logs ps restart exec run pull stop start rm config",
        "kubectl oc": (
            "apply annotate attach auth config cordon create delete describe diff drain edit exec expose "
            "explain get label logs patch port-forward rollout run scale set taint top uncordon wait"
        ),
        "helm": "install upgrade uninstall list repo rollback template dependency status get history lint",
        "terraform tofu terragrunt": (
            "init plan apply destroy import state output validate fmt workspace refresh taint untaint "
            "force-unlock show providers version"
        ),
        "systemctl": "start stop restart reload status enable disable daemon-reload mask unmask edit cat",
        "service": "nginx postgresql mysql redis docker ssh apache2",
        "make": (
            "all build check clean deps dev dist distclean docs format fmt generate install lint migrate "
            "release run setup start stop test up down"
        ),
        "bundle": "install update exec config check clean lock info add show",
        "gem": "install update uninstall list cleanup pristine",
        "rails rake": "console server generate test",
        "mvn gradle": "clean install package test verify build compile deploy assemble dependencies",
        "dotnet": "build run test restore clean publish add tool ef nuget new list",
        "java": "",
        "swift": "build test run package",
        "ip": "addr address route link neigh",
        "timedatectl coredumpctl loginctl": "status info list show",
        "apt-file apt-cache": "search policy show update depends",
        "vault": "kv read write login status token delete secrets auth",
        "alembic": "upgrade downgrade current history heads stamp revision merge",
        "gcloud": "auth compute config container projects run sql storage iam services",
        "az": "login account group vm aks webapp acr",
        "aws": "configure sts ec2 s3 s3api iam ecs ecr eks rds logs lambda sso",
        "gh": "auth pr repo issue run workflow release api",
        "composer": "install update require remove dump-autoload",
        "mix": "test compile deps.get format",
        "nvm fnm": "use install ls alias",
        "pyenv rbenv": "install global local rehash versions",
        "redis-cli": "ping info flushall flushdb monitor keys get del dbsize config set",
    }.items()
    for program in programs.split()
}
_PROGRAMS: Final = frozenset(
    """
    curl dd export find kill mkfs mysql psql python python3 sed shred tar truncate wget node ruby perl
    php bash sh openssl rsync scp ssh sqlite3 iptables journalctl
    """.split()
) | {*_SUBCOMMANDS, *_ANY_OPERAND}

_OF_PROSE: Final = frozenset(
    """
    a an the is are was were be been being it its this that these those then and or but if when which
    who whose because so to of for with from by until after before your you my our their we they i not
    too also again instead should must will would can cannot may might does do did has have had into
    onto than there here sure please in on at as about only still already both first next once while
    where how why what all any some every more needs need works fails complains
    """.split()
)
_NO_PROGRAMS: Final = _OF_PROSE | frozenset(
    """
    add adjust append ask avoid bump call change check choose clear close commit compare configure
    consider copy create define delete disable drop edit enable ensure fix give increase inspect keep
    look lower mend move open pass pin prefer put raise read rebuild reduce reinstall remove rename
    replace rerun restart retry review rotate run see set specify start stop switch tell try turn
    update upgrade use verify visit wait write argument file flag folder line note option parameter path
    setting under variable version
    """.split()
)
"""Sentences begin with these; no program that a reader would type without a mark is called so."""
_QUOTED: Final = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_SENTENCE_MARK: Final = re.compile(
    r"[\w)'\"`][,.:?!](?:\s|\Z)|[\w)];\s+(?:if|then|otherwise)\s|\s[\u2013\u2014]\s|\u2026"
)
_PROGRAM: Final = re.compile(r"[a-z_][\w.+-]*|[A-Z][a-z]+-[A-Z]\w+|(?:~|\.{1,2}|[\w.-]+)?/[\w./+-]+")
_ASSIGNED: Final = re.compile(r"\A(?:[A-Z_][A-Z0-9_]*=\S*\s+)+")
_OPTION: Final = re.compile(r"--?[A-Za-z][\w-]*(?:=.*)?|-\d+|--")
_PLACE: Final = re.compile(
    r"[~.$]?\.?/.*|.*[\w.~-]/[\w.-].*|\.|~|\$[\w{(].*|.*\w\.\w.*"
    r"|\w[\w.-]*[=:@].+|[+%]\w+|\d+|[a-z0-9]+-[a-z0-9-]+"
)
_PATH: Final = re.compile(r"(?!\w+://)[~.$\w-]*/\S*")
_LOOP: Final = re.compile(r"(?:for|while|until|if)\s.{1,400};\s*(?:do|then)\s.{1,400};\s*(?:done|fi)\s*\Z")
_LONGEST: Final = 500


def is_command_span(code: str) -> bool:
    """Of what is marked as code: whether it is to be run, rather than a name."""
    first = code.split(maxsplit=1)[:1]
    return bool(first) and (first[0] in _PROGRAMS or is_command_line(code))


def is_command_line(line: str) -> bool:
    """Of a line without any mark: whether it can be nothing but a command."""
    if len(line) > _LONGEST:
        return False
    text = _ASSIGNED.sub("", line.strip())
    if _LOOP.match(text):
        return True
    bare = _QUOTED.sub("''", text)
    words = bare.split()
    if not words or _SENTENCE_MARK.search(bare) or not _PROGRAM.fullmatch(words[0]):
        return False
    if any(word.lower().strip("(),;") in _OF_PROSE for word in words[1:]):
        return False
    return _is_call(words[0], words[1:])


def _is_call(program: str, words: list[str]) -> bool:
    if program == "sudo" and words and not words[0].startswith("-"):
        return _is_call(words[0], words[1:])
    if not words:
        return program in _ALONE or "/" in program or program.count("-") > 1
    if program in _ANY_OPERAND or "/" in program or words[0].lower() in _SUBCOMMANDS.get(program, ()):
        return program != "cd" or len(words) == 1 or words[1] in ("&&", ";")
    has_option = any(map(_OPTION.fullmatch, words))
    if program in _PROGRAMS:
        return has_option or "''" in words or bool(_PLACE.fullmatch(words[0]))
    return program not in _NO_PROGRAMS and (has_option or all(map(_PATH.fullmatch, words)))
