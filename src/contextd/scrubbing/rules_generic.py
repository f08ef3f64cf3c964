"""Secrets that only their place gives away: after a name, in a header, in a URL, behind a flag."""

from typing import Final

from contextd.scrubbing.names import (
    KEY_OWNERS,
    is_a_random_argument,
    is_a_random_key,
    is_an_assigned_secret,
)
from contextd.scrubbing.rule import Rule
from contextd.scrubbing.samples import hexes, lower, mixed, uuid
from contextd.scrubbing.values import (
    is_a_credential,
    is_a_password_in_its_place,
    is_basic_credentials,
    is_random,
)

_WORDS: Final = ("password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "credential")
_KEYS: Final = tuple(f"{owner}{joint}key" for owner in KEY_OWNERS for joint in ("", "_", "-", "."))
_PASS: Final = tuple(f"pass{after}" for after in ("=", ":", " =", '"', "'"))
_AUTH: Final = tuple(f"auth{after}" for after in ("=", ":", " =", '"', "'"))
_KEYWORDS: Final = (*_WORDS, *_KEYS, *_PASS, *_AUTH, "authorization", "<pass")

_CORE: Final = rf"(?:{'|'.join(_WORDS)}|pass|auth|(?:{'|'.join(KEY_OWNERS)})[_.-]?key)"
_NAME: Final = rf"[\w.-]*{_CORE}[\w.-]*"
_QUOTE: Final = r"\\{0,3}[\"'`]"
_TYPE: Final = r"(?:[ \t]*:)?[ \t]*(?:&?(?:'static )?str(?:ing)?|optional\[str\]|secretstr)(?: \| \w+)?"
_SIGN: Final = (
    rf"(?:{_QUOTE})?\]?(?:(?:{_TYPE})?[ \t]*(?::{{1,3}}=|=>|\|\|=|[?.+]=|[:=])[ \t]*"
    r"|(?: \w+=\"[^\"<>\n]*\")*>\s*"
    rf"|,?\s+(?:{_QUOTE})?value(?:{_QUOTE})?\s*[:=]\s*)"
)
_BARE: Final = r"[^\s\"'`\\,;&<>(){}\[\]|]{6,}"
_QUOTED: Final = (
    r"[bru]{0,2}\\{0,3}(?:\"([^\"\s\\]{6,})\\{0,3}\"|'([^'\s\\]{6,})\\{0,3}'|`([^`\s\\]{6,})\\{0,3}`)"
)

GENERIC_RULES: Final = (
    Rule(
        name="authorization-header",
        vendor="HTTP",
        keywords=("authorization",),
        pattern=r"(?i)authorization[\"']?\]?[ \t]*[:=,][ \t]*[\"'`]?"
        r"(?:bearer|token|apikey|api-key|key|bot|digest)[ \t]+([A-Za-z0-9._~+/=:-]{8,})",
        hits=(
            f"Authorization: Bearer {mixed(32)}",
            f"curl -H 'Authorization: token {hexes(40)}' https://api.dev",
            f'headers["Authorization"] = "Bearer {mixed(24)}"',
        ),
        misses=(
            "Authorization: Bearer <token>",
            "Authorization: Bearer $TOKEN",
            'headers = {"Authorization": f"Bearer {token}"}',
            "Authorization: Bearer YOUR_ACCESS_TOKEN_1",
        ),
        judge=is_a_credential,
    ),
    Rule(
        name="basic-credentials",
        vendor="HTTP",
        keywords=("basic ",),
        pattern=r"(?i)(?:\bauthorization[\"']?[ \t]*[:=,][ \t]*[\"']?)?\bbasic[ \t]+"
        r"([A-Za-z0-9+/]{8,}={0,2})",
        hits=(
            "Authorization: Basic " + "YWxhZGRpbjpvcGVu" + "c2VzYW1l",
            "auth: basic dXNlcjpo" + "dW50ZXIy",
        ),
        misses=("basic authentication", "Authorization: Basic <credentials>", "a basic understanding"),
        judge=is_basic_credentials,
    ),
    Rule(
        name="bearer-token",
        vendor="",
        keywords=("bearer ",),
        pattern=r"(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{16,})",
        hits=(f"sent with bearer {mixed(32)}",),
        misses=(
            "bearer authentication-scheme",
            "bearer tokens are opaque",
            "Bearer ${ACCESS_TOKEN_FROM_ENV1}",
        ),
        judge=is_random,
    ),
    Rule(
        name="session-cookie",
        vendor="HTTP",
        keywords=("cookie",),
        pattern=r"(?i)cookie[\"']?[ \t]*[:=][ \t]*[^\n]*?"
        r"\b[\w.-]*(?:sess|auth|token|jwt|sid)[\w.-]*=([^;\s\"',]{16,})",
        hits=(
            f"Set-Cookie: sessionid={mixed(32)}; Path=/; HttpOnly",
            f"Cookie: a=1; connect.sid=s%3A{mixed(32)}",
        ),
        misses=(
            "Set-Cookie: theme=dark",
            "cookie: sessionid=<your session id>",
            "SESSION_COOKIE_NAME = 'sessionid'",
        ),
        judge=is_random,
    ),
    Rule(
        name="url-password",
        vendor="",
        keywords=("://",),
        pattern=r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@\"'<>]*:([^\s/?#\"'<>\\]{3,})@[\w.\[-]",
        hits=(
            "postgres://app:s3cr3t" + "W0rd@db.internal:5432/app",
            "redis://:k7Qz2mXv" + "@cache:6379/0",
            "https://deploy:sunshine" + "-on-leith@git.corp.dev/x.git",
            "mongodb+srv://u:p@ss" + "w0rd9@cluster0.mongodb.net",
        ),
        misses=(
            "postgres://user:password@localhost/db",
            "https://host:8080/path@2x.png",
            "http://${USER}:${PASS}@host",
            "git+ssh://git@github.com:org/repo.git@v1",
            "amqp://guest:guest@localhost",
            "https://{user}:{password}@host",
            "mail bob@corp.dev at https://corp.dev:443",
        ),
        judge=is_a_password_in_its_place,
    ),
    Rule(
        name="sql-password",
        vendor="SQL",
        keywords=("with password", "encrypted password", "identified "),
        pattern=r"(?i)\b(?:with(?: encrypted)? password|identified(?: with \w+)? by)\s+"
        r"[\"']([^\"'\s]{4,})[\"']",
        hits=(
            "ALTER ROLE app WITH PASSWORD 'blue" + "bird7';",
            "CREATE USER u IDENTIFIED BY 'blue" + "bird7'",
        ),
        misses=(
            "ALTER ROLE app WITH PASSWORD '<password>'",
            "IDENTIFIED BY 'password'",
            "the password 'reset' field",
        ),
        judge=is_a_password_in_its_place,
    ),
    Rule(
        name="curl-user",
        vendor="",
        keywords=("curl ",),
        pattern=r"\bcurl (?:[^\n]|\\\r?\n)*?(?:-u|--user)[ =]*[\"']?[^\s:\"']*:"
        r"(?:([^\s\"']{3,})|([^\"'\n]{3,})[\"'])",
        hits=(
            "curl -s -u admin:s3cr3t" + "W0rd https://jenkins.corp.dev/",
            "curl -X POST https://corp.dev \\\n  -u admin:s3cr3t" + "W0rd",
            "curl -u ':s3cr3t" + "W0rd' https://corp.dev",
        ),
        misses=(
            "curl -u user:password https://x.dev",
            "curl -u $USER:$PASS https://x.dev",
            "curl -u me https://x",
        ),
        judge=is_a_password_in_its_place,
    ),
    Rule(
        name="flag-secret",
        vendor="",
        keywords=tuple(f"-{word}" for word in (*_WORDS, "api-key", "access-key")),
        pattern=rf"(?i)--{_NAME}[ \t]+[\"']?([^\s\"'`;&|<>]{{6,}})",
        hits=("mysqldump --password tr0ub4dor" + "And3 db", f"gh auth --with-token {hexes(40)}"),
        misses=(
            "use --password to set it",
            "--token $TOKEN",
            "--password-file /run/secrets/p1",
            "--token <token>",
        ),
        judge=is_an_assigned_secret,
    ),
    Rule(
        name="assigned-secret",
        vendor="",
        keywords=_KEYWORDS,
        pattern=rf"(?i)(?:://)?{_NAME}{_SIGN}(?:{_QUOTED}|({_BARE})(?:[\s;&\"'`\\|<,)\]}}]|$))",
        hits=(
            'password = "tr0ub4dor' + 'And3"',
            "DB_PASSWORD=hunter" + "2hunter2\n",
            "db.password: s3cr3t" + "W0rd!\n",
            "$dbpasswd = 'tr0ub4dor" + "And3';",
            f'"api_key": "{mixed(24)}",',
            f"apiKey: '{hexes(32)}'",
            f"SECRET_KEY_BASE={hexes(64)}",
            f"const token: string = `{mixed(30)}`;",
            f"client_secret := []byte({mixed(2)}) // client_secret = '{mixed(20)}'",
            f"?access_token={mixed(32)}&page=2",
            f"- name: DB_PASSWORD\n  value: {mixed(12)}\n",
            '<add key="ApiToken" value="' + mixed(20) + '"/>',
            "<password>tr0ub4dor" + "And3</password>",
            f'<Pass encoding="base64">{mixed(20)}==</Pass>',
            "SECRET_KEY = 'zh!=!gq(w^_t[s" + "BR29954x)HI+$ehwss*x'",
            "REDIS_PASSWORD=Redis" + "Pass1!\n",
            '{\\"password\\": \\"tr0ub4dor' + 'And3\\"}',
            f"AUTH_TOKEN={uuid()}",
            "Server=db;User Id=app;Password=tr0ub4dor" + "And3;Encrypt=True",
            f'user["secret"] = "{mixed(20)}"',
            f"x-api-key: {mixed(32)}",
            f"client-key-data: {mixed(3000)}==\n",
            f"ACME_TOKEN ?= {mixed(24)}\n",
            f'$acmeToken .= "{mixed(24)}"',
            f"<acmeToken>\n    {mixed(24)}\n</acmeToken>",
            "hmac_key = '" + "kqzmxvrtbwlsnpyd" + "hcjfgaue7kq3zmxv'",
        ),
        misses=(
            'password = "changeme"',
            "DB_PASSWORD=password123",
            "password: 'getPassword()'",
            "password = ${DB_PASSWORD}",
            "PASSWORD=$(pass show db)",
            'password: "<your password>"',
            "token = xxxxxxxxxxxxxxxx",
            'api_key = "your-api-key-1"',
            'api_key = os.environ["API_KEY_2"]',
            "apiKey: process.env.API_KEY2,",
            "token = request.headers.get('X-Token2')",
            "connect(user=user1, password=password1)",
            "const token = await fetchToken2();",
            "password: string;",
            "self.token = self.tokens.pop2",
            "def login(password: str, token: str) -> None:",
            'token_url = "https://auth.corp.dev/oauth2/token"',
            "max_tokens: 4096000",
            "PWD=/home/user1/project2",
            f"id: {uuid()}",
            f'integrity = "sha512-{mixed(86)}=="',
            '"js-tokens": "^4.0.0"',
            'secretName: "oauth2-proxy-cookie-secret"',
            "secret: oauth2-proxy-v2",
            f"token: sha256:{hexes(64)}",
            'next_page_token = "' + mixed(24) + '"',
            "if token == 'identifier2':",
            "password must have 8characters",
            "auth: _t.AuthType2",
            "private_key: ed25519.Ed25519PrivateKey,",
            "UsageClientAuth: x509.ExtKeyUsageClientAuth,",
            "#include <auth.h>\n#include <pass.h>\n#include <gnu.h>",
            "SIOCSLIFTOKEN = -0x7f879679",
            'filter(password__startswith="sha1$$")',
            "Authorization: AWS4-HMAC-SHA256 Credential=me",
        ),
        window=4_096,
        judge=is_an_assigned_secret,
    ),
    Rule(
        name="assigned-key",
        vendor="",
        keywords=tuple(
            f"key{after}" for after in ('":', "':", '="', "='", ' = "', " = '", ': "', ": '", '\\":')
        ),
        pattern=rf"(?i)[\w.-]*key(?:{_QUOTE})?\]?[ \t]*(?::{{1,3}}=|=>|[?.+]=|[:=])[ \t]*{_QUOTED}",
        hits=(f'"acmeKey": "{mixed(24)}",', f"ACME_KEY = '{lower(32)}'"),
        misses=(
            '"acmeKey": "the-key-of-acme-2",',
            f'"cacheKey": "{mixed(24)}",',
            f'"acmeKey": "{hexes(40)}",',
            f'"publicKey": "{mixed(44)}",',
        ),
        judge=is_a_random_key,
    ),
    Rule(
        name="argument-secret",
        vendor="",
        keywords=_KEYWORDS,
        pattern=rf"(?i){_QUOTE}{_NAME}{_QUOTE}[ \t]*,[ \t]*{_QUOTED}",
        hits=(f'os.getenv("API_KEY", "{mixed(24)}")', f"headers.set('X-Auth-Token', '{hexes(32)}')"),
        misses=(
            '("password", "username2")',
            'os.getenv("API_KEY", "")',
            '["token", "identifier2"]',
        ),
        judge=is_a_random_argument,
    ),
)
