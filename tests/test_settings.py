"""Settings: where a value comes from, and what is refused."""

from pathlib import Path

import pytest

from contextd.domain.errors import Misconfigured
from contextd.domain.limits import Rate
from contextd.settings import RateLimit, Settings, load_settings


def test_the_command_line_wins_over_the_environment_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        'http_port = 1111\nlog_level = "debug"\nallow_anonymous = true\ntoolsets = ["code", "safe"]\n'
    )
    environ = {"CONTEXTD_CONFIG": str(file), "CONTEXTD_HTTP_PORT": "2222"}
    assert load_settings(environ).http_port == 2222
    settings = load_settings(environ, {"http_port": 3333})
    assert settings.http_port == 3333
    assert (settings.log_level, settings.allow_anonymous, settings.toolsets) == (
        "debug",
        True,
        ("code", "safe"),
    )
    origins = {source.name: source.origin for source in settings.sources}
    assert origins["http_port"] == "command line"
    assert origins["log_level"] == str(file)
    assert origins["http_host"] == "default"


def test_the_old_name_of_the_port_works_and_warns() -> None:
    settings = load_settings({"SERVER_PORT": "9090", "CONTEXTD_CONFIG": "/nonexistent"})
    assert settings.http_port == 9090
    assert settings.warnings == ("SERVER_PORT is the old name: use CONTEXTD_HTTP_PORT",)


def test_a_secret_is_never_shown() -> None:
    settings = load_settings({"EMBEDDING_API_KEY": "hunter2-hunter2", "CONTEXTD_CONFIG": "/nonexistent"})
    assert "hunter2" not in str(settings.sources)
    assert next(s.shown for s in settings.sources if s.name == "embedding_api_key") == "(set)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONTEXTD_HTTP_PORT", "eighty"),
        ("CONTEXTD_HTTP_PORT", "70000"),
        ("CONTEXTD_HTTP_HOST", ""),
        ("CONTEXTD_HTTP_HOST", "http://localhost"),
        ("CONTEXTD_HTTP_HOST", "127.0.0.1:8080"),
        ("CONTEXTD_HTTP_HOST", "a b"),
        ("CONTEXTD_HTTP_HOST", "a" * 70),
        ("CONTEXTD_LOG_LEVEL", "loud"),
        ("CONTEXTD_RATE_LIMIT", "fast"),
        ("CONTEXTD_RATE_LIMIT", "0/5"),
        ("CONTEXTD_ALLOW_ANONYMOUS", "perhaps"),
        ("CONTEXTD_SESSION_IDLE_S", "-1"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=name):
        load_settings({name: value, "CONTEXTD_CONFIG": "/nonexistent"})


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("http_port", 99_999, "--port"),
        ("http_port", -5, "--port"),
        ("http_host", " ", "--host"),
        ("log_level", "loud", "--log-level"),
    ],
)
def test_the_command_line_is_held_to_the_same_as_the_environment(
    name: str, value: object, option: str
) -> None:
    with pytest.raises(Misconfigured, match=f"{option} is not usable"):
        load_settings({"CONTEXTD_CONFIG": "/nonexistent"}, {name: value})


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost", "my-box.example.com", "db_1"])
def test_addresses_and_names_of_hosts_are_taken(host: str) -> None:
    assert load_settings({"CONTEXTD_CONFIG": "/nonexistent"}, {"http_host": host}).http_host == host


@pytest.mark.parametrize(("given", "taken"), [("", ("all",)), ("errors, code,", ("errors", "code"))])
def test_toolsets_are_separated_by_commas_and_are_all_where_none_is_named(
    given: str, taken: tuple[str, ...]
) -> None:
    assert load_settings({"CONTEXTD_CONFIG": "/nonexistent"}, {"toolsets": given}).toolsets == taken
    assert load_settings({"CONTEXTD_CONFIG": "/nonexistent", "CONTEXTD_TOOLSETS": given}).toolsets == taken


@pytest.mark.parametrize("text", ["http_port = ", 'no_such_setting = "x"', "\x00"])
def test_a_settings_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(Misconfigured, match=r"c\.toml"):
        load_settings({"CONTEXTD_CONFIG": str(tmp_path / "c.toml")})


def test_rate_limits_are_on_off_or_a_figure() -> None:
    def parsed(value: str) -> RateLimit:
        return load_settings({"CONTEXTD_RATE_LIMIT": value, "CONTEXTD_CONFIG": "/nonexistent"}).rate_limit

    assert [str(parsed(value)) for value in ("on", "off", "50/100")] == ["on", "off", "50/100"]
    assert parsed("50/100").rate == Rate(50, 100)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.com"])
def test_an_open_address_without_authentication_is_refused(host: str) -> None:
    settings = Settings(http_host=host)
    with pytest.raises(Misconfigured, match="without authentication"):
        settings.check_serving(has_tokens=False)
    settings.check_serving(has_tokens=True)
    Settings(http_host=host, allow_anonymous=True).check_serving(has_tokens=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8"])
def test_a_loopback_address_needs_no_token(host: str) -> None:
    Settings(http_host=host).check_serving(has_tokens=False)


@pytest.mark.parametrize(
    "url", ["http://localhost:8080/v1", "http://127.0.0.1:8080", "http://[::1]:8080/v1"]
)
def test_an_embedding_server_that_is_contextd_itself_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured, match="contextd itself"):
        Settings(embedding_base_url=url).check_serving(has_tokens=False)
    Settings(embedding_base_url=url.replace("8080", "8081")).check_serving(has_tokens=False)
