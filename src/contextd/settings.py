"""Settings: the only reader of the environment and of the TOML file.

Each setting is one row: where it is read from, what it means, how it is parsed. The same table
makes `contextd config`, the docs page and the errors.
"""

import fnmatch
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import platformdirs

from contextd.domain.errors import Misconfigured
from contextd.domain.limits import Rate

_OLD_PORT: Final = "SERVER_PORT"


@dataclass(frozen=True, slots=True)
class Source:
    """A setting's shown value and where it came from."""

    name: str
    env: str
    shown: str
    origin: str
    meaning: str


def _setting(
    env: str, default: Any, parse: Callable[[str], Any], meaning: str, *, secret: bool = False
) -> Any:
    metadata = {"env": env, "parse": parse, "meaning": meaning, "secret": secret}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def _text(value: str) -> str | None:
    return value.strip() or None


def _path(value: str) -> Path:
    return Path(value).expanduser().absolute()


def _file(value: str) -> Path | None:
    return _path(value) if value.strip() else None


def _flag(value: str) -> bool:
    word = value.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("use true or false")


def _port(value: str) -> int:
    port = int(value)
    if not 0 <= port <= 65_535:
        raise ValueError("use a port from 0 to 65535 (0 takes a free one)")
    return port


_HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_-]{1,63})*\.?")


def _host(value: str) -> str:
    host = value.strip()
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        if not _HOST.fullmatch(host):
            raise ValueError("use an address or the name of a host, without a port") from None
    return host


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _toolsets(value: str) -> tuple[str, ...]:
    return _names(value) or ("all",)


def _grpc(value: str) -> tuple[str, ...]:
    """`auto`, `off`, or places by commas: `unix:/a/path`, `host:port`."""
    places = _names(value) or ("auto",)
    if places == ("off",):
        return ()
    for place in places:
        if place != "auto":
            _check_place(place)
    return places


def _check_place(place: str) -> None:
    if place.startswith("unix:"):
        if not place.removeprefix("unix:").startswith("/"):
            raise ValueError("use unix: with an absolute path")
        return
    host, colon, port = place.rpartition(":")
    if not colon:
        raise ValueError("use auto, off, unix:/a/path or host:port")
    _host(host)
    _port(port)


def _positive(value: str) -> float:
    number = float(value)
    if not 0 < number < 1e9:
        raise ValueError("use a number greater than 0")
    return number


def _count(value: str) -> int:
    count = int(value)
    if count < 0:
        raise ValueError("use a whole number from 0")
    return count


def _llm_seconds(value: str) -> float:
    seconds = _positive(value)
    if seconds > 50:
        raise ValueError("use at most 50 seconds: troubleshoot itself ends after 60")
    return seconds


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        word = value.strip().lower()
        if word not in allowed:
            raise ValueError(f"use one of: {', '.join(allowed)}")
        return word

    return parse


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`rate` None keeps each tool's own; `on` False lets everything through."""

    on: bool = True
    rate: Rate | None = None

    def __str__(self) -> str:
        if not self.on:
            return "off"
        return f"{self.rate.per_second:g}/{self.rate.burst}" if self.rate else "on"


def _rate_limit(value: str) -> RateLimit:
    word = value.strip().lower()
    if word in ("on", ""):
        return RateLimit()
    if word == "off":
        return RateLimit(on=False)
    rps, slash, burst = word.partition("/")
    if not slash or float(rps) <= 0 or int(burst) < 1:
        raise ValueError("use off, on, or RPS/BURST such as 50/100")
    return RateLimit(rate=Rate(float(rps), int(burst)))


def _data_dir() -> Path:
    return platformdirs.user_data_path("contextd", appauthor=False)


