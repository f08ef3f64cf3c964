"""Files of credentials, where a value is known by its place: Kubernetes, Docker, NuGet, netrc."""

from typing import Final

from contextd.scrubbing.rule import Rule
from contextd.scrubbing.samples import mixed
from contextd.scrubbing.values import (
    is_a_netrc_password,
    is_a_password_in_its_place,
    is_anything,
    is_basic_credentials,
)

_QUOTE: Final = r"[\"']?"
_VALUE: Final = rf"(?:[|>][+-]?\s+)?{_QUOTE}[A-Za-z0-9+/]{{10,}}={{0,3}}{_QUOTE}[ \t]*\r?\n?"
_BLOCK: Final = rf"(?:[ \t]*#[^\n]*\n)*((?:[ \t]+[\w.-]+:[ \t]*{_VALUE})+)"
_KIND: Final = rf"kind:[ \t]*{_QUOTE}secret{_QUOTE}\s"
_BETWEEN: Final = r"(?:[^\n]*\n){0,12}?"
_ENCODED: Final = mixed(12) + "=="

FILE_RULES: Final = (
    Rule(
        name="kubernetes-secret",
        vendor="Kubernetes",
        keywords=("kind: secret", 'kind: "secret', "kind: 'secret"),
        pattern=rf"(?i){_KIND}{_BETWEEN}data:[ \t]*\r?\n{_BLOCK}"
        rf"|\bdata:[ \t]*\r?\n{_BLOCK}{_BETWEEN}kind:[ \t]*{_QUOTE}secret\b",
        hits=(
            f"kind: Secret\nmetadata:\n  name: db\ndata:\n  user: {_ENCODED}\n  key: {_ENCODED}\n",
            f"data:\n  .dockercfg: |\n    {mixed(40)}\nmetadata:\n  name: db\nkind: Secret\n",
        ),
        misses=(
            f"kind: ConfigMap\ndata:\n  logo: {_ENCODED}\n",
            "kind: Secret\nmetadata:\n  name: db\ndata:\n  user: <base64>\n",
        ),
        window=4_096,
        judge=is_anything,
    ),
    Rule(
        name="docker-auth",
        vendor="Docker",
        keywords=('"auth"', '\\"auth\\"'),
        pattern=r"\\?\"auth\\?\"\s*:\s*\\?\"([A-Za-z0-9+/]{8,}={0,2})\\?\"",
        hits=('{"auths": {"corp.dev": {"auth": "' + "bWU6c3VuLWZs" + 'b3dlcg=="}}}',),
        misses=('{"auth": "required"}', '{"auth": "Basic"}'),
        judge=is_basic_credentials,
    ),
    Rule(
        name="nuget-password",
        vendor="NuGet",
        keywords=("cleartextpassword",),
        pattern=r"(?i)key=\"ClearTextPassword\"\s+value=\"([^\"\s]{6,})\"",
        hits=('<add key="ClearTextPassword" value="sun' + 'flower-seeds" />',),
        misses=('<add key="ClearTextPassword" value="%NUGET_PASSWORD%" />',),
        judge=is_a_password_in_its_place,
    ),
    Rule(
        name="netrc-password",
        vendor="netrc",
        keywords=("login ",),
        pattern=r"(?:^|\s)(?:(?:machine\s+\S+|default)\s+)?login\s+\S+\s+(?:account\s+\S+\s+)?"
        r"password[ \t]+(\S{4,})",
        hits=(
            "machine ftp.corp.dev login me " + "password sunflower",
            "machine ftp.corp.dev login me " + "password bluebird7",
            "login me\n  " + "password bluebird7",
        ),
        misses=(
            "machine x login me password ${PASSWORD_HERE}",
            "the login form and password fields",
            "# login with password authentication",
            "# Return with login / password\n    login_i = 0 if x else 1",
        ),
        judge=is_a_netrc_password,
    ),
)
