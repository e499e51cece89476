"""A network that fails between a commit and its answer: the server has done it, the client never hears."""

import selectors
import shutil
import socket
import tempfile
import threading
from dataclasses import replace
from typing import Self

from stopline.store.target import Target


class LosingProxy:
    """Passes everything on, until the server answers a query that contains `statement`: that answer is lost, with the
    connection. As often as `times`, then it only passes on."""

    def __init__(self, target: Target, statement: str, times: int = 1) -> None:
        self._server = f"{target.host}/.s.PGSQL.{target.port}"
        self._statement = statement.encode()
        self._left = times
        self.lost = 0
        self._folder = tempfile.mkdtemp(prefix="stopline-proxy-")
        self.target = replace(target, host=self._folder)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder}/.s.PGSQL.{target.port}")
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, socket.socket(socket.AF_UNIX) as server:
                server.connect(self._server)
                self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        asked = False
        with selectors.DefaultSelector() as selector:
            for end in (client, server, self._listener):
                selector.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._listener:
                        return  # a new connection: the client has given this one up
                    source, other = (client, server) if key.fileobj is client else (server, client)
                    data = _received(source)
                    if not data:
                        return
                    asked = asked or (source is client and self._statement in data)
                    if source is server and asked and self._left:
                        self._left -= 1
                        self.lost += 1
                        return
                    other.sendall(data)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""
