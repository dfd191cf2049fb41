"""Runs the commands of a page and compares what they print with what the page shows.

    tutorial.py PAGE [HEADING]

A block of `sh` is run by one shell for the whole page, in a directory with the repository's
`examples` and `proto`. The block of text or JSON after it, or the file of a comment
`<!-- prints: FILE -->`, is what it must print; a line `…` stands for any lines. A block of `sh`
without one must succeed. Ids, etags and times may differ from those of the page, but equal ones
must stay equal. A comment `<!-- not run: … -->` before a block leaves it out, and so does
`<!-- with grpcurl -->` unless TOOL is grpcurl; TOOL is buf by default. The server is at
EXPERTISE_TEST_ADDRESS.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DEFAULT_ADDRESS = "127.0.0.1:50051"
BLOCK = re.compile(
    r"^(?:<!-- (?:(?P<skip>not run: [^>]*)|with (?P<tool>\w+)) -->\n+)?```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
FILE = re.compile(r"^<!-- prints: (\S+) -->$", re.M)
# What differs from run to run.
VARIABLE = re.compile(
    r"(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z)"
    r'|(?<="etag": ")(?P<etag>[\w-]+)'
)
END = "end of block"
# Makes the calls of the page.
TOOL = os.environ.get("TOOL", "buf")


def commands(page, heading):
    """The blocks of commands, each with what it must print or None."""
    text = page.read_text()
    if heading:
        text = re.split(rf"^#+ {re.escape(heading)}$", text, flags=re.M)[1]
        text = re.split(r"^## ", text, flags=re.M)[0]
    text = FILE.sub(lambda it: f"```text\n{(page.parent / it[1]).read_text()}```", text)
    found = []
    open_block = None
    for block in BLOCK.finditer(text):
        if block["kind"] == "sh":
            is_for_other_tool = block["tool"] not in (None, TOOL)
            if is_for_other_tool and open_block:
                # Both tools print the output after this block.
                continue
            is_left_out = block["skip"] or is_for_other_tool
            open_block = None if is_left_out else [block["text"], None]
            if open_block:
                found.append(open_block)
        elif open_block:
            open_block[1] = block["text"]
            open_block = None
    assert found, f"{page} has no commands"
    return found


def run(shell, directory, block):
    """What the shell prints for the block, and its exit code."""
    block_file = Path(directory, "block.sh")
    block_file.write_text(block.replace(DEFAULT_ADDRESS, os.environ["EXPERTISE_TEST_ADDRESS"]))
    shell.stdin.write(f"source {block_file} </dev/null; printf '\\n{END} %s\\n' $?\n")
    shell.stdin.flush()
    lines = []
    for line in shell.stdout:
        if line.startswith(END):
            return "".join(lines).strip("\n"), int(line.split()[-1])
        lines.append(line)
    sys.exit("the shell has ended:\n" + "".join(lines))


def equal(shown, printed, known):
    """Whether the lines are equal but for values that stand for one another, which are added to `known`."""
    shown, printed = (re.sub(r'": +', '": ', line).rstrip() for line in (shown, printed))
    if VARIABLE.sub("", shown) != VARIABLE.sub("", printed):
        return False
    values = dict(known)
    for ours, theirs in zip(VARIABLE.finditer(shown), VARIABLE.finditer(printed)):
        if ours.lastgroup != theirs.lastgroup or values.setdefault(ours[0], theirs[0]) != theirs[0]:
            return False
    if len(set(values.values())) != len(values):
        return False
    known.update(values)
    return True


def difference(shown, printed, known):
    """What differs first, or None."""
    lines = printed.splitlines()
    anything = False
    for line in shown.strip("\n").splitlines():
        if line.strip() == "…":
            anything = True
            continue
        while anything and lines and not equal(line, lines[0], known):
            lines.pop(0)
        if not lines or not (anything or equal(line, lines[0], known)):
            return line
        anything = False
        lines.pop(0)
    return f"nothing more than that, but not {lines[0]!r}" if lines and not anything else None


def main(page, heading=None):
    failures = 0
    os.environ["EXPERTISE_SERVER"] = f"http://{os.environ['EXPERTISE_TEST_ADDRESS']}"
    with tempfile.TemporaryDirectory() as directory:
        for name in ("examples", "proto"):
            os.symlink(Path(name).resolve(), Path(directory, name))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        shell = subprocess.Popen(["bash"], cwd=directory, text=True, **pipes)
        # Maps values on the page to values of this run.
        known = {}
        blocks = commands(Path(page), heading)
        for block, shown in blocks:
            printed, code = run(shell, directory, block)
            if shown is None:
                failure = f"exit code 0, not {code}" if code else None
            else:
                failure = difference(shown, printed, known)
            if failure:
                failures += 1
                print(f"{page}:\n{block}\nexpected: {failure}\nprinted:\n{printed}\n", file=sys.stderr)
    print(f"{page}: {len(blocks)} blocks of commands, {failures} failed")
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
