"""Who is at the other end of a gRPC call, and how a fault is told to them."""

import hashlib
import itertools
import json
import secrets
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import grpc

from contextd.adapters.log_lines import set_request_id
from contextd.domain.callers import LOCAL, Caller, Principal
from contextd.domain.certificates import CertificateLedger
from contextd.domain.errors import Fault, NoCertificate
from contextd.edge.error_map import body, codes
from contextd.services.projects import project_at

Context = grpc.aio.ServicerContext[Any, Any]

FAULT: Final = "contextd-fault-bin"
INLINE_FAULTS: Final = "contextd-inline-faults"


class Doorkeeper:
    """The unix socket is the owner's own: only they can reach it. Everyone else shows a certificate."""

    def __init__(self, ledger: CertificateLedger) -> None:
        self._ledger = ledger
        self._process = secrets.token_hex(4)
        self._requests = itertools.count(1)

    def principal(self, context: Context) -> Principal:
        """Raises NoCertificate."""
        if is_local(context):
            return LOCAL
        shown = context.auth_context().get("x509_pem_cert")
        if not shown:
            raise NoCertificate("there is no client certificate")
        known = self._ledger.verify(_fingerprint(bytes(next(iter(shown)))))
        if known is None:
            raise NoCertificate("the certificate was revoked, has ended or is not known")
        projects = None if known.projects is None else frozenset(project_at(p).key for p in known.projects)
        return Principal(known.name, projects)

    def caller(self, context: Context) -> Caller:
        request_id = f"{self._process}{next(self._requests):08x}"
        set_request_id(request_id)
        return Caller(
            principal=self.principal(context),
            transport="grpc",
            client=headers_of(context).get("user-agent"),
            request_id=request_id,
        )


def is_local(context: Context) -> bool:
    return context.peer().startswith("unix:")


def headers_of(context: Context) -> Mapping[str, str]:
    """Those that are text."""
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def wants_inline(context: Context) -> bool:
    return headers_of(context).get(INLINE_FAULTS) == "1"


async def refuse(context: Context, fault: Fault) -> NoReturn:
    """A real status, for clients that know gRPC and not us; the whole body beside it."""
    told = json.dumps(body(fault)).encode()
    await context.abort(grpc.StatusCode[codes(fault).grpc], fault.message, ((FAULT, told),))


@lru_cache(256)
def _fingerprint(pem: bytes) -> str:
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))).hexdigest()
