"""Checks that the links between the Markdown pages lead to files and headings."""

import os
import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)
ANCHOR = re.compile(r'id="([^"]+)"')


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(page):
    """The anchors that GitHub gives the headings of a page, and those that it has itself."""
    text = Path(page).read_text()
    headings = HEADING.findall(without_code(text))
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(ANCHOR.findall(text))


def fault(page, link):
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if not os.path.exists(target):
        return "no such file"
    if anchor and target.endswith(".md") and anchor not in anchors(target):
        return "no such heading"
    return None


def main():
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    pages = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    links = [
        (page, link)
        for page in pages
        for link in LINK.findall(without_code(Path(page).read_text()))
        if "://" not in link
    ]
    faults = [f"{page}: {link}: {fault(page, link)}" for page, link in links if fault(page, link)]
    for line in faults:
        print(line, file=sys.stderr)
    print(f"{len(links)} links on {len(pages)} pages, {len(faults)} faults")
    return 1 if faults or len(links) < 100 else 0


sys.exit(main())
