# SPDX-License-Identifier: Apache-2.0
"""pictures.py CH FOLDER: draws FOLDER/grids.svg, the numbers of some formats as `ch format show` lists them."""
import re
import subprocess
import sys

FORMATS = [
    ("integer 4/0", "integer", {"width": 4, "frac_width": 0}),
    ("integer 4/2", "integer", {"width": 4, "frac_width": 2}),
    ("integer 6/3", "integer", {"width": 6, "frac_width": 3}),
    ("e2m1", "e2m1", {}),
    ("e3m2", "e3m2", {}),
    ("log 4", "log", {"width": 4, "exponent_bias": 4}),
    ("ternary", "ternary", {}),
]
LOW, HIGH = -8, 8  # what is drawn
LEFT, WIDTH, ROW = 92, 400, 34


def values(ch, name, keys):
    words = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    text = subprocess.run([ch, "format", "show", name, *words, "--ascii"], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^0x[0-9a-f]+ +(.*)$", text, re.M)
    return sorted({float(word) for row in rows for word in row.split() if word not in ("-", "NaN", "inf", "-inf")})


def place(value):
    return LEFT + WIDTH * (value - LOW) / (HIGH - LOW)


def drawing(ch):
    height = ROW * len(FORMATS) + 40
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}" role="img" '
             'font-family="sans-serif" font-size="14">', f'<rect width="{LEFT + WIDTH + 20}" height="{height}" rx="6" fill="#fff"/>',
             "<title>The numbers of some formats between -8 and 8</title>"]
    for index, (label, name, keys) in enumerate(FORMATS):
        y = 20 + ROW * index
        numbers = values(ch, name, keys)
        assert len(numbers) > 1, name
        lines.append(f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{label}</text>')
        lines.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" stroke="#bbb"/>')
        marks = "".join(f"M{place(number):.1f} {y - 8}v16" for number in numbers if LOW <= number <= HIGH)
        lines.append(f'<path d="{marks}" stroke="#1d5fa7" stroke-width="1.5"/>')
    for tick in range(LOW, HIGH + 1, 4):
        lines.append(f'<text x="{place(tick):.1f}" y="{height - 12}" text-anchor="middle" fill="#555">{tick}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    with open(sys.argv[2] + "/grids.svg", "w", encoding="utf-8") as file:
        file.write(drawing(sys.argv[1]))
