"""The scrubber: every rule by its own samples, then the promises that hold for any text."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from contextd.domain.errors import Internal
from contextd.domain.ports import Scrubber
from contextd.domain.records import Json
from contextd.scrubbing.rules import RULES, Rule
from contextd.scrubbing.rules_generic import GENERIC_RULES
from contextd.scrubbing.scrubber import SecretScrubber

ROOT = Path(__file__).parent.parent
SCRUBBER = SecretScrubber(key=lambda: b"tests")
GITHUB = "ghp_" + "a1B2" * 9
SLACK = "xoxb-" + "7391846205-" * 2 + "a1B2" * 6
ANTHROPIC = "sk-ant-api03-" + "a1B2" * 20
SECRETS = (GITHUB, SLACK, ANTHROPIC, "AKIA" + "Q7ZK" * 4, "glpat-" + "a1B2" * 5, "npm_" + "a1B2" * 9)
PASSWORD = "tr0ub4dor" + "And3"
HIDERS = (
    "\x1b[31m",
    "\x1b[0m\x1b[1m",
    "\x00",
    "\b",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\x1b]0;t\x07",
    "\x7f",
)
PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9_-]+:[0-9a-f]{6}\]")

secrets = st.sampled_from(SECRETS)
fragments = st.one_of(
    secrets,
    st.sampled_from([hit for rule in RULES for hit in rule.hits if len(hit) < 300]),
    st.sampled_from([word for rule in RULES for word in rule.keywords]),
    st.sampled_from(HIDERS),
    st.sampled_from(
        ["=", ": ", '"', "'", "\n", " ", "\\n", "password", "[REDACTED:jwt:0f0f0f]", "://", "@"]
    ),
    st.text(max_size=12),
)
tangles = st.lists(fragments, max_size=8).map("".join)
json_keys = st.one_of(
    st.text(max_size=8), st.sampled_from(["password", "api_key", "name", "value", "tokens_used"])
)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), tangles),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(json_keys, tangles), inner, max_size=4)
    ),
    max_leaves=12,
)
relaxed = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


# --- the table ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_its_hits_and_nothing_in_its_misses(rule: Rule) -> None:
    assert rule.hits, "a rule proves itself"
    assert rule.misses, "a rule knows its limits"
    for hit in rule.hits:
        scrubbed = SCRUBBER.scrub(hit)
        assert scrubbed.findings == {rule.name: 1}, hit
        assert len(PLACEHOLDER.findall(scrubbed.text)) == 1
    for miss in rule.misses:
        assert SCRUBBER.scrub(miss).text is miss


def test_the_table_itself_holds_nothing_that_a_scanner_would_report() -> None:
    vendors = {rule.name for rule in RULES} - {rule.name for rule in GENERIC_RULES}
    for source in (ROOT / "src/contextd/scrubbing").glob("*.py"):
        found = SCRUBBER.scrub(source.read_text(encoding="utf-8")).findings
        assert not vendors & found.keys(), source.name


# --- text -----------------------------------------------------------------------------


def test_it_is_a_scrubber() -> None:
    scrubber: Scrubber = SCRUBBER
    assert scrubber.scrub("").text == ""


def test_a_secret_becomes_its_rule_and_six_digits_that_only_the_key_explains() -> None:
    text = f"first {GITHUB} then {GITHUB}, not {SLACK}"
    scrubbed = SecretScrubber(key=lambda: b"one").scrub(text)
    first, second, other = PLACEHOLDER.findall(scrubbed.text)
    assert first == second
    assert first.startswith("[REDACTED:github-token:")
    assert other.startswith("[REDACTED:slack-token:")
    assert scrubbed.text == f"first {first} then {first}, not {other}"
    assert scrubbed.findings == {"github-token": 2, "slack-token": 1}
    assert SecretScrubber(key=lambda: b"one").scrub(text) == scrubbed
    assert SecretScrubber(key=lambda: b"two").scrub(text) != scrubbed
    assert SecretScrubber().scrub(text) != SecretScrubber().scrub(text)


@given(st.text())
def test_text_without_a_keyword_comes_back_as_the_same_object(text: str) -> None:
    bare = re.sub(r"[^\x20-\x7e\s]", "", text).lower()
    assume(not any(word in text.lower() or word in bare for rule in RULES for word in rule.keywords))
    scrubbed = SCRUBBER.scrub(text)
    assert scrubbed.text is text
    assert scrubbed.findings == {}


@relaxed
@given(before=st.text(max_size=40), secret=secrets, after=st.text(max_size=40))
def test_a_secret_anywhere_in_any_text_is_removed(before: str, secret: str, after: str) -> None:
    assert secret not in SCRUBBER.scrub(f"{before} {secret} {after}").text


@relaxed
@given(tangles)
def test_scrubbing_twice_is_scrubbing_once(text: str) -> None:
    once = SCRUBBER.scrub(text).text
    again = SCRUBBER.scrub(once)
    assert again.text is once
    assert again.findings == {}


@pytest.mark.parametrize("prefix", ["", "İİİ ", "→ größer: ", "👩‍👩‍👧 ", "\ud800 "])
def test_characters_beyond_ascii_move_nothing(prefix: str) -> None:
    scrubbed = SCRUBBER.scrub(f"{prefix}<{GITHUB}>é")
    assert scrubbed.text.startswith((f"{prefix}<[REDACTED:", "👩👩👧 <[REDACTED:"))
    assert scrubbed.text.endswith("]>é")


@given(secrets, st.sampled_from(["\n", "\r\n", "\t", '"']))
def test_a_secret_after_a_written_out_line_break_is_found(secret: str, before: str) -> None:
    once = json.dumps({"out": f"line{before}{secret}{before}next"})
    assert secret not in SCRUBBER.scrub(once).text
    assert secret not in SCRUBBER.scrub(json.dumps(once)).text


def test_a_vendors_rule_names_what_a_generic_rule_finds_too() -> None:
    assert SCRUBBER.scrub(f'password = "{GITHUB}"').findings == {"github-token": 1}


def test_of_two_overlapping_findings_the_longer_is_taken_whole() -> None:
    scrubbed = SCRUBBER.scrub(f'password = "left0ver-{GITHUB}-left0ver"')
    assert scrubbed.findings == {"assigned-secret": 1}
    assert "left0ver" not in scrubbed.text


def test_secrets_far_apart_and_far_from_the_beginning_are_found() -> None:
    filler = "nothing to see in this line\n" * 10_000
    scrubbed = SCRUBBER.scrub(f"{filler}{GITHUB}\n{filler}{SLACK}")
    assert scrubbed.findings == {"github-token": 1, "slack-token": 1}
    assert len(scrubbed.text) < len(filler) * 2 + 100


def test_a_long_private_key_is_one_finding_and_leaves_nothing() -> None:
    body = "\n".join(["k7Qz2mXv9RtB4wLs" * 4] * 200)
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----"
    scrubbed = SCRUBBER.scrub(f"key: |\n{key}\ndone")
    assert scrubbed.findings == {"private-key": 1}
    assert "k7Qz" not in scrubbed.text
    assert scrubbed.text.endswith("]\ndone")


@pytest.mark.parametrize(
    "shown",
    [
        lambda lines: "\n".join(f"id_rsa-{number}-{line}" for number, line in enumerate(lines, 1)),
        lambda lines: "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1)),
        lambda lines: "\n".join(f"+{line}" for line in lines),
        "\r\n".join,
        lambda lines: '"' + '\\n"\n    "'.join(lines) + '"',
        lambda lines: "\n".join(lines[:3]),
    ],
    ids=["grep", "line numbers", "diff", "CRLF", "string literal", "head"],
)
def test_a_private_key_is_found_however_it_is_shown(shown: Callable[[list[str]], str]) -> None:
    lines = ["k7Qz2mXv9RtB4wLs" * 4] * 5 + ["k7Qz2w=="]
    text = shown(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    assert "k7Qz" not in SCRUBBER.scrub(text).text


def test_a_forged_placeholder_shields_no_secret() -> None:
    scrubbed = SCRUBBER.scrub(f"password={PASSWORD}[REDACTED:jwt:000000]\n")
    assert PASSWORD not in scrubbed.text


def test_a_refused_value_does_not_swallow_the_secret_behind_it() -> None:
    scrubbed = SCRUBBER.scrub(f"password=example&token={'a1B2c3D4' * 4}")
    assert scrubbed.text.startswith("password=example&token=[REDACTED:")


@pytest.mark.parametrize(
    "unit",
    [
        "password=",
        "'password', ",
        "password=foobar&",
        "a://b:",
        "eyJaaaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAwYSi\n",
        "foobar",
        "\x1b[",
        "a\b",
        "[REDACTED:",
    ],
)
def test_hostile_repetition_takes_no_more_than_a_moment(unit: str) -> None:
    SCRUBBER.scrub(unit * (60_000 // len(unit)))
    SCRUBBER.scrub("password = '" + unit * 200 + "'")


def test_threads_share_one_scrubber() -> None:
    texts = [f"line {number} {secret}" for number in range(50) for secret in SECRETS]
    with ThreadPoolExecutor(4) as pool:
        assert [each.text for each in pool.map(SCRUBBER.scrub, texts)] == [
            SCRUBBER.scrub(text).text for text in texts
        ]


# --- what hides -----------------------------------------------------------------------


@relaxed
@given(secret=secrets, hider=st.sampled_from(HIDERS), data=st.data())
def test_a_secret_split_by_colour_codes_or_unseen_characters_is_still_found(
    secret: str, hider: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, len(secret) - 1))
    scrubbed = SCRUBBER.scrub(f"see {secret[:at]}{hider}{secret[at:]} here")
    assert scrubbed.text == f"see {PLACEHOLDER.findall(scrubbed.text)[0]} here"


def test_a_secret_in_overstruck_bold_is_still_found() -> None:
    bold = "".join(f"{char}\b{char}" for char in GITHUB)
    assert SCRUBBER.scrub(f"see {bold} here").findings == {"github-token": 1}


def test_colours_around_a_secret_stay() -> None:
    scrubbed = SCRUBBER.scrub(f"\x1b[32mtoken\x1b[0m {GITHUB} \x1b[1mdone\x1b[0m")
    assert scrubbed.text.startswith("\x1b[32mtoken\x1b[0m [REDACTED:github-token:")
    assert scrubbed.text.endswith("\x1b[1mdone\x1b[0m")


def test_coloured_text_without_a_secret_comes_back_as_the_same_object() -> None:
    text = "\x1b[32mPASSED\x1b[0m 12 tests, N\bNA\bAM\bME\bE, zero\u200bwidth, token of thanks"
    assert SCRUBBER.scrub(text).text is text


def test_cleaning_that_joins_a_visible_secret_to_its_neighbour_loses_neither() -> None:
    visible, hidden = "AKIA" + "Q7ZK" * 4, f"{GITHUB[:9]}\x00{GITHUB[9:]}"
    scrubbed = SCRUBBER.scrub(f"{visible}\x1b[0mafter {hidden}")
    assert scrubbed.findings == {"aws-access-key-id": 1, "github-token": 1}
    assert "Q7ZK" not in scrubbed.text
    assert "a1B2" not in scrubbed.text


# --- what is not a secret -------------------------------------------------------------

GO = """
package auth

