# SPDX-License-Identifier: Apache-2.0
"""Sentences with classes from local files, as tables of token ids: what `datasets` is to the original's tutorials. Where that
package and a network are there, names that no local folder has go to it."""
from __future__ import annotations

import csv
import json
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from mase._native import Error

_SPLITS = {"train": "train", "training": "train", "test": "test", "validation": "validation", "valid": "validation",
           "val": "validation", "dev": "validation", "unsup": "unsupervised", "unsupervised": "unsupervised"}
_TEXTS, _LABELS = ("text", "sentence", "review", "content"), ("label", "labels", "class", "target", "sentiment")
_FILES = (".csv", ".tsv", ".jsonl", ".json")
_LIMIT = 1 << 30  # of one file, in bytes
_PLACES = "MASE_DATA"


class Rows:
    """A split: rows[i] is a table of one row, rows["label"] a column, rows[:10] a table of columns."""

    def __init__(self, columns: Dict[str, list]):
        self.columns = columns

    @property
    def column_names(self) -> List[str]:
        return list(self.columns)

    @property
    def num_rows(self) -> int:
        return len(self)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"{key}; there are {', '.join(self.columns)}")
            return self.columns[key]
        if isinstance(key, slice):
            return {name: values[key] for name, values in self.columns.items()}
        if isinstance(key, (list, tuple, range)):
            return {name: [values[i] for i in key] for name, values in self.columns.items()}
        return {name: values[key] for name, values in self.columns.items()}

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def select(self, indices: Sequence[int]) -> "Rows":
        return Rows(self[list(indices)])

    def shuffle(self, seed: Optional[int] = None) -> "Rows":
        import numpy

        return self.select(numpy.random.default_rng(seed).permutation(len(self)).tolist())

    def remove_columns(self, names: Any) -> "Rows":
        names = [names] if isinstance(names, str) else names
        return Rows({name: values for name, values in self.columns.items() if name not in names})

    def rename_column(self, old: str, new: str) -> "Rows":
        return Rows({new if name == old else name: values for name, values in self.columns.items()})

    def __repr__(self) -> str:
        return f"Rows({len(self):,} of {', '.join(self.columns)})"


class Splits(Dict[str, Rows]):
    """Rows by split."""

    def __repr__(self) -> str:
        return "Splits(" + ", ".join(f"{name}: {len(rows):,} rows" for name, rows in self.items()) + ")"


def _column(header: Sequence[str], wanted: Optional[str], usual: Sequence[str], path: str, what: str) -> str:
    for name in ([wanted] if wanted else []) + list(usual):
        if name in header:
            return name
    raise Error(f"{path}: there is no column of {what}; it has {', '.join(map(str, header)) or 'none'}")


