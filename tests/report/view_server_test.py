# SPDX-License-Identifier: Apache-2.0
"""ch view against clients that are slow, many, greedy or malformed: each is bounded, and an honest one is served meanwhile."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

CH = os.environ.get("MASE_CH", "build/release/bin/ch")
SOON = 20  # seconds; far above what an answer takes, for machines under load


def memory(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) * 1024


def receive(sock):
    """Everything until the other side closes."""
    data = b""
    while True:
        try:
            more = sock.recv(1 << 16)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


class Server(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="mase-view-")
        os.makedirs(self.folder.name + "/a")
        with open(self.folder.name + "/a/run.json", "w", encoding="utf-8") as file:
            json.dump({"kind": "train", "status": "finished", "notes": "x" * 100000}, file)
        self.server = subprocess.Popen([CH, "view", self.folder.name, "--port", "0"], stdout=subprocess.PIPE, text=True)
        line = self.server.stdout.readline()
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)/", line).group(1))

    def tearDown(self):
        self.assertIsNone(self.server.poll(), "the server died")
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(), 0)
        self.server.stdout.close()
        self.folder.cleanup()

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=SOON)
        self.addCleanup(sock.close)
        return sock

    def ask(self, path="/", *headers, method="GET", host="127.0.0.1"):
        """Status, headers in lower case, and body."""
        sock = self.connect()
        sock.sendall("\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, "", ""]).encode())
        data = receive(sock)
        sock.close()
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.assertTrue(lines[0].startswith("HTTP/1.1 "), lines[0])
        return int(lines[0].split()[1]), {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}, body

    def test_slow_clients_do_not_starve_others(self):
        slow = [self.connect() for _ in range(300)]
        for sock in slow:
            try:
                sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
            except OSError:
                pass  # made room for a later one
        start = time.monotonic()
        self.assertEqual(self.ask()[0], 200)
        self.assertLess(time.monotonic() - start, 4)
        # A letter now and then does not prolong a request.
        drip, ended = self.connect(), False
        start = time.monotonic()
        drip.sendall(b"GET / HTTP/1.1\r\n")
        while time.monotonic() - start < SOON and not ended:
            try:
                drip.sendall(b"X")
                drip.settimeout(0.3)
                answer = drip.recv(4096)
                ended = True
                self.assertTrue(answer == b"" or b" 408 " in answer, answer)
            except socket.timeout:
                continue
            except OSError:
                ended = True
        self.assertTrue(ended, "a slow request was never ended")

    def test_readers_that_do_not_read_do_not_starve_others(self):
        for _ in range(100):
            sock = self.connect()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"GET /run?run=a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 4)
        self.assertEqual(self.ask()[0], 200)

    def test_sizes_are_limited_before_anything_else(self):
        before = memory(self.server)
        self.assertEqual(self.ask("/" + "a" * 20000)[0], 414)
        self.assertEqual(self.ask("/", "X: " + "a" * 40000)[0], 431)
        self.assertEqual(self.ask("/", *[f"X-{i}: 1" for i in range(5000)])[0], 431)
        self.assertEqual(self.ask("/?" + "&".join("run=a" for _ in range(1000)))[0], 400)
        sock = self.connect()
        sock.settimeout(SOON)
        try:
            for _ in range(400):
                sock.sendall(b"a" * (1 << 16))  # 25 MB without a line's end
        except OSError:
            pass
        self.assertLess(memory(self.server) - before, 24 << 20)
        # Also where the token is missing: nothing is worked on before it.
        self.assertEqual(self.ask("/", host="evil.example")[0], 403)

    def test_malformed_requests_are_refused(self):
        for head in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n",
                     b"GET http://evil/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999\r\n\r\n"):
            sock = self.connect()
            sock.sendall(head)
            self.assertRegex(receive(sock)[:14], rb"^HTTP/1\.1 4\d\d")
        self.assertEqual(self.ask("/", method="POST")[0], 405)
        for host in ("localhost:evil.example", "[::1]evil.example", "127.0.0.1.evil.example", "localhost:99999", "[::1"):
            self.assertEqual(self.ask(host=host)[0], 403, host)

    def test_ranges_are_answered_exactly(self):
        status, headers, whole = self.ask()
        self.assertEqual((status, int(headers["content-length"])), (200, len(whole)))
        status, headers, part = self.ask("/", "Range: bytes=2-5")
        self.assertEqual((status, part, headers["content-range"]), (206, whole[2:6], f"bytes 2-5/{len(whole)}"))
        status, headers, part = self.ask("/", "Range: bytes=-3")
        self.assertEqual((status, part, headers["content-range"]), (206, whole[-3:], f"bytes {len(whole) - 3}-{len(whole) - 1}/{len(whole)}"))
        status, headers, part = self.ask("/", f"Range: bytes={len(whole)}-")
        self.assertEqual((status, headers["content-range"]), (416, f"bytes */{len(whole)}"))
        for many in ("bytes=0-0,2-3", "bytes=" + ",".join(f"{i}-" for i in range(3000)), "bytes=" + "0" * 15000 + "-"):
            status, headers, part = self.ask("/", "Range: " + many)
            self.assertEqual((status, part), (200, whole))
        status, headers, part = self.ask("/", method="HEAD")
        self.assertEqual((status, part, int(headers["content-length"])), (200, b"", len(whole)))

    def test_a_connection_serves_many_requests_without_waiting(self):
        sock = self.connect()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(30):
            start = time.monotonic()
            sock.sendall(b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            data = b""
            while b"\r\n\r\n" not in data:
                data += sock.recv(4096)
            times.append(time.monotonic() - start)
        # Nagle's algorithm and a delayed acknowledgement together cost 40 ms each.
        self.assertLess(sorted(times)[len(times) // 2], 0.03)
        sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50 + b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        self.assertEqual(receive(sock).count(b"HTTP/1.1 200 OK\r\n"), 51)

    def test_links_out_of_the_folder_are_not_followed(self):
        with tempfile.TemporaryDirectory() as outside:
            with open(outside + "/run.json", "w", encoding="utf-8") as file:
                file.write('{"kind": "the-secret"}')
            with open(outside + "/metrics.csv", "w", encoding="utf-8") as file:
                file.write("epoch,step,the_secret\n0,1,0.5\n")
            os.makedirs(self.folder.name + "/b")
            os.symlink(outside + "/run.json", self.folder.name + "/b/run.json")
            os.symlink(outside, self.folder.name + "/a/software")
            for path in ("/", "/run?run=a", "/run?run=b", "/run?run=a&run=b"):
                status, _, body = self.ask(path)
                self.assertEqual(status, 200)
                self.assertNotIn(b"the-secret", body)
                self.assertNotIn(b"the_secret", body)


if __name__ == "__main__":
    unittest.main()
