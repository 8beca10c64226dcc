#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code of notebooks and stores what it prints and shows in them, without Jupyter:

    ch python scripts/run_notebooks.py examples/*.ipynb
"""
import ast
import contextlib
import io
import json
import sys


def outputs(source, names, count):
    """What one cell gives: its text, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    text, notices, value = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(notices):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found = []
    for name, printed in (("stderr", notices), ("stdout", text)):
        if printed.getvalue():
            found.append({"output_type": "stream", "name": name, "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        found.append({"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}})
    return found


def main(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            notebook = json.load(file)
        names, count = {"__name__": "__main__"}, 0
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell["outputs"], cell["execution_count"] = outputs("".join(cell["source"]), names, count), count
        with open(path, "w", encoding="utf-8") as file:
            json.dump(notebook, file, indent=1, ensure_ascii=False)
            file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1:])
