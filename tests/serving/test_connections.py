"""Clients that are slow, many, gone or endless keep nobody else waiting."""

import json
import select
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest
import uvicorn

from rareclass.serving import Address, Limits
from rareclass.serving.service import Settings, listening_at, server_config, service_of
from serving.conftest import ROW

BODY = json.dumps([ROW]).encode()
JSON = {"Content-Type": "application/json"}
HEAD = b"POST /score HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n"


class Listening(NamedTuple):
    port: int

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def score(self):
        request = Request(f"http://127.0.0.1:{self.port}/score", BODY, JSON)
        with urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def metric(self, name):
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(name))

    def has_ended(self, within=20.0):
        end = time.monotonic() + within
        while self.metric("rareclass_requests_in_flight") > 1:
            assert time.monotonic() < end
            time.sleep(0.02)


@pytest.fixture
def listen(model):
    stack = ExitStack()

    def start(idle=75.0, **limits):
        return stack.enter_context(_listening(model, idle, Limits(**limits)))

    with stack:
        yield start


@contextmanager
def _listening(model, idle, limits):
    service = service_of(model, Settings(limits, look_seconds=0.0), "0")
    server = uvicorn.Server(server_config(service, limits, idle))
    with listening_at(Address(port=0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield Listening(listening.getsockname()[1])
        server.should_exit = True
        thread.join()
        listening.detach()  # closed by uvloop, of which Python's object knows nothing


def answer_of(client):
    parts = list[bytes]()
    try:
        while part := client.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:  # it has closed, and bytes were on their way to it
        pass
    return b"".join(parts)


def scored(client, n_answers):
    answers = b""
    while answers.count(b'"score"') < n_answers and (part := client.recv(1 << 16)):
        answers += part
    return answers


def send_slowly(client, content):
    """Send a byte at a time until something comes back; False where all was sent before."""
    for k in range(len(content)):
        try:
            client.send(content[k : k + 1])
        except (BrokenPipeError, ConnectionResetError):
            return True
        if select.select([client], [], [], 0.02)[0]:
            return True
    return False


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sent", [b"", HEAD % 9 + b"\r\n[" + b" " * 200])
def test_a_head_a_byte_at_a_time_is_given_up(listen, sent):
    service = listen(timeout=0.5)
    with service.connect() as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n" if sent else b"")
        if sent:
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")  # and once more on the same
        assert send_slowly(client, b"POST /score HTTP/1.1\r\n" + b"X-Header: value\r\n" * 200)
        assert answer_of(client) == b""
    assert service.score()["rows"]


def test_a_body_a_byte_at_a_time_is_given_up(listen):
    service = listen(timeout=0.5)
    with service.connect() as client:
        client.sendall(HEAD % 1000 + b"\r\n")
        assert send_slowly(client, b" " * 1000)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 408")
    assert service.score()["rows"]
    service.has_ended()


def test_a_body_that_nobody_reads_gives_no_more_time(listen):
    service = listen(idle=0.5)
    with service.connect() as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert send_slowly(client, b" " * 1000)
        assert answer_of(client) == b""


def test_a_head_without_end_is_refused(listen):
    service = listen()
    with service.connect() as client:
        with suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(b"GET / HTTP/1.1\r\n" + b"X-Header: value\r\n" * (1 << 16))
        assert b"200" not in answer_of(client)[:20]
    assert service.score()["rows"]


def test_500_idle_connections_keep_nobody_waiting(listen):
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    service = listen(idle=1.0, timeout=1.0, max_requests=4)
    with ExitStack() as stack:
        idle = [stack.enter_context(service.connect()) for _ in range(500)]
        for client in idle[::2]:
            client.sendall(b"POST /sc")
        assert service.score()["rows"]
        assert all(answer_of(client) == b"" for client in idle)  # closed after a second


@pytest.mark.parametrize("is_chunked", [True, False])
def test_a_body_without_end_is_refused_before_it_has_come(listen, is_chunked):
    service = listen(max_body=1000)
    how = b"Transfer-Encoding: chunked\r\n\r\n" if is_chunked else b"\r\n"
    head = HEAD.replace(b"Content-Length: %d\r\n", b"") if is_chunked else HEAD % (1 << 40)
    with service.connect() as client:
        client.sendall(head + how)
        if is_chunked:
            client.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        answer = answer_of(client)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer.lower()
    assert service.score()["rows"]


_OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\nUpgrade: %s\r\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_offer_of_another_protocol_is_ignored(listen, is_chunked):
    head, body = HEAD % len(BODY), BODY
    if is_chunked:
        head = HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked")
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    with listen().connect() as client:
        for name, cut in product((b"h2c", b"websocket"), (0, 30, -1, None)):
            sent = head + _OFFER % name + b"\r\n"
            client.sendall(sent[:cut])
            time.sleep(0.02)
            client.sendall((b"" if cut is None else sent[cut:]) + body)
            assert scored(client, 1).startswith(b"HTTP/1.1 200")
        client.sendall((head + _OFFER % b"h2c" + b"\r\n" + body) * 40)  # without waiting
        assert scored(client, 40).count(b"HTTP/1.1 200") == 40
        client.sendall(b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n")
        assert answer_of(client).startswith(b"HTTP/1.1 400")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_bytes", [0, 1, len(BODY)])
def test_clients_that_hang_up_leave_their_place(listen, n_bytes):
    service = listen(max_requests=2)
    for _ in range(5):
        with service.connect() as client:
            client.sendall(HEAD % len(BODY) + b"\r\n" + BODY[:n_bytes])
        service.has_ended()
    assert service.score()["rows"]
    assert service.metric("rareclass_requests_in_flight") == 1
