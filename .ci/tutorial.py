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
KINDS = {
    "id": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "time": r"\d{4}-\d\d-\d\dT[\d:.]+Z",
    "etag": r'(?<="etag": ")[\w-]+',
}
VARIABLE = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()))
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
            if block["tool"] not in (None, TOOL):
                # Both tools print the output after this block.
                continue
            open_block = None if block["skip"] else [block["text"], None]
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


def normalized(text):
    """With one space after each colon of JSON, because the tools differ in that."""
    return re.sub(r'": +', '": ', re.sub(r" +$", "", text.strip("\n"), flags=re.M)) + "\n"


def is_printed(shown, printed, known):
    """Whether `printed` matches the page. Values that stand for others are added to `known`."""
    names, pattern, end = {}, "", 0
    for value in [*VARIABLE.finditer(shown), None]:
        text = shown[end : value.start() if value else None]
        pattern += r"(?:.*\n)*?".join(re.escape(part) for part in re.split(r"^ *…\n", text, flags=re.M))
        if not value:
            break
        end = value.end()
        if value[0] in known:
            pattern += re.escape(known[value[0]])
        elif value[0] in names:
            pattern += f"(?P={names[value[0]]})"
        else:
            names[value[0]] = f"value{len(names)}"
            pattern += f"(?P<{names[value[0]]}>{KINDS[value.lastgroup]})"
    if not (found := re.fullmatch(pattern, printed)):
        return False
    known.update({value: found[name] for value, name in names.items()})
    return len(set(known.values())) == len(known)


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
            if code if shown is None else not is_printed(normalized(shown), normalized(printed), known):
                failures += 1
                print(f"{page}:\n{block}\nexpected:\n{shown or 'exit code 0'}\nprinted:\n{printed}\n", file=sys.stderr)
    print(f"{page}: {len(blocks)} blocks of commands, {failures} failed")
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
