"""Prints the licences of everything that the binary is built from, with their texts.

Usage: licences.py TARGET, such as x86_64-unknown-linux-gnu. deny.toml says which are allowed.
"""

import collections
import json
import pathlib
import subprocess
import sys

NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def main():
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={sys.argv[1]}"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    used, waiting = set(), [metadata["resolve"]["root"]]
    while waiting:
        node = nodes[waiting.pop()]
        if node["id"] not in used:
            used.add(node["id"])
            # Others are only used by builds and tests.
            waiting += [it["pkg"] for it in node["deps"] if any(kind["kind"] is None for kind in it["dep_kinds"])]
    texts = collections.defaultdict(list)
    for package in sorted((packages[it] for it in used), key=lambda it: (it["name"], it["version"])):
        name = f"{package['name']} {package['version']}"
        print(f"{name}: {package['license'] or package['license_file']}")
        for file in sorted(pathlib.Path(package["manifest_path"]).parent.iterdir()):
            if file.is_file() and file.name.upper().startswith(NAMES):
                texts[file.read_text(errors="replace").strip()].append(f"{name}, {file.name}")
    for text, places in texts.items():
        print("\n" + "=" * 80, *places, "", text, sep="\n")


main()