def _records(path: str, text_column: Optional[str]) -> Tuple[List[str], List[Any]]:
    if os.path.getsize(path) > _LIMIT:
        raise Error(f"{path}: it is larger than 1 GiB; cut it into splits")
    ending = os.path.splitext(path)[1].lower()
    with open(path, encoding="utf-8", errors="strict", newline="") as file:
        try:
            if ending in (".jsonl", ".json"):
                rows = [json.loads(line) for line in file if line.strip()] if ending == ".jsonl" else json.load(file)
            else:
                table = list(csv.reader(file, delimiter="\t" if ending == ".tsv" else ",",
                                        quoting=csv.QUOTE_NONE if ending == ".tsv" else csv.QUOTE_MINIMAL))
                rows = _with_header([row for row in table if row], path)
        except (ValueError, csv.Error, RecursionError) as error:
            raise Error(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise Error(f"{path}: expected rows with a text and a label")
    text = _column(list(rows[0]), text_column, _TEXTS, path, "texts (text_column names one)")
    label = _column(list(rows[0]), None, _LABELS, path, "labels")
    for number, row in enumerate(rows):
        if not isinstance(row.get(text), str) or row.get(label) is None:
            raise Error(f"{path}: row {number + 1}: expected a text in '{text}' and a class in '{label}'")
    return [row[text] for row in rows], [row[label] for row in rows]


def _with_header(table: List[List[str]], path: str) -> List[dict]:
    """Rows by column; of a table of two columns without a header the whole numbers are the labels."""
    if not table:
        raise Error(f"{path}: it is empty")
    header = table[0]
    if not any(name in header for name in _TEXTS + _LABELS) and len(header) == 2:
        numbers = [all(row[c].lstrip("-").isdigit() for row in table if len(row) == 2) for c in (0, 1)]
        if numbers[0] != numbers[1]:
            header = ["label", "text"] if numbers[0] else ["text", "label"]
            table = [header, *table]
    for number, row in enumerate(table[1:]):
        if len(row) != len(header):
            raise Error(f"{path}: row {number + 1}: {len(row)} cells where there are {len(header)} columns")
    return [dict(zip(header, row)) for row in table[1:]]


def _folder(path: str) -> Tuple[List[str], List[Any]]:
    """FOLDER/CLASS/*.txt, as the published IMDb reviews lie; a folder without classes has the label -1."""
    texts, labels = [], []
    classes = sorted(name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name)))
    for name in [n for n in classes if n != "unsup"] or [""]:
        for file in sorted(os.listdir(os.path.join(path, name))):
            if file.endswith(".txt"):
                place = os.path.join(path, name, file)
                try:
                    with open(place, encoding="utf-8") as text:
                        texts.append(text.read())
                except UnicodeDecodeError:
                    raise Error(f"{place}: is not UTF-8") from None
                labels.append(name or -1)
    if -1 in labels and os.path.basename(path) not in ("unsup", "unsupervised"):
        raise Error(f"{path}: its texts lie in no folders of classes ({path}/CLASS/*.txt)")
    return texts, labels


def read_splits(path: str, text_column: Optional[str] = None) -> Splits:
    """The splits of a folder: train/pos/*.txt, or train.csv (.tsv, .jsonl, .json), beside test and, if there is one, validation."""
    found: Dict[str, Tuple[List[str], List[Any]]] = {}
    for entry in sorted(os.listdir(path)):
        stem, ending = os.path.splitext(entry)
        place = os.path.join(path, entry)
        split = _SPLITS.get(stem.lower())
        if split is None:
            continue
        if os.path.isdir(place):
            read = _folder(place)
            unlabelled = os.path.join(place, "unsup")
            if os.path.isdir(unlabelled):
                found["unsupervised"] = _folder(unlabelled)
        elif ending.lower() in _FILES:
            read = _records(place, text_column)
        else:
            continue
        if split in found:
            raise Error(f"{path}: there are two of the split '{split}'")
        if read[0]:
            found[split] = read
    if "train" not in found:
        raise Error(f"{path}: there is no split 'train': a folder train/CLASS/*.txt, or train.csv, train.tsv, train.jsonl")
    if "test" not in found:
        if "validation" not in found:
            raise Error(f"{path}: there is no split 'test' beside 'train'")
        found["test"] = found["validation"]
    named = {str(label) for split, (_, labels) in found.items() if split != "unsupervised" for label in labels}
    whole = all(name.lstrip("-").isdigit() for name in named)
    numbers = {name: int(name) if whole else place for place, name in enumerate(sorted(named))}
    return Splits({split: Rows({"text": texts, "label": [-1 if split == "unsupervised" else numbers[str(label)] for label in labels]})
                   for split, (texts, labels) in found.items()})


def local_place(name: str) -> Optional[str]:
    """A folder of this name: as it is, or below MASE_DATA or ~/.cache/mase, by its last part too (stanfordnlp/imdb)."""
    for root in ("", os.environ.get(_PLACES, ""), os.path.expanduser("~/.cache/mase")):
        for part in (name, name.rpartition("/")[2]):
            place = os.path.join(root, part) if root else part
            if part and (root or part == name) and os.path.isdir(place):
                return place
    return None
