"""An OTLP receiver on loopback, for tests that look at what was sent."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

WAIT = 10.0


class Collector:
    """An OTLP receiver on loopback."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, bytes]] = []
        self._arrived = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.keep(self.path, self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def keep(self, path: str, body: bytes) -> None:
        with self._arrived:
            self.posts.append((path, body))
            self._arrived.notify_all()

    def wait(self, predicate: Callable[[], bool]) -> bool:
        with self._arrived:
            return self._arrived.wait_for(predicate, WAIT)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(WAIT)
        self._server.server_close()

    def traces(self) -> list[ExportTraceServiceRequest]:
        bodies = [body for path, body in self.posts if path == "/v1/traces"]
        return [ExportTraceServiceRequest.FromString(body) for body in bodies]

    def spans(self, of_trace: str | None = None) -> dict[str, WireSpan]:
        """By name; of one trace if it is named."""
        return {
            span.name: span
            for request in self.traces()
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
            if of_trace in (None, span.trace_id.hex())
        }

    def metrics(self) -> dict[str, Metric]:
        """The latest of each name."""
        return {
            metric.name: metric
            for path, body in self.posts
            if path == "/v1/metrics"
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def text(self) -> bytes:
        return b"".join(body for _, body in self.posts)
