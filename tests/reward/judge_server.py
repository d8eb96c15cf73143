"""A local OpenAI-compatible judge whose every answer, and every fault, is chosen by the test."""

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[dict], str]
"""From the request's body to the text that the model says."""


def number_in(request):
    """The unguessable number, which only the instructions hold."""
    found = re.search(r"BEGIN (\w+)", request["messages"][0]["content"])
    return found.group(1) if found else "none in a health check"


def marks(score) -> Answer:
    """An honest judge that always gives the same mark."""
    return lambda request: json.dumps({"number": number_in(request), "reason": "plain", "score": score})


class JudgeServer(ThreadingHTTPServer):
    """Serves `answer`, after using up `faults`: an HTTP status, `(status, headers)`, `hang`, `cut` or `garbage`."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.faults: deque = deque()
        self.requests: list[dict] = []
        self.keys: list[str] = []
        self.release = threading.Event()
        self.open_now = 0
        self.most_open = 0
        self.lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def judge_server(answer: Answer) -> Iterator[JudgeServer]:
    server = JudgeServer(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        return

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.requests.append(body)
            server.keys.append(self.headers.get("authorization", ""))
            server.open_now += 1
            server.most_open = max(server.most_open, server.open_now)
            fault = server.faults.popleft() if server.faults else None
        try:
            self._reply(body, fault)
        finally:
            with server.lock:
                server.open_now -= 1

    def _reply(self, body, fault):
        if fault == "hang":
            self.server.release.wait(30)
            self.close_connection = True
        elif fault == "cut":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif fault == "garbage":
            self._send(200, {}, b"<html>not a model</html>")
        elif fault == "empty":
            self._send(200, {}, b'{"choices": []}')
        elif fault is not None:
            status, headers = fault if isinstance(fault, tuple) else (fault, {})
            self._send(status, headers, json.dumps({"error": {"message": "told to fail", "code": "x"}}).encode())
        else:
            self._send(200, {}, json.dumps(self._completion(self.server.answer(body))).encode())

    def _completion(self, text):
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "fake",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }

    def _send(self, status, headers, payload):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)