// Token is what a session shows; its Secret never leaves the vault.
type Token struct {
\tValue     string `json:"token"`
\tExpiresIn int    `json:"expires_in"`
}

func (c *Client) Login(ctx context.Context, user, password string) (*Token, error) {
\treq := LoginRequest{User: user, Password: password, ClientID: c.cfg.ClientID}
\tapiKey := os.Getenv("SERVICE_API_KEY")
\tif apiKey == "" {
\t\treturn nil, fmt.Errorf("login %s: %w", user, ErrNoAPIKey)
\t}
\ttoken, err := c.exchange(ctx, "https://auth.internal:8443/oauth2/token", req)
\tsecret := c.secrets["oauth2-proxy-cookie-secret"]
\tconst tokenHeader = "X-Auth-Token-V2"
\treturn &Token{Value: token.AccessToken, ExpiresIn: 3600}, err
}
"""

PYTHON = '''
TOKEN_URL = "https://login.corp.dev/oauth2/v2.0/token"
MAX_TOKENS = 4096
password_hasher = PasswordHasher(time_cost=3)
DEFAULT_PASSWORD = "changeme"

def connect(host: str, *, password: str | None = None, api_key: str = "") -> Session:
    """`password` may be a reference such as ${DB_PASSWORD} or <your-password>."""
    password = password or os.environ["DB_PASSWORD"]
    token = tokens[index2]
    secret_key = settings.SECRET_KEY_V2
    auth = HTTPBasicAuth(user1, password1)
    next_page_token = response.json()["next_page_token"]
    self.token = tokenizer.decode(ids2, skip_special_tokens=True)
    return Session(host, password=password, api_key=api_key or config.api_key2)
'''

LOCK = """
[[package]]
name = "python-jose"
version = "3.3.0"
description = "JOSE implementation: tokens, secrets and keys"
files = [
    {file = "token-3.tar.gz", hash = "sha256:55779b5e6ad599c6336191246e95eb2293a9ddebd555f796a65f838f"},
]
"node_modules/js-tokens": {
  "version": "4.0.0",
  "resolved": "https://registry.npmjs.org/js-tokens/-/js-tokens-4.0.0.tgz",
  "integrity": "sha512-RdJUflcE3cUzKiMqQgsCu06FPu9UdIJO0beYbPhHN4k6apgJtifcoCtT9bcxOpYBtpD2kCM6Sbzg4Ca=="
}
github.com/golang-jwt/jwt v3.2.2+incompatible h1:IfV12K8xAKAnZqdXVzCZ+TOjboZ2keLg81eXfW3O+oY=
"""

LOG = """
2026-03-01T10:15:32.481Z INFO  auth: token refreshed for user 42, trace=4bf92f3577b34da6a3ce929d0e0e4736
2026-03-01T10:15:33.002Z WARN  secret "db-credentials-v2" not found in namespace prod-eu1, retrying
2026-03-01T10:15:33.950Z INFO  request_id=3f0c9a52-7e64-4d0b-9a8e-1f2d3c4b5a69 GET /v1/tokens?limit=20 200
2026-03-01T10:15:34.100Z INFO  commit 9fceb02d0ae598e95dc970b74767f19372d61af8 deployed to https://app.corp.dev:8443/
    PWD=/home/builder/work/project2
    password: ********
    Authorization: Bearer [hidden]