def _policies() -> Path:
    return platformdirs.user_config_path("contextd", appauthor=False) / "policies.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    data_dir: Path = _setting("CONTEXTD_DATA_DIR", _data_dir, _path, "folder for all state")
    http_host: str = _setting("CONTEXTD_HTTP_HOST", "127.0.0.1", _host, "address to listen on")
    http_port: int = _setting("CONTEXTD_HTTP_PORT", 8080, _port, "port to listen on; 0 takes a free one")
    grpc: tuple[str, ...] = _setting(
        "CONTEXTD_GRPC",
        ("auto",),
        _grpc,
        "where gRPC is served: auto (a unix socket in the data folder), unix:/a/path, host:port with"
        " certificates, several by commas, or off",
    )
    allow_anonymous: bool = _setting(
        "CONTEXTD_ALLOW_ANONYMOUS", False, _flag, "serve callers without a token although tokens exist"
    )
    allowed_hosts: tuple[str, ...] = _setting(
        "CONTEXTD_ALLOWED_HOSTS", (), _names, "further Host names that may be used to reach the daemon"
    )
    allowed_origins: tuple[str, ...] = _setting(
        "CONTEXTD_ALLOWED_ORIGINS", (), _names, "further web origins that may call the daemon"
    )
    store: str = _setting(
        "CONTEXTD_STORE", "sqlite:", str.strip, "URL of the store; sqlite: is the data folder"
    )
    qdrant_uri: str | None = _setting("QDRANT_URI", None, _text, "a Qdrant server to keep records in")
    qdrant_api_key: str | None = _setting("QDRANT_API_KEY", None, _text, "key of that server", secret=True)
    embedding_base_url: str | None = _setting(
        "EMBEDDING_BASE_URL",
        None,
        _text,
        "an OpenAI-compatible or TEI endpoint instead of the shipped model",
    )
    embedding_model: str | None = _setting(
        "EMBEDDING_MODEL", None, _text, "the model to ask that endpoint for"
    )
    embedding_api_key: str | None = _setting(
        "EMBEDDING_API_KEY", None, _text, "bearer key of that endpoint", secret=True
    )
    embedding_threads: int = _setting("CONTEXTD_EMBEDDING_THREADS", 2, int, "threads of the shipped model")
    llm_base_url: str | None = _setting(
        "CONTEXTD_LLM_BASE_URL",
        None,
        _text,
        "an OpenAI-compatible endpoint that may help troubleshoot; unset asks no model",
    )
    llm_model: str | None = _setting(
        "CONTEXTD_LLM_MODEL", None, _text, "the model to ask that endpoint for"
    )
    llm_api_key: str | None = _setting(
        "CONTEXTD_LLM_API_KEY", None, _text, "bearer key of that endpoint", secret=True
    )
    llm_daily_tokens: int = _setting(
        "CONTEXTD_LLM_DAILY_TOKENS", 50_000, _count, "tokens a day (UTC) that the model may cost, at most"
    )
    llm_timeout_s: float = _setting(
        "CONTEXTD_LLM_TIMEOUT_S", 20.0, _llm_seconds, "how long an answer is made to wait for the model"
    )
    otlp_endpoint: str | None = _setting(
        "OTEL_EXPORTER_OTLP_ENDPOINT", None, _text, "where traces and metrics are sent; unset sends nothing"
    )
    log_level: str = _setting(
        "CONTEXTD_LOG_LEVEL", "info", _choice("debug", "info", "warning", "error"), "how much is logged"
    )
    log_format: str = _setting(
        "CONTEXTD_LOG_FORMAT", "text", _choice("text", "json"), "how a log line looks"
    )
    rate_limit: RateLimit = _setting(
        "CONTEXTD_RATE_LIMIT", RateLimit, _rate_limit, "on, off, or RPS/BURST for every tool"
    )
    toolsets: tuple[str, ...] = _setting(
        "CONTEXTD_TOOLSETS",
        ("all",),
        _toolsets,
        "which groups of tools are listed, such as errors,code; lean: a few that find the rest; all answer",
    )
    session_idle_s: float = _setting(
        "CONTEXTD_SESSION_IDLE_S", 1800.0, _positive, "an MCP session without requests ends after this"
    )
    drain_s: float = _setting(
        "CONTEXTD_DRAIN_S", 3.5, _positive, "how long calls in flight may finish at shutdown"
    )
    usd_per_million_tokens: float | None = _setting(
        "CONTEXTD_USD_PER_MILLION_TOKENS", None, _positive, "price of a million tokens, for analytics_get"
    )
    tokens_per_minute: float | None = _setting(
        "CONTEXTD_TOKENS_PER_MINUTE",
        None,
        _positive,
        "tokens that an agent reads a minute, for analytics_get",
    )
    sandbox: str = _setting(
        "CONTEXTD_SANDBOX",
        "auto",
        _choice("auto", "bubblewrap", "landlock", "off"),
        "how safe_bash keeps commands apart: the best that this machine has, one of them, or off",
    )
    policies: Path = _setting(
        "CONTEXTD_POLICIES", _policies, _path, "TOML file that says what commands of a project may touch"
    )
    audit: bool = _setting(
        "CONTEXTD_AUDIT",
        True,
        _flag,
        "write every call to the audit log; off leaves those of the safe tools, which always are written",
    )
    allow_hard_links: bool = _setting(
        "CONTEXTD_ALLOW_HARD_LINKS",
        False,
        _flag,
        "let safe_read and safe_write have files with several names, of which some may lie outside",
    )
    hook: str = _setting(
        "CONTEXTD_HOOK",
        "protect",
        _choice("protect", "steer", "off"),
        "what 'contextd hook' turns down: what is dangerous, all that a safe tool could do, or nothing",
    )
    scrub_rules: Path | None = _setting(
        "CONTEXTD_SCRUB_RULES",
        None,
        _file,
        "gitleaks TOML whose rules find secrets besides ours; by default that of the extra 'rules'",
    )
    plugins: tuple[str, ...] = _setting("CONTEXTD_PLUGINS", (), _names, "modules to load as plugins")
    file: Path = field(default_factory=lambda: config_file(os.environ))
    """Where the settings file is, or would be."""
    sources: tuple[Source, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        if self.http_host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.http_host.strip("[]")).is_loopback
        except ValueError:
            return False

    def check_serving(self, *, has_tokens: bool) -> None:
        """Refuse to serve what would be unsafe, or could only call itself."""
        if not (self.is_loopback or has_tokens or self.allow_anonymous):
            raise Misconfigured(
                f"refusing to listen on {self.http_host} without authentication",
                "make a token with 'contextd token create --name NAME', or set"
                " CONTEXTD_ALLOW_ANONYMOUS=true if everyone who can reach this address may use it",
            )
        if self.embedding_base_url and self._is_own_address(self.embedding_base_url):
            raise Misconfigured(
                "EMBEDDING_BASE_URL is the address of contextd itself",
                "point it at the embedding server, or change CONTEXTD_HTTP_PORT",
            )
        if self.llm_base_url and self._is_own_address(self.llm_base_url):
            raise Misconfigured(
                "CONTEXTD_LLM_BASE_URL is the address of contextd itself",
                "point it at the model's server, or change CONTEXTD_HTTP_PORT",
            )

    def _is_own_address(self, url: str) -> bool:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        here = {"localhost", "127.0.0.1", "::1", "0.0.0.0", self.http_host.strip("[]")}
        return port == self.http_port and (parts.hostname or "") in here


