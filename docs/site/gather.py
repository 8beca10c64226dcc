# SPDX-License-Identifier: Apache-2.0
"""gather.py ROOT FOLDER: everything the site is made of, in one folder that Sphinx reads.

The guides of docs/ as they are; the notebooks of examples/ as pages, with what they printed and
showed; and whatever the pages link to elsewhere in the tree: text as pages, other files to download."""
import json
import os
import re
import shutil
import sys

INDICES = ("index.md", "tutorials/README.md", "how_to/README.md", "concepts/README.md", "guides.md",
           "reference/README.md", "reference/commands.md", "rationale/README.md")
RENAMED = {"search.md": "searching.md"}  # search.html is the site's own
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def fenced(language, text):
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n\n"


def page_of_notebook(path):
    """A notebook as Markdown: text, code, and what the code gave."""
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    page = ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            page += source.rstrip() + "\n\n"
            continue
        page += fenced("python", source)
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/html" in data:
                shown = "".join(data["text/html"]).replace("\n\n", "\n")
                page += f'<div class="output">\n{shown.strip()}\n</div>\n\n'
            elif text := "".join(data.get("text/plain", output.get("text", ""))):
                page += fenced("text", text)
    name = os.path.basename(path)
    return page + f"The notebook itself: [{name}]({name}), which `ch notebook` opens.\n"


class Site:
    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.placed = {}  # path in the tree: path in the site
        self.waiting = []
        self.parents = {"index.md": None}  # of each page, the index it stands in

    def place(self, path, where):
        if path not in self.placed:
            self.placed[path] = where
            self.waiting.append(path)
        return self.placed[path]

    def place_linked(self, path):
        """Where a file that a page links to stands in the site."""
        inside = os.path.relpath(path, os.path.join(self.root, "docs"))
        if not inside.startswith(".."):
            return self.place(path, RENAMED.get(inside, inside))
        if path.endswith(".ipynb"):
            return self.place(path, "tutorials/" + os.path.basename(path)[: -len(".ipynb")] + ".md")
        inside = os.path.relpath(path, self.root)
        return self.place(path, ("project/" if path.endswith(".md") else "files/") + inside)

    def links_in(self, text, path):
        """The text of a page of the tree with its links leading to where things are in the site."""
        here = os.path.dirname(self.placed[path])

        def turned(match):
            target = match[2]
            found = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if re.match(r"[a-z]+:", target) or not os.path.exists(found):
                return match[0]  # Sphinx complains of what is not there
            if os.path.isdir(found):
                readme = os.path.join(found, "README.md")
                if not os.path.exists(readme):
                    return match[0]
                found = readme
            return match[1] + os.path.relpath(self.place_linked(found), here or ".") + match[3]

        # Code is no text: links are looked for between the fences.
        parts = re.split(r"(^```.*?^```)", text, flags=re.S | re.M)
        return "".join(part if part.startswith("```") else LINK.sub(turned, part) for part in parts)

    def navigation(self, path, text):
        """The pages that an index links to, in its order, as the tree that Sphinx makes its menu of."""
        here = os.path.dirname(self.placed[path])
        pages = [os.path.normpath(os.path.join(here, found)) for _, found, _ in LINK.findall(text) if found.endswith(".md")]
        # What stands in the folder and in no index comes behind what the index names.
        if self.placed[path] != "index.md":
            pages += sorted(page for page in self.placed.values()
                            if page.endswith(".md") and os.path.dirname(page) == here and page not in self.parents)
        pages = [page for page in dict.fromkeys(pages) if self.parents.setdefault(page, path) == path]
        return "\n```{toctree}\n:hidden:\n" + "".join(f"/{page[:-3]}\n" for page in pages) + "```\n"

    def write(self):
        while self.waiting:
            path = self.waiting.pop(0)
            where = os.path.join(self.folder, self.placed[path])
            os.makedirs(os.path.dirname(where), exist_ok=True)
            if path.endswith(".ipynb"):
                shutil.copy(path, os.path.dirname(where))
                text = page_of_notebook(path)
            elif path.endswith(".md"):
                with open(path, encoding="utf-8") as file:
                    text = self.links_in(file.read(), path)
            else:
                shutil.copy(path, where)
                continue
            if self.placed[path] in INDICES:
                text += self.navigation(path, text)
            with open(where, "w", encoding="utf-8") as file:
                file.write(text)


def main(root, folder):
    shutil.rmtree(folder, ignore_errors=True)
    site = Site(root, folder)
    docs = os.path.join(root, "docs")
    for place, _, names in os.walk(docs):
        for name in names:
            path = os.path.join(place, name)
            if name.endswith((".md", ".css", ".svg")):
                site.place_linked(path)
    site.waiting.sort(key=lambda path: list(INDICES).index(site.placed[path]) if site.placed[path] in INDICES else len(INDICES))
    for name in sorted(os.listdir(os.path.join(root, "examples"))):
        if name.endswith(".ipynb"):
            site.place_linked(os.path.join(root, "examples", name))
    site.write()


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
