"""Checks that the links between the Markdown pages lead to files and headings."""

import os
import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)
ANCHOR = re.compile(r'id="([^"]+)"')


def text_of(page):
    return re.sub(r"^```.*?^```$", "", Path(page).read_text(), flags=re.M | re.S)


def anchors(page):
    """The anchors that GitHub gives the headings of a page, and those that it has itself."""
    text = text_of(page)
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).strip() for heading in HEADING.findall(text))
    return {slug.replace(" ", "-") for slug in slugs} | set(ANCHOR.findall(text))


def fault(page, link):
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if not os.path.exists(target):
        return "no such file"
    if anchor and target.endswith(".md") and anchor not in anchors(target):
        return "no such heading"
    return None


listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
pages = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
links = [(page, link) for page in pages for link in LINK.findall(text_of(page)) if "://" not in link]
faults = [f"{page}: {link}: {found}" for page, link in links if (found := fault(page, link))]
print(*faults, f"{len(links)} links on {len(pages)} pages, {len(faults)} faults", sep="\n")
sys.exit(bool(faults) or len(links) < 100)