def environment() -> Mapping[str, str]:
    """The daemon's own, for those who keep its secrets out of answers."""
    return os.environ


def config_file(environ: Mapping[str, str]) -> Path:
    named = environ.get("CONTEXTD_CONFIG")
    if named:
        return _path(named)
    return platformdirs.user_config_path("contextd", appauthor=False) / "config.toml"


def load_settings(
    environ: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
) -> Settings:
    """Command line over environment over TOML file over defaults. Raises Misconfigured."""
    environ = os.environ if environ is None else environ
    file = config_file(environ)
    table = _read_toml(file)
    values: dict[str, Any] = {}
    sources: list[Source] = []
    warnings: list[str] = []
    for row in fields(Settings):
        if "env" not in row.metadata:
            continue
        env = row.metadata["env"]
        if overrides and overrides.get(row.name) is not None:
            given = _as_text(overrides[row.name])
            values[row.name], origin = _parse(row.metadata, given, _option(row.name)), "command line"
        elif env in environ:
            values[row.name], origin = _parse(row.metadata, environ[env], env), f"environment {env}"
        elif env == "CONTEXTD_HTTP_PORT" and _OLD_PORT in environ:
            values[row.name], origin = (
                _parse(row.metadata, environ[_OLD_PORT], _OLD_PORT),
                f"environment {_OLD_PORT}",
            )
            warnings.append(f"{_OLD_PORT} is the old name: use CONTEXTD_HTTP_PORT")
        elif row.name in table:
            values[row.name] = _parse(
                row.metadata, _as_text(table.pop(row.name)), f"{row.name} in {file.name}"
            )
            origin = str(file)
        else:
            origin = "default"
        table.pop(row.name, None)
        value = values.get(
            row.name, row.default_factory() if callable(row.default_factory) else row.default
        )
        shown = "(set)" if row.metadata["secret"] and value else _shown(value)
        sources.append(Source(row.name, env, shown, origin, row.metadata["meaning"]))
    if table:
        raise Misconfigured(f"unknown setting in {file}: {', '.join(sorted(table))}")
    return Settings(**values, file=file, sources=tuple(sources), warnings=tuple(warnings))


def passed_on(patterns: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of the daemon's own environment, what a command in the sandbox is given: `LANG`, `LC_*`."""
    environ = os.environ if environ is None else environ
    names = (name for pattern in patterns for name in fnmatch.filter(environ, pattern))
    return {name: environ[name] for name in names if not name.startswith("CONTEXTD_")}


def _read_toml(file: Path) -> dict[str, object]:
    if not file.is_file():
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Misconfigured(
            f"the settings file {file} cannot be read ({error})", "mend or remove it"
        ) from error


def _parse(metadata: Mapping[str, Any], value: str, name: str) -> object:
    try:
        return cast(object, metadata["parse"](value))
    except ValueError as error:
        raise Misconfigured(f"{name} is not usable ({error})", "mend or unset it") from error


def _option(name: str) -> str:
    """`--port` for `http_port`."""
    return f"--{name.removeprefix('http_').replace('_', '-')}"


def _as_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return "" if value is None else str(value)
