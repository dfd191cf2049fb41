"""Runs the commands of a page and compares what they print with what the page shows.

    tutorial.py PAGE [HEADING]

A block of `sh` is run by one shell for the whole page, in a directory with the repository's
`examples` and `proto`. The block of text or JSON after it is what it must print; a line `…` stands for
any lines. A block of `sh` without one must succeed. Ids, etags and times may differ from
those of the page, but equal ones must stay equal. A comment `<!-- not run: … -->` before a
block leaves it out. The server is at EXPERTISE_TEST_ADDRESS.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DEFAULT_ADDRESS = "127.0.0.1:50051"
BLOCK = re.compile(r"^(?P<skip><!-- not run: [^>]*-->\n+)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
# What differs from run to run.
VARIABLE = re.compile(
    r"(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z)"
    r'|(?<="etag": ")(?P<etag>[\w-]+)'
)
END = "end of block"


def commands(page, heading):
    """The blocks of commands, each with what it must print or None."""
    text = Path(page).read_text()
    if heading:
        text = re.split(rf"^#+ {re.escape(heading)}$", text, flags=re.M)[1]
        text = re.split(r"^## ", text, flags=re.M)[0]
    found = []
    open_block = None
    for block in BLOCK.finditer(text):
        if block["kind"] == "sh":
            open_block = None if block["skip"] else [block["text"], None]
            if open_block:
                found.append(open_block)
        elif open_block:
            open_block[1] = block["text"]
            open_block = None
    assert found, f"{page} has no commands"
    return found


class Shell:
    """A bash that keeps its variables between blocks."""

    def __init__(self, directory):
        self.directory = directory
        self.process = subprocess.Popen(
            ["bash"], cwd=directory, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def run(self, block):
        """What the block prints, and its exit code."""
        block = block.replace(DEFAULT_ADDRESS, os.environ["EXPERTISE_TEST_ADDRESS"])
        Path(self.directory, "block.sh").write_text(block)
        self.process.stdin.write(f"source ./block.sh </dev/null; printf '\\n{END} %s\\n' $?\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(END):
                return "".join(lines).strip("\n"), int(line.split()[-1])
            lines.append(line)
        sys.exit("the shell has ended:\n" + "".join(lines))


class Comparison:
    """Compares lines, and keeps which value of the page stands for which of this run."""

    def __init__(self):
        self.values = {}

    def line(self, shown, printed):
        """Whether the lines are equal but for values that stand for one another."""
        shown, printed = (re.sub(r'": +', '": ', line).rstrip() for line in (shown, printed))
        if VARIABLE.sub("", shown) != VARIABLE.sub("", printed):
            return False
        pairs = list(zip(VARIABLE.finditer(shown), VARIABLE.finditer(printed)))
        known = dict(self.values)
        for ours, theirs in pairs:
            if ours.lastgroup != theirs.lastgroup:
                return False
            if known.setdefault(ours[0], theirs[0]) != theirs[0]:
                return False
        if len(set(known.values())) != len(known):
            return False
        self.values = known
        return True

    def blocks(self, shown, printed):
        """What differs first, or None."""
        lines = printed.splitlines()
        anything = False
        for line in shown.strip("\n").splitlines():
            if line.strip() == "…":
                anything = True
                continue
            while anything and lines and not self.line(line, lines[0]):
                lines.pop(0)
            if not lines or not (anything or self.line(line, lines[0])):
                return line
            anything = False
            lines.pop(0)
        return f"nothing more than that, but not {lines[0]!r}" if lines and not anything else None


def main(page, heading=None):
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        for name in ("examples", "proto"):
            os.symlink(Path(name).resolve(), Path(directory, name))
        os.environ["EXPERTISE_SERVER"] = f"http://{os.environ['EXPERTISE_TEST_ADDRESS']}"
        shell, comparison = Shell(directory), Comparison()
        blocks = commands(page, heading)
        for block, shown in blocks:
            printed, code = shell.run(block)
            if shown is None:
                failure = f"exit code 0, not {code}" if code else None
            else:
                failure = comparison.blocks(shown, printed)
            if failure:
                failures += 1
                print(f"{page}:\n{block}\nexpected: {failure}\nprinted:\n{printed}\n", file=sys.stderr)
    print(f"{page}: {len(blocks)} blocks of commands, {failures} failed")
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