"""

PROSE = """
To rotate the secret, open the console, choose "API keys" and press *New token*. The password must have
12 characters and a digit. Put the token in `GITHUB_TOKEN`, or run `gh auth login --with-token < file`.
The connection string looks like postgres://user:password@localhost:5432/app, and the header like
`Authorization: Bearer <token>`. Basic authentication is off by default; basic understanding helps.
"""


@pytest.mark.parametrize(
    "text", [GO, PYTHON, LOCK, LOG, PROSE], ids=["go", "python", "lock", "log", "prose"]
)
def test_ordinary_text_has_no_findings(text: str) -> None:
    assert SCRUBBER.scrub(text).text is text


# --- JSON -----------------------------------------------------------------------------


def test_clean_json_comes_back_as_the_same_object() -> None:
    answer: Json = {"results": [{"id": "m-1", "score": 0.5, "ok": True, "none": None}], "tokens_used": 120}
    scrubbed, findings = SCRUBBER.scrub_json(answer)
    assert scrubbed is answer
    assert findings == {}


def test_a_keyword_in_clean_json_changes_nothing() -> None:
    answer: Json = {"note": "the token is refreshed, see https://corp.dev", "password": "<your password>"}
    assert SCRUBBER.scrub_json(answer)[0] is answer


def test_secrets_planted_deep_in_json_are_removed_and_the_rest_is_untouched() -> None:
    clean: Json = {"kept": ["as", {"it": "is"}]}
    scrubbed, findings = SCRUBBER.scrub_json(
        {
            "a": [1, {"b": [f"see {GITHUB}", {"c": {"password": PASSWORD, "n": 2.5}}]}],
            GITHUB: None,
            "clean": clean,
        }
    )
    assert isinstance(scrubbed, dict)
    assert GITHUB not in str(scrubbed)
    assert PASSWORD not in str(scrubbed)
    assert scrubbed["clean"] is clean
    assert findings == {"github-token": 2, "secret-field": 1}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", "hunter" + "2"),
        ("DB_PASSWORD", PASSWORD),
        ("userPassword", "s3cr3t" + "!"),
        ("dbpasswd", PASSWORD),
        ("api_key", "k7Qz2mXv9RtB4wLs"),
        ("x-api-key", "k7Qz2mXv9RtB4wLs"),
        ("accessToken", "9f3a7c1e5b0d82649f3a7c1e5b0d8264"),
        ("client_secret", "9f3a7c1e-4b1d-4c7e-9a2f-9f3a7c1e5b0d"),
        ("Authorization", "Bearer k7Qz2mXv9RtB4wLs"),
        ("auth", "k7Qz2mXv9RtB4wLsN8pY"),
        ("pass\x00word", PASSWORD),
    ],
)
def test_a_value_is_given_away_by_its_key(key: str, value: str) -> None:
    both: list[Json] = [value, [value]]
    for planted in both:
        scrubbed, findings = SCRUBBER.scrub_json({key: planted, "other": "stays"})
        assert value.rsplit(maxsplit=1)[-1] not in str(scrubbed)
        assert "stays" in str(scrubbed)
        assert sum(findings.values()) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", "changeme"),
        ("password", "${DB_PASSWORD}"),
        ("password", "string"),
        ("password", ""),
        ("token", "xxxxxxxxxxxxxxxx"),
        ("api_key", "your-api-key-1"),
        ("secret", "oauth2-proxy-secret"),
        ("token_type", "Bearer9f3a7c1e"),
        ("token_url", "https://auth.corp.dev/oauth2/token"),
        ("next_page_token", "k7Qz2mXv9RtB4wLsN8pY"),
        ("public_key", "k7Qz2mXv9RtB4wLsN8pY"),
        ("id", "9f3a7c1e-4b1d-4c7e-9a2f-9f3a7c1e5b0d"),
        ("sha256", "9f3a7c1e5b0d82649f3a7c1e5b0d8264"),
        ("Authorization", "Bearer <token>"),
    ],
)
def test_a_stand_in_or_a_harmless_key_is_left_alone(key: str, value: str) -> None:
    answer: Json = {key: value}
    assert SCRUBBER.scrub_json(answer)[0] is answer


def test_a_name_beside_a_value_is_as_good_as_a_key() -> None:
    scrubbed, findings = SCRUBBER.scrub_json(
        [{"name": "DB_PASSWORD", "value": PASSWORD}, {"name": "A", "value": "b"}]
    )
    assert findings == {"secret-field": 1}
    assert PASSWORD not in str(scrubbed)


def test_two_keys_that_are_scrubbed_into_one_both_stay() -> None:
    scrubbed, _ = SCRUBBER.scrub_json({GITHUB: 1, f"{GITHUB[:9]}\x00{GITHUB[9:]}": 2})
    assert isinstance(scrubbed, dict)
    assert list(scrubbed.values()) == [1, 2]
    assert "a1B2" not in str(scrubbed)


@relaxed
@given(json_values)
def test_json_keeps_its_shape_and_scrubbing_it_twice_is_scrubbing_it_once(value: Json) -> None:
    once, _ = SCRUBBER.scrub_json(value)
    assert shape(once) == shape(value)
    again, findings = SCRUBBER.scrub_json(once)
    assert again is once
    assert findings == {}


@relaxed
@given(json_values, secrets)
def test_a_secret_planted_in_any_json_is_removed(value: Json, secret: str) -> None:
    scrubbed, _ = SCRUBBER.scrub_json({"before": value, "planted": [f"<{secret}>"], secret: value})
    assert isinstance(scrubbed, dict)
    assert secret not in scrubbed
    assert secret not in str(scrubbed["planted"])


def shape(value: Json) -> object:
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, dict):
        return {"entries": [shape(item) for item in value.values()]}
    return type(value) if isinstance(value, str) else value


# --- failing closed, and rules of one's own -------------------------------------------


def employee_number(name: str = "employee-number", pattern: str = r"\bEMP-[0-9]{6}\b") -> Rule:
    return Rule(name, ("emp-",), pattern, "ACME", ("EMP-" + "739184",), ("EMP-12",))


def test_a_rule_of_ones_own_stands_beside_the_others() -> None:
    scrubber = SecretScrubber((*RULES, employee_number()))
    assert scrubber.scrub(f"emp EMP-739184 {GITHUB}").findings == {"employee-number": 1, "github-token": 1}


def test_a_group_names_the_part_that_is_the_secret() -> None:
    rule = Rule("pin", ("pin",), r"(pin) ([0-9]{4})", "", ("pin 7391",), ("pin 1",), group=2)
    assert SecretScrubber([rule]).scrub("my pin 7391.").text.startswith("my pin [REDACTED:pin:")


def test_no_rules_find_nothing() -> None:
    text = f"{GITHUB} \x1b[0m"
    assert SecretScrubber([]).scrub(text).text is text


def test_a_rule_sees_as_far_from_its_keyword_as_it_says() -> None:
    rule = Rule("far", ("acme",), r"\bEMP-[0-9]{6}\b", "ACME", (), (), window=50)
    text = "acme{}EMP-739184"
    assert SecretScrubber([rule]).scrub(text.format(" " * 30)).findings
    assert not SecretScrubber([rule]).scrub(text.format(" " * 60)).findings


@pytest.mark.parametrize(
    "rules",
    [
        [employee_number(), employee_number()],
        [employee_number("secret-field")],
        [employee_number(pattern="(")],
    ],
)
def test_rules_that_cannot_work_are_refused(rules: list[Rule]) -> None:
    with pytest.raises(ValueError, match="rule"):
        SecretScrubber(rules)


@pytest.mark.parametrize("keywords", [(), ("",), ("Upper",), ("größe",)])
def test_a_keyword_that_could_never_be_found_is_refused(keywords: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="keywords"):
        Rule("odd", keywords, "x", "", (), ())


def test_a_name_that_no_placeholder_could_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="name"):
        employee_number("Employee Number")


def broken(match: str, secret: str) -> bool:
    raise KeyError(secret)


def test_when_a_rule_breaks_no_text_is_returned_and_none_is_told() -> None:
    scrubber = SecretScrubber([Rule("broken", ("emp-",), "EMP-[0-9]+", "", (), (), judge=broken)])
    for scrub in (lambda: scrubber.scrub("EMP-739184"), lambda: scrubber.scrub_json({"a": ["EMP-739184"]})):
        with pytest.raises(Internal) as failure:
            scrub()
        assert "739184" not in str(failure.value)
        assert failure.value.__notes__ == ["the scrubber failed with KeyError"]
        assert failure.value.__suppress_context__


@pytest.mark.parametrize("value", [(1,), {"a": {"b"}}, [b"bytes"], {1: "a"}])
def test_what_is_not_json_is_refused_for_it_could_carry_text_past(value: object) -> None:
    with pytest.raises(Internal):
        SCRUBBER.scrub_json(value)  # type: ignore[arg-type]  # on purpose: not JSON


# --- the document ---------------------------------------------------------------------


def test_the_documents_example_works_as_written() -> None:
    document = (ROOT / "docs/scrubbing.md").read_text(encoding="utf-8")
    for example in re.findall(r"```python\n(.+?)```", document, re.DOTALL):
        exec(compile(example, "docs/scrubbing.md", "exec"), {})
