"""Clouds: AWS, Google, Azure and those who rent out machines."""

from typing import Final

from contextd.scrubbing.rule import Rule
from contextd.scrubbing.samples import digits, hexes, lower, mixed, upper, uuid

_ASSIGN: Final = r"""["']?[ \t]*(?::=|=>|[:=])[ \t]*["']?"""

CLOUD_RULES: Final = (
    Rule(
        name="aws-access-key-id",
        vendor="AWS",
        keywords=("akia", "asia", "abia", "acca"),
        pattern=r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
        hits=("AKIA" + upper(16), f"aws_access_key_id = ASIA{upper(16)}\n", f'id="AKIA{upper(16)}"'),
        misses=("AKIA" + "IOSFODNN7EXAMPLE", "AKIA" + upper(15), "AKIA" + lower(16), "Asia and Africa"),
    ),
    Rule(
        name="aws-secret-access-key",
        vendor="AWS",
        keywords=("secret_access_key", "secretaccesskey", "aws_secret", "secret access key", "aws-secret"),
        pattern=r"(?i)(?:secret[ _-]?access[ _-]?key|aws[_-]secret(?:[_-]key)?)[ \t]*(?:\[\w*\])?"
        + _ASSIGN
        + r"([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)",
        hits=(
            f"aws_secret_access_key = {mixed(20)}/{mixed(19)}",
            f'"SecretAccessKey": "{mixed(19)}+{mixed(20)}"',
            f"export AWS_SECRET_ACCESS_KEY={mixed(40)}\n",
        ),
        misses=(
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
            "aws_secret_access_key = ${SECRET}",
            "the secret access key is shown once",
        ),
    ),
    Rule(
        name="aws-session-token",
        vendor="AWS",
        keywords=("session_token", "sessiontoken", "security_token"),
        pattern=r"(?i)(?:aws[_-])?(?:session|security)_?token" + _ASSIGN + r"([A-Za-z0-9/+=]{100,})",
        hits=(f"aws_session_token = {mixed(200)}==", f'"SessionToken": "IQoJ{mixed(300)}"'),
        misses=("aws_session_token = $TOKEN", "SessionToken: string"),
        window=8_192,
    ),
    Rule(
        name="aws-bedrock-api-key",
        vendor="AWS",
        keywords=("absk", "bedrock-api-key-"),
        pattern=r"\bABSK[A-Za-z0-9+/]{100,}={0,2}|bedrock-api-key-[A-Za-z0-9+/=_-]{40,}",
        hits=("ABSK" + mixed(124) + "==", "bedrock-api-key-" + mixed(60)),
        misses=("ABSK" + mixed(20), "bedrock-api-key-name"),
        window=4_096,
    ),
    Rule(
        name="google-api-key",
        vendor="Google",
        keywords=("aiza",),
        pattern=r"\bAIza[A-Za-z0-9_-]{35,}",
        hits=(
            "AIza" + mixed(35),
            f"https://maps.googleapis.com/maps/api/js?key=AIza{mixed(30)}-_{mixed(3)}",
        ),
        misses=("AIza" + mixed(20), "AIza" + "x" * 35),
    ),
    Rule(
        name="google-oauth-client-secret",
        vendor="Google",
        keywords=("gocspx-",),
        pattern=r"GOCSPX-[A-Za-z0-9_-]{28,}",
        hits=("GOCSPX-" + mixed(28),),
        misses=("GOCSPX-" + mixed(10), "GOCSPX-your-client-secret-goes-in-here-now"),
    ),
    Rule(
        name="google-oauth-token",
        vendor="Google",
        keywords=("ya29.", "1//0"),
        pattern=r"\bya29\.[A-Za-z0-9_-]{30,}|\b1//0[A-Za-z0-9_-]{40,}",
        hits=("ya29." + mixed(160), "1//0" + mixed(60)),
        misses=("ya29.short", "1//0 is a floor division by zero"),
    ),
    Rule(
        name="google-messaging-key",
        vendor="Google",
        keywords=(":apa91b",),
        pattern=r"\bAAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{120,}",
        hits=("AAAA" + mixed(7) + ":APA91b" + mixed(134),),
        misses=("AAAA" + mixed(7) + ":APA91b" + mixed(10),),
    ),
    Rule(
        name="azure-storage-key",
        vendor="Azure",
        keywords=(
            "accountkey",
            "account_key",
            "storage_key",
            "storagekey",
            "sharedaccesskey",
            "accesskey=",
        ),
        pattern=r"(?i)(?:account_?key|storage_?key|shared_?access_?key|access_?key)"
        + _ASSIGN
        + r"([A-Za-z0-9+/]{43,86}={1,2})",
        hits=(
            f"DefaultEndpointsProtocol=https;AccountName=box;AccountKey={mixed(86)}==;EndpointSuffix=x",
            f"Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={mixed(43)}=",
        ),
        misses=("AccountKey=<storage-account-key>;", "SharedAccessKeyName=RootManageSharedAccessKey"),
    ),
    Rule(
        name="azure-sas-signature",
        vendor="Azure",
        keywords=("sig=",),
        pattern=r"[?&;]sig=([A-Za-z0-9%+/=]{43,})",
        hits=(f"https://box.blob.core.windows.net/c?sv=2024-01-01&sp=r&sig={mixed(43)}%3D",),
        misses=("?sig=short", "sig=" + mixed(43)),
    ),
    Rule(
        name="azure-client-secret",
        vendor="Azure",
        keywords=("q~",),
        pattern=r"(?:^|[^A-Za-z0-9_~.-])([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})(?:[^A-Za-z0-9_~.-]|$)",
        hits=("a.B7Q~" + mixed(34), f"client_secret: '-_k8Q~{mixed(31)}'"),
        misses=("aB7Q~" + mixed(34), "aaa7Q~" + mixed(10)),
    ),
    Rule(
        name="azure-devops-token",
        vendor="Azure",
        keywords=("azdo",),
        pattern=r"\b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b",
        hits=(mixed(76) + "AZDO" + mixed(4),),
        misses=("AZDO" + mixed(4), mixed(30) + "AZDO" + mixed(4)),
    ),
    Rule(
        name="azure-redis-password",
        vendor="Azure",
        keywords=("redis.cache.windows.net", "redis.azure.net"),
        pattern=r"(?i)redis\.(?:cache\.windows|azure)\.net:[0-9]+,[^\s\"']*?password=([A-Za-z0-9+/]{40,}=?)",
        hits=(f"box.redis.cache.windows.net:6380,password={mixed(43)}=,ssl=True",),
        misses=("box.redis.cache.windows.net:6380,ssl=True",),
    ),
    Rule(
        name="digitalocean-token",
        vendor="DigitalOcean",
        keywords=("dop_v1_", "doo_v1_", "dor_v1_"),
        pattern=r"do[opr]_v1_[a-f0-9]{64,}",
        hits=("dop_v1_" + hexes(64), "doo_v1_" + hexes(64), "dor_v1_" + hexes(64)),
        misses=("dop_v1_" + hexes(20), "dop_v1_" + "x" * 64),
    ),
    Rule(
        name="heroku-api-key",
        vendor="Heroku",
        keywords=("hrku-", "heroku"),
        pattern=r"HRKU-[A-Za-z0-9_-]{36,}"
        r"|(?i:heroku[\w.-]*(?:key|token|secret)[\"']?[ \t]*[:=][ \t]*[\"']?)"
        r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})",
        hits=("HRKU-AA" + mixed(58), f"HEROKU_API_KEY={uuid()}"),
        misses=("HRKU-short", f"heroku release {uuid()}"),
    ),
    Rule(
        name="cloudflare-api-token",
        vendor="Cloudflare",
        keywords=("cloudflare", "cf_api", "cf_token", "cf-api"),
        pattern=r"(?i:(?:cloudflare|cf)[\w.-]*(?:key|token|secret)[\"']?[ \t]*[:=][ \t]*[\"']?)"
        r"([A-Za-z0-9_-]{37,45})\b",
        hits=(f"CLOUDFLARE_API_TOKEN={mixed(40)}", f'cf_api_key: "{hexes(37)}"'),
        misses=("CLOUDFLARE_API_TOKEN=${TOKEN}", f"cloudflare ray {hexes(16)}"),
    ),
    Rule(
        name="cloudflare-origin-ca-key",
        vendor="Cloudflare",
        keywords=("v1.0-",),
        pattern=r"\bv1\.0-[a-f0-9]{24}-[a-f0-9]{100,}",
        hits=(f"v1.0-{hexes(24)}-{hexes(146)}",),
        misses=("v1.0-beta", f"v1.0-{hexes(24)}"),
    ),
    Rule(
        name="alibaba-access-key-id",
        vendor="Alibaba Cloud",
        keywords=("ltai",),
        pattern=r"\bLTAI[A-Za-z0-9]{16,24}\b",
        hits=("LTAI" + mixed(20),),
        misses=("LTAI" + mixed(8), "voltaire"),
    ),
    Rule(
        name="fly-token",
        vendor="Fly.io",
        keywords=("fo1_", "fm1r_", "fm1a_", "fm2_"),
        pattern=r"\b(?:fo1_[A-Za-z0-9_-]{43,}|fm(?:1[ar]|2)_[A-Za-z0-9+/=_-]{90,})",
        hits=("fo1_" + mixed(43), "fm2_" + mixed(120) + "=="),
        misses=("fo1_" + mixed(5), "fm2_frequency"),
        window=4_096,
    ),
    Rule(
        name="supabase-secret",
        vendor="Supabase",
        keywords=("sbp_", "sb_secret_"),
        pattern=r"sbp_(?:v0_|oauth_)?[a-f0-9]{40,}|sb_secret_[A-Za-z0-9_-]{22,}",
        hits=("sbp_" + hexes(40), "sb_secret_" + mixed(31)),
        misses=("sbp_" + hexes(10), "sb_publishable_" + mixed(31)),
    ),
    Rule(
        name="planetscale-credential",
        vendor="PlanetScale",
        keywords=("pscale_",),
        pattern=r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,}",
        hits=("pscale_tkn_" + mixed(43), "pscale_pw_" + mixed(43)),
        misses=("pscale_tkn_short", "pscale_branch_" + mixed(32)),
    ),
    Rule(
        name="yandex-cloud-key",
        vendor="Yandex Cloud",
        keywords=("aqvn",),
        pattern=r"\bAQVN[A-Za-z0-9_-]{35,38}\b",
        hits=("AQVN" + mixed(36),),
        misses=("AQVN" + digits(6),),
    ),
)
