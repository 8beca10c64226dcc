#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rules of includes in src/mase (ARCHITECTURE.md). Who may include whom; that what a file
uses of the standard library, fmt and the project's types is reached from its own includes, which a
build that compiles a folder as one unit does not notice; that no two headers define a type of the same
name; and that a file that registers something keeps its names in a namespace of its own, or two of
them could not be compiled together."""
import pathlib
import re
import sys

# Each folder may include itself and these.
ALLOWED = {
    "base": set(),
    "text": {"base"},
    "formats": {"base"},
    "ir": {"base", "formats"},
    "ops": {"base", "formats", "ir"},
    "engine": {"base", "formats", "ir", "ops"},
    "passes": {"base", "formats", "ir", "ops", "engine"},
    "io": {"base", "text", "formats", "ir", "ops", "data"},
    "models": {"base", "formats", "ir", "ops"},
    "data": {"base", "text", "io"},
    "train": {"base", "formats", "ir", "ops", "engine", "data", "io"},
    "report": {"base"},
    "hardware": {"base", "formats", "ir", "ops"},
    "search": {"base", "formats", "ir", "ops", "engine", "passes", "models", "data", "train",
               "hardware"},
    "run": {"base", "text", "formats", "ir", "ops", "engine", "passes", "io", "models", "data", "train", "report",
            "search", "hardware"},
    "cli": {"base", "text", "formats", "ir", "ops", "engine", "passes", "io", "models", "data", "train",
            "report", "search", "hardware", "run"},
}
# Folders inside these that stand alone: beside themselves they include only what is named. The checker of
# designs shares nothing with what writes them.
ALONE = {"hardware/verify": ("mase/base/",)}
# Headers that only the file's own folder and the named ones may see: heavy to compile.
HEAVY = re.compile(r"#include <(toml\+\+/|nlohmann/json\.hpp|CLI/|rapidcheck)")

# Names by the header that promises them; enough of each to notice that it is missing.
PROMISED = {
    "algorithm": "all_of any_of clamp copy copy_n count count_if equal fill fill_n find find_if max max_element"
                 " min min_element minmax none_of nth_element remove_if reverse sort stable_sort transform unique",
    "array": "array",
    "atomic": "atomic",
    "bit": "bit_cast bit_width countl_zero countr_zero popcount",
    "chrono": "chrono",
    "cmath": "abs ceil copysign exp exp2 floor fma frexp isfinite isinf isnan ldexp log log1p log2 nearbyint"
             " nextafter pow round signbit sqrt tanh trunc",
    "cstdio": "FILE fclose fflush fopen fprintf fputs fwrite printf rename",
    "cstdlib": "abort exit free getenv malloc strtod strtol",
    "cstring": "memchr memcmp memcpy memmove memset strcmp strerror strlen",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream",
    "functional": "function greater hash less",
    "limits": "numeric_limits",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag scoped_lock unique_lock",
    "new": "bad_alloc align_val_t",
    "numeric": "accumulate gcd inner_product iota lcm partial_sum reduce",
    "optional": "nullopt optional",
    "set": "set",
    "span": "span",
    "sstream": "istringstream ostringstream stringstream",
    "string": "stod stoi string to_string",
    "thread": "jthread this_thread thread",
    "tuple": "tie tuple",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "variant": "get_if holds_alternative monostate variant visit",
    "vector": "vector",
}
USES = {header: re.compile(r"\bstd::(?:%s)\b" % "|".join(names.split())) for header, names in PROMISED.items()}
USES["fmt/format.h"] = re.compile(r"\bfmt::format\b")


def reached(path, source, known):
    """The headers that a file includes, itself or through headers of the project."""
    if path not in known:
        known[path] = set()  # a header that includes itself ends here
        for line in path.read_text().splitlines() if path.exists() else []:
            if match := re.match(r'#include [<"]([^>"]+)', line):
                known[path].add(match[1])
                known[path] |= reached(source.parent / match[1], source, known)
    return known[path]


def declared_types(source):
    """Each type of src/mase and the headers that define or announce it."""
    types = {}
    for path in source.rglob("*.h"):
        for match in re.finditer(r"^ *(?:struct|class|enum class) (\w+)", path.read_text(), re.M):
            types.setdefault(match[1], set()).add(str(path.relative_to(source.parent)))
    return types


def defined_twice(source):
    """Types of one namespace that two headers define: the linker would take one of them for both."""
    homes = {}
    for path in sorted(source.rglob("*.h")):
        namespace = None
        for line in path.read_text().splitlines():
            if match := re.match(r"namespace ([\w:]+) \{", line):
                namespace = match[1]
            elif match := re.match(r"(?:struct|class|enum class) (\w+)(?!\w|::)[^;]*\{", line):
                homes.setdefault(f"{namespace}::{match[1]}", []).append(str(path))
    return [f"{paths[1]}: {name} is defined in {paths[0]} too" for name, paths in homes.items() if len(paths) > 1]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    source = root / "src" / "mase"
    faults, known, types = defined_twice(source), {}, declared_types(source)
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        folder = path.relative_to(source).parts[0]
        if folder not in ALLOWED:
            faults.append(f"{path}: folder '{folder}' has no rule; add one to {__file__}")
            continue
        text = path.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            if path.suffix == ".h" and HEAVY.match(line):
                faults.append(f"{path}:{number}: a header includes a heavy library: {line}")
            match = re.match(r'#include "mase/(\w+)/', line)
            if match and match[1] != folder and match[1] not in ALLOWED[folder]:
                faults.append(f"{path}:{number}: {folder} must not include {match[1]}")
            own_folder = str(path.parent.relative_to(source))
            if own_folder in ALONE and match and not line.startswith(
                    tuple(f'#include "{allowed}' for allowed in (*ALONE[own_folder], f"mase/{own_folder}/"))):
                faults.append(f"{path}:{number}: {own_folder} stands alone: {line}")
            if line.startswith('#include "') and not re.match(r'#include "(mase|hwy|support)/', line):
                faults.append(f"{path}:{number}: write the path from src: {line}")
        code = re.sub(r'//.*|"(?:[^"\\]|\\.)*"', "", text)
        own = {str(path.relative_to(source.parent))} | reached(path, source, known)
        for header, names in USES.items():
            if header not in own and (use := names.search(code)):
                faults.append(f"{path}: {use[0]} is used without #include <{header}>")
        for name in sorted(set(re.findall(r"(?<!::)\b[A-Z]\w+", code)) & types.keys()):
            homes = {header.split("/")[1] for header in types[name]}
            if not homes & (ALLOWED[folder] | {folder}):
                continue  # another one of the same name
            if not types[name] & own and not re.search(rf"(?:\b(?:struct|class|using) |::){name}\b", code):
                faults.append(f"{path}: {name} is used without #include \"{min(types[name])}\"")
        if re.search(r"\bRegister<\w+> registered\b", code) and not re.search(
                rf"namespace mase::(?:\w+::)?{path.stem}_", code):
            faults.append(f"{path}: keep what it registers in a namespace mase::{path.stem}_...")
        if not text.startswith("// SPDX-License-Identifier: Apache-2.0"):
            faults.append(f"{path}:1: the SPDX line is missing")
    print("\n".join(faults) if faults else "include rules hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
