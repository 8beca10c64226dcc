# SPDX-License-Identifier: Apache-2.0
"""The documentation's site: it builds without a warning, every link leads somewhere, nothing is fetched
from elsewhere, every page says what comes next, its pictures are what the program says, and in a browser
its search finds what it should from disk and no page is wider than a phone.

MASE_SCREENSHOTS=FOLDER also writes screenshots."""
import glob
import html
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

SOURCE, CH = os.environ["MASE_SOURCE"], os.environ["MASE_CH"]
sys.path.insert(0, os.path.join(SOURCE, "tests/report"))
import webdriver  # noqa: E402

SHOWN = ("index", "start", "tutorials/lab2", "concepts/number_formats", "how_to/six_bits_within_a_point", "reference/commands/train",
         "reference/limits", "hardware")


class Links(html.parser.HTMLParser):
    """What a page refers to, what it has names for, and what it fetches."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names.update(given[key] for key in ("id", "name") if given.get(key))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") != "canonical" and "href" in given:
            self.fetched.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.fetched.append(given["src"])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mase-site-")
        cls.built = subprocess.run([os.path.join(SOURCE, "scripts/docs.sh"), cls.folder], capture_output=True, text=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def pages(self):
        return sorted(glob.glob(self.folder + "/**/*.html", recursive=True))

    def test_it_builds_without_a_warning(self):
        self.assertEqual((self.built.returncode, self.built.stderr), (0, ""))
        self.assertGreater(len(self.pages()), 120)

    def test_no_link_is_dead_and_nothing_comes_from_elsewhere(self):
        parsed = {}
        for page in self.pages():
            with open(page, encoding="utf-8") as file:
                parsed[page] = Links(file.read())
        dead = []
        for page, links in parsed.items():
            for target in links.links + links.fetched:
                parts = urllib.parse.urlsplit(target)
                if parts.scheme or parts.netloc:
                    if target in links.fetched and parts.scheme != "data":
                        dead.append((page, target, "is fetched"))
                    continue
                path = os.path.normpath(os.path.join(os.path.dirname(page), urllib.parse.unquote(parts.path))) if parts.path else page
                name = urllib.parse.unquote(parts.fragment)
                if not os.path.exists(path):
                    dead.append((page, target, "is not there"))
                elif name and path in parsed and name not in parsed[path].names:
                    dead.append((page, target, "has no such place"))
        self.assertEqual(dead, [])
        for sheet in glob.glob(self.folder + "/_static/**/*.css", recursive=True):
            with open(sheet, encoding="utf-8") as file:
                text = file.read()
            self.assertNotRegex(text, r"(@import|url\()\s*['\"]?(https?:)?//", sheet)

    def test_every_page_of_the_tree_is_there(self):
        docs = os.path.join(SOURCE, "docs")
        for page in glob.glob(docs + "/**/*.md", recursive=True):
            name = os.path.relpath(page, docs)[: -len(".md")]
            with open(page, encoding="utf-8") as file:
                title = file.readline().strip("# `\n")
            with open(f"{self.folder}/{'searching' if name == 'search' else name}.html", encoding="utf-8") as file:
                heading = re.search(r"<h1>(.*?)<a ", file.read(), re.S)[1]
            self.assertEqual(html.unescape(re.sub("<.*?>", "", heading)), title.replace("`", ""), name)

    def test_every_page_says_what_comes_next(self):
        docs = os.path.join(SOURCE, "docs")
        for part in ("start.md", "guides.md", "from_other_tools.md", "tutorials/*.md", "how_to/*.md", "concepts/*.md"):
            for page in glob.glob(os.path.join(docs, part)):
                with open(page, encoding="utf-8") as file:
                    text = file.read()
                last = text[max(text.rfind("\nNext: "), text.rfind("\n## Next\n")):]
                self.assertIn("Next", last, page)
                self.assertIn("](", last, page)

    def test_pictures_are_what_the_program_says(self):
        subprocess.run([sys.executable, os.path.join(SOURCE, "docs/site/pictures.py"), CH, self.folder], check=True)
        with open(self.folder + "/grids.svg") as made, open(os.path.join(SOURCE, "docs/concepts/grids.svg")) as kept:
            self.assertEqual(made.read(), kept.read(), "docs/site/pictures.py CH docs/concepts")

    def test_in_a_browser(self):
        if not webdriver.find("chromedriver") or not webdriver.find("chromium", "chromium-browser"):
            self.skipTest("needs chromium and chromium-driver")
        browser = webdriver.Browser()
        try:
            for words, wanted in (("calibrate", "Calibration"), ("saturates", "Number formats"), ("missing values", "missing values"),
                                  ("EBOPs", "EBOPs"), ("testbench", "simulate")):
                browser.open(f"file://{self.folder}/search.html?" + urllib.parse.urlencode({"q": words}))
                browser.wait("[...document.querySelectorAll('ul.search li a')].some((e) => e.textContent.includes(arguments[0]))", wanted,
                             what=f"{wanted!r} among what is found of {words!r}")
            for page in SHOWN:
                for label, width, phone, theme in (("desktop", 1400, False, "light"), ("phone", 400, True, "light"),
                                                   ("dark", 1400, False, "dark"), ("phone-dark", 400, True, "dark")):
                    browser.size(width, 1000, phone)
                    browser.open(f"file://{self.folder}/{page}.html")
                    browser.run("document.body.dataset.theme = arguments[0]", theme)
                    self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), width, (page, label))
                    self.assertEqual([url for url in browser.requests() if not url.startswith(("file:", "data:"))], [])
                    if folder := os.environ.get("MASE_SCREENSHOTS"):
                        os.makedirs(folder, exist_ok=True)
                        with open(f"{folder}/{page.replace('/', '-')}-{label}.png", "wb") as file:
                            file.write(browser.screenshot(width, 1000))
        finally:
            browser.close()


if __name__ == "__main__":
    if subprocess.run(["/usr/bin/python3", "-c", "import furo, myst_parser, sphinx, sphinx_copybutton"], capture_output=True).returncode:
        print("needs Sphinx, its theme and its Markdown (scripts/install_packages.sh docs)")
        sys.exit(77)
    unittest.main()
