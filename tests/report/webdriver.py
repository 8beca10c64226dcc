# SPDX-License-Identifier: Apache-2.0
"""Drives Chromium through ChromeDriver's W3C interface, with nothing but Python's own library."""
import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--disable-dev-shm-usage"]


def find(*names):
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """One browser with a profile of its own; None of its state outlives it."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="mase-chromium-")
        self.driver = subprocess.Popen([find("chromedriver"), "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = None
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                port = found.group(1)
                break
        if not port:
            raise RuntimeError("chromedriver did not start")
        self.base = f"http://127.0.0.1:{port}"
        capabilities = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                        "goog:chromeOptions": {"binary": find("chromium", "chromium-browser"), "args": FLAGS + [f"--user-data-dir={self.profile}"]}}
        self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}}, plain=True)["sessionId"]

    def call(self, method, path, body=None, plain=False):
        address = self.base + (path if plain else f"/session/{self.session}{path}")
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(address, data=data, method=method, headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from None

    def open(self, address):
        self.logs("browser"), self.logs("performance")
        self.call("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, seconds=60, what=None):
        end = time.monotonic() + seconds
        while True:
            value = self.run("return " + script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain for {what or script}")
            time.sleep(0.05)

    def click(self, selector):
        element = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.run("arguments[0].scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})", element)
        self.call("POST", f"/element/{next(iter(element.values()))}/click")

    def logs(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def requests(self):
        """Addresses asked for since the page was opened, without data: ones."""
        found = []
        for entry in self.logs("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                address = message["params"]["request"]["url"]
                if not address.startswith("data:"):
                    found.append(address)
        return found

    def devtools(self, command, parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height, phone=False):
        self.devtools("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})

    def screenshot(self, width, height):
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self.devtools("Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True})["data"])

    def close(self):
        try:
            self.call("DELETE", "")
        except (RuntimeError, OSError, AttributeError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)
