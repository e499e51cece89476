"""An HTTP/1.1 server on loopback around one service, with the three pages that a driver uses:
GET /_calls, POST /_reset, PUT /_script."""

import json
import selectors
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from stopline_cli.standins.script import ScriptError
from stopline_cli.standins.service import Answer, Drop, Reply, Request, Service, Silence, Trickle

_POLL_SECONDS = 0.05
_MAX_BODY = 32 * 1024 * 1024
_TRICKLE_SECONDS = 0.2


class StandIn:
    """A running stand-in. Use as a context manager, or call start() and stop()."""

    def __init__(self, service: Service, port: int = 0) -> None:
        self.service = service
        self._server = _Server(service, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=[_POLL_SECONDS], daemon=True)

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; known before start()."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """http://127.0.0.1:<port>"""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve in threads of this process."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and end every request that is being kept waiting."""
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, service: Service, port: int) -> None:
        self.service = service
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def server_bind(self) -> None:
        # The base class looks its own host name up, which can hang where there is no DNS.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End every thread that waits for its client: its socket turns readable."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        # A client that goes away in the middle is what these servers are for.
        pass


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "stopline-standin"
    sys_version = ""
    # One segment for headers and body: without it Nagle's algorithm adds 40 ms to each answer.
    wbufsize = -1

    def do_GET(self) -> None:
        self._exchange()

    do_POST = do_PUT = do_GET

    def _exchange(self) -> None:
        body = self._body()
        if body is None:
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path.partition("?")[0], headers, body)
        self._send(self._driver_page(request) or self.server.service.handle(request))

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdigit() or int(length) > _MAX_BODY:
            self.close_connection = True
            self._send(Reply(411, {"message": f"send a Content-Length of at most {_MAX_BODY}"}))
            return None
        return self.rfile.read(int(length))

    def _driver_page(self, request: Request) -> Reply | None:
        service = self.server.service
        match request.method, request.path:
            case "GET", "/_calls":
                return Reply(200, service.state())
            case "POST", "/_reset":
                service.reset()
                return Reply(200, {})
            case "PUT", "/_script":
                try:
                    service.script.replace(json.loads(request.body))
                except (ScriptError, ValueError) as error:
                    return Reply(400, {"message": str(error)})
                return Reply(200, {})
        return None

    def _send(self, answer: Answer) -> None:
        match answer:
            case Reply(status, body, headers):
                content = json.dumps(body, ensure_ascii=False).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            case Silence(seconds):
                self.close_connection = True
                self._wait(seconds)
            case Trickle(status, seconds):
                self.close_connection = True
                self._trickle(status, seconds)
            case Drop():
                self.close_connection = True

    def _wait(self, seconds: float) -> bool:
        """Whether the client gave up, or the server stops, within that time."""
        # The client has nothing more to say: its socket turns readable when either side closes it.
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            return bool(selector.select(seconds))

    def _trickle(self, status: int, seconds: float) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(_MAX_BODY))
        self.end_headers()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._wait(_TRICKLE_SECONDS):
            # JSON may begin with any amount of white space.
            self.wfile.write(b" ")
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass
