"""Known values: a secret that was met once is found in whatever form it comes again."""

import base64
import html
import json
import re
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from contextd.domain.placeholders import restored
from contextd.scrubbing import known_values
from contextd.scrubbing.known_values import KnownValues
from contextd.scrubbing.scrubber import SecretScrubber

SECRET = "k7Qz/2mXv+9RtB4&wLs?N8"
relaxed = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
values = st.text(
    st.characters(min_codepoint=33, max_codepoint=126) | st.sampled_from("äß→"), min_size=12, max_size=40
).map(lambda text: f"q7{text}Z3x")
ENCODINGS: dict[str, Callable[[str], str]] = {
    "as is": str,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 without padding": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "base64, one before": lambda value: base64.b64encode(f"a{value}bc".encode()).decode(),
    "base64, two before": lambda value: base64.b64encode(f"ab{value}c".encode()).decode(),
    "base64 of a file": lambda value: base64.encodebytes(
        f"{'x' * 50}\nKEY={value}\n".encode() * 3
    ).decode(),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "URL": quote,
    "URL, all reserved": lambda value: quote(value, safe=""),
    "URL, small hex": lambda value: quote(value, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    "URL, some": lambda value: "".join(
        f"%{ord(char):02x}" if at % 3 == 1 and char.isascii() else quote(char, safe="/")
        for at, char in enumerate(value)
    ),
    "URL, every byte": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "form": quote_plus,
    "JSON": json.dumps,
    "JSON in JSON": lambda value: json.dumps(json.dumps(value)),
    "JSON as it is": lambda value: json.dumps(value, ensure_ascii=False),
    "shell": shlex.quote,
    "shell, double": lambda value: '"' + re.sub(r'([\\"$`])', r"\\\1", value) + '"',
    "shell, each": lambda value: re.sub(r"(\W)", r"\\\1", value),
    "HTML": html.escape,
}


def scrubber_with(*secrets: str) -> SecretScrubber:
    scrubber = SecretScrubber(key=lambda: b"tests")
    scrubber.learn_environment({f"APP_{number}_PASSWORD": secret for number, secret in enumerate(secrets)})
    return scrubber


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_known_value_is_found_in_each_form_and_has_one_placeholder(encoding: str) -> None:
    scrubber = scrubber_with(SECRET)
    plain = scrubber.scrub(f"<{SECRET}>")
    written = ENCODINGS[encoding](SECRET)
    scrubbed = scrubber.scrub(f"it is <{written}>\n")
    assert plain.text[1:-1] in scrubbed.text
    assert sum(scrubbed.findings.values()) == (3 if encoding == "base64 of a file" else 1)
    if encoding != "base64 of a file":
        assert len(scrubbed.text) <= len("it is <>\n") + len(plain.text) + 6


@relaxed
@given(values, st.sampled_from(sorted(ENCODINGS)), st.text(max_size=20), st.text(max_size=20))
def test_no_known_value_survives_any_encoding(value: str, encoding: str, before: str, after: str) -> None:
    scrubber = scrubber_with(value)
    assume(scrubber.scrub(f"<{value}>").findings)
    written = ENCODINGS[encoding](value)
    assume(written not in before + after)
    clean = scrubber.scrub(f"{before} {written} {after}").text
    assert written not in clean
    assert written.strip("'\"=\n") not in clean
    assert scrubber.scrub(clean).text is clean


@relaxed
@given(st.binary(max_size=20), st.binary(max_size=20))
def test_the_base64_of_anything_around_a_value_tells_nothing_of_it(before: bytes, after: bytes) -> None:
    code = base64.b64encode(before + SECRET.encode() + after).decode()
    clean = scrubber_with(SECRET).scrub(code).text
    left, _, right = clean.partition("[REDACTED:")
    kept = base64.b64decode(left + "A" * (-len(left) % 4))
    tail = right.partition("]")[2]
    assert SECRET[:1].encode() not in kept[len(before) :]
    assert len(tail) * 6 <= len(after + b"==") * 8


def test_a_value_of_the_environment_is_known_by_the_name_of_its_variable() -> None:
    scrubber = SecretScrubber()
    taken = scrubber.learn_environment(
        {
            "DB_PASSWORD": SECRET,
            "API_TOKEN": "9f3a7c1e5b0d82649f3a",
            "HOME": "/home/k7Qz2mXv9RtB4w",
            "ADMIN_PASSWORD": "changeme",
            "PROD_PASSWORD": "production-1",
            "SHORT_PASSWORD": "a1B2c3",
            "SECRET_KEY_FILE": "/run/secrets/k7Qz2mXv9RtB",
        }
    )
    assert taken == 2
    text = "production-1 changeme a1B2c3 /home/k7Qz2mXv9RtB4w"
    assert scrubber.scrub(text).text is text


def test_a_vendors_token_keeps_its_name_when_it_is_known() -> None:
    token = "ghp_" + "a1B2" * 9
    scrubber = SecretScrubber(key=lambda: b"one")
    before = scrubber.scrub(f"see {token}").text
    scrubber.learn_environment({"GITHUB_TOKEN": token})
    assert scrubber.scrub(f"see {token}").text == before
    assert scrubber.scrub(f"see {token.encode().hex()}").text == before


FILES = {
    "dotenv": f'# settings\nexport DB_PASSWORD="{SECRET}"\nDEBUG=1\n',
    "aws": f"[default]\naws_secret_access_key = {SECRET}\nregion = eu-west-1\n",
    "npmrc": f"//registry.corp.dev/:_authToken={SECRET}\n",
    "pypirc": f"[pypi]\nusername = me\npassword = {SECRET}\n",
    "netrc": f"machine corp.dev login me password {SECRET}\n",
    "gcloud": json.dumps({"type": "authorized_user", "refresh_token": SECRET}),
    "azure": json.dumps({"accounts": [{"name": "a", "client_secret": SECRET}]}),
    "kubeconfig": f"users:\n- name: me\n  user:\n    token: {SECRET}\n",
    "docker": json.dumps(
        {"auths": {"corp.dev": {"auth": base64.b64encode(f"me:{SECRET}".encode()).decode()}}}
    ),
    "properties": f"db.password: '{SECRET}'\r\nother: 1\r\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_the_secrets_of_a_file_of_credentials_are_learned_on_request(kind: str) -> None:
    scrubber = SecretScrubber()
    assert not scrubber.scrub(f"> {SECRET} <").findings
    assert scrubber.learn(FILES[kind], kind) >= 1
    assert scrubber.scrub(f"> {SECRET} <").text.startswith("> [REDACTED:")
    assert scrubber.scrub(f"> {SECRET.encode().hex()} <").findings
    assert scrubber.learn(FILES[kind], kind) == 0


def test_one_that_remembers_finds_again_what_it_found_and_one_that_does_not_does_not() -> None:
    token = "glpat-" + "a1B2" * 5
    code = base64.b64encode(f"x{token}".encode()).decode()
    remembering, forgetting = SecretScrubber(remembers=True), SecretScrubber()
    for scrubber in (remembering, forgetting):
        assert not scrubber.scrub(code).findings
        assert scrubber.scrub(token).findings
    assert remembering.scrub(code).findings == {"gitlab-token": 1}
    assert not forgetting.scrub(code).findings


def test_a_value_that_one_string_gives_away_is_removed_from_the_strings_before_it() -> None:
    scrubber = SecretScrubber(remembers=True)
    value = "k7Qz2mXv9RtB4wLsN8pY"
    answer, _ = scrubber.scrub_json({"first": f"see {value}", value: 1, "then": f"api_key = '{value}'"})
    assert value not in str(answer)
    assert scrubber.scrub_json(answer)[0] is answer


@relaxed
@given(st.lists(st.sampled_from([SECRET, SECRET.encode().hex(), f"password = '{SECRET}'", "\n", "text "])))
def test_scrubbing_twice_is_scrubbing_once_for_one_that_remembers(parts: list[str]) -> None:
    scrubber = SecretScrubber(remembers=True)
    once = scrubber.scrub("".join(parts)).text
    assert scrubber.scrub(once).text is once


def test_a_finding_over_more_than_a_known_value_has_a_placeholder_of_its_own() -> None:
    token = "ghp_" + "a1B2" * 9
    scrubber = SecretScrubber(remembers=True)
    alone = scrubber.scrub(token)
    thrice = scrubber.scrub(token * 3)
    assert token not in thrice.text
    assert restored(thrice.text, {**thrice.replaced, **alone.replaced}) == token * 3


def test_a_known_value_split_by_colours_is_found() -> None:
    clean = scrubber_with(SECRET).scrub(f"{SECRET[:7]}\x1b[31m{SECRET[7:]}").text
    assert clean.startswith("[REDACTED:")
    assert clean.endswith("]")


# --- bounds ---------------------------------------------------------------------------


def made(number: int) -> str:
    return f"v{number:06}Qz2mXv9RtB4w"


def test_the_oldest_values_make_room_and_the_environments_stay() -> None:
    known = KnownValues()
    known.add([(SECRET, "kept")], kept=True)
    known.add((made(number), "one") for number in range(known_values.MOST_VALUES + 50))
    assert len(known) == known_values.MOST_VALUES
    assert known.find(SECRET)
    assert known.find(made(known_values.MOST_VALUES + 49))
    assert not known.find(made(0))


def test_long_values_do_not_fill_the_memory() -> None:
    known = KnownValues()
    known.add((made(number) * 20, "one") for number in range(known_values.MOST_VALUES))
    assert len(known) * len(made(0)) * 20 <= known_values.MOST_CHARACTERS
    assert known.add([("k7Qz2mXv" * 1_000, "long"), ("k7Qz2mXv\n9RtB4wLs", "lines")]) == 0


def test_a_value_that_is_not_met_again_is_forgotten_in_time() -> None:
    now = [0.0]
    known = KnownValues(lambda: now[0])
    known.add([(made(1), "one"), (made(2), "two")])
    known.add([(SECRET, "kept")], kept=True)
    now[0] = known_values.LIFETIME - 1
    assert known.add([(made(2), "two")]) == 0
    now[0] += 2
    known.add([(made(3), "three")])
    assert not known.find(made(1))
    assert [len(known.find(text)) for text in (made(2), made(3), SECRET)] == [1, 1, 1]


def test_threads_may_learn_while_others_look() -> None:
    known = KnownValues()

    def work(number: int) -> bool:
        known.add([(made(number), "one")])
        return bool(known.find(f"<{made(number)}>"))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(200)))
