"""gRPC beside HTTP: on a unix socket for this machine, on a port for those with a certificate."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from contextd.domain.errors import Misconfigured
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.grpc import contextd_v1_pb2 as wire
from contextd.edge.grpc import contextd_v1_pb2_grpc as stubs
from contextd.edge.grpc_caller import Doorkeeper
from contextd.edge.grpc_services import Calls, HealthService, ManagementService, RefService, ToolService
from contextd.edge.grpc_sockets import HeldSocket
from contextd.edge.request_body import MOST_BYTES
from contextd.wiring import House

logger = logging.getLogger(__name__)

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),  # two daemons on one port would share its callers by chance
)


class GrpcServer:
    """Listens on every place of CONTEXTD_GRPC."""

    def __init__(self, house: House, pipeline: CallPipeline) -> None:
        self._house = house
        self._server = grpc.aio.server(options=_OPTIONS)
        self._sockets: list[HeldSocket] = []
        self.places: list[str] = []
        calls = Calls(house, pipeline, Doorkeeper(house.certificates.ledger))
        self._health = HealthService(calls.admitted)
        stubs.add_ToolServiceServicer_to_server(ToolService(calls), self._server)
        stubs.add_RefServiceServicer_to_server(RefService(calls), self._server)
        stubs.add_ManagementServiceServicer_to_server(ManagementService(calls, house.health), self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def start(self, *, strict: bool = False) -> None:
        """Raises Misconfigured when a place that was named cannot be had. `auto` goes on without,
        unless `strict`: many daemons may share a data folder, and one of them has its socket."""
        try:
            for place in self._house.settings.grpc:
                self._listen(place, strict=strict)
        except Misconfigured:
            self._release()
            raise
        await self._server.start()
        await self._tell(health_pb2.HealthCheckResponse.SERVING)

    async def draining(self) -> None:
        """Who watches the health stops calling; who calls is told so by the pipeline."""
        await self._tell(health_pb2.HealthCheckResponse.NOT_SERVING)

    async def close(self, seconds: float) -> None:
        await self._server.stop(seconds)
        self._release()

    def _listen(self, place: str, *, strict: bool) -> None:
        if place == "auto":
            try:
                self._listen_unix(self._house.settings.data_dir / "run" / "contextd.sock")
            except Misconfigured as fault:
                if strict:
                    raise
                logger.warning("gRPC is not served: %s: %s", fault.problem, fault.remedy)
        elif place.startswith("unix:"):
            self._listen_unix(Path(place.removeprefix("unix:")))
        else:
            self._listen_tls(place)

    def _listen_unix(self, path: Path) -> None:
        held = HeldSocket(path)
        self._sockets.append(held)
        self._server.add_insecure_port(f"unix:{path}")
        held.guard()
        self.places.append(f"unix:{path}")

    def _listen_tls(self, place: str) -> None:
        host = place.rpartition(":")[0]
        try:
            port = self._server.add_secure_port(place, self._credentials(host.strip("[]")))
        except RuntimeError:
            raise Misconfigured(
                f"cannot listen on {place}",
                "set CONTEXTD_GRPC to an address and a free port of this machine",
            ) from None
        self.places.append(f"{host}:{port}")

    def _credentials(self, host: str) -> grpc.ServerCredentials:
        """Asked at each handshake: so a new certificate is in use before the old one ends."""
        authority = self._house.certificates
        shown = authority.serving(host)

        def configuration() -> grpc.ServerCertificateConfiguration:
            return grpc.ssl_server_certificate_configuration(
                [(shown.key, shown.certificate)], root_certificates=authority.root()
            )

        def current() -> grpc.ServerCertificateConfiguration | None:
            nonlocal shown
            if not shown.is_ageing(self._house.clock.now()):
                return None
            shown = authority.serving(host)
            return configuration()

        return grpc.dynamic_ssl_server_credentials(
            configuration(),
            current,  # type: ignore[arg-type]  # None is "as before", which the stubs do not know
            require_client_authentication=True,
        )

    def _release(self) -> None:
        for held in self._sockets:
            held.release()
        self._sockets.clear()

    async def _tell(self, state: int) -> None:
        for service in ("", *_services()):
            await self._health.set(service, state)


def _services() -> Iterator[str]:
    for service in wire.DESCRIPTOR.services_by_name.values():
        yield service.full_name
