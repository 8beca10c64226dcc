# SPDX-License-Identifier: Apache-2.0
"""Every public name of the newest MASE is there, or is refused with a reason; docs/chop_names.md says which. MASE_REWRITE_GOLDEN=1
writes that page anew."""
import importlib
import os
import unittest

import package

package.need_torch()
PAGE = os.path.join(package.SOURCE, "docs", "chop_names.md")


def names():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "newest_names.txt")) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                path, _, rest = line.partition(":")
                yield path, rest.split()


def page():
    from chop import absent

    text = ["# The names of the original in `chop`", "",
            "Made by `tests/python/newest_names_test.py` from the public names of MASE's newest packages (`tests/python/newest_names.txt`): "
            "all can be imported from where they are there. What has nothing to stand for here says so when it is called.", "",
            "| module | there | a call is an error that says why |", "|---|---|---|"]
    reasons = {}
    for path, wanted in names():
        refused = [name for name in wanted if name in absent.REASONS]
        reasons.update({name: absent.REASONS[name] for name in refused})
        text.append(f"| `{path}` | {', '.join(f'`{n}`' for n in wanted if n not in refused)} | {', '.join(f'`{n}`' for n in refused)} |")
    text += ["", "Why:", "", "| name | reason |", "|---|---|"]
    by_reason = {}
    for name, reason in sorted(reasons.items()):
        by_reason.setdefault(reason, []).append(name)
    text += [f"| {', '.join(f'`{n}`' for n in found)} | {reason} |" for reason, found in by_reason.items()]
    return "\n".join(text) + "\n"


class Newest(unittest.TestCase):
    def test_all_are_there_or_refused_with_a_reason(self):
        import mase
        from chop import absent

        for path, wanted in names():
            module = importlib.import_module(path)
            for name in wanted:
                with self.subTest(path=path, name=name):
                    scope = {}
                    exec(f"from {path} import {name}", scope)
                    self.assertIs(type(scope[name]), type(getattr(module, name)))
                    if name in absent.REASONS:
                        with self.assertRaisesRegex(mase.Error, name):
                            scope[name]("any", thing=1)

    def test_the_page_is_current(self):
        if os.environ.get("MASE_REWRITE_GOLDEN"):
            with open(PAGE, "w") as file:
                file.write(page())
        with open(PAGE) as file:
            self.assertEqual(file.read(), page())

    def test_reasons_are_of_names(self):
        """A reason for a name that is there would hide it."""
        import chop.passes as passes
        from chop import absent

        for name in absent.REASONS:
            self.assertNotIn(name, passes.__all__)


if __name__ == "__main__":
    package.main()
