"""The pages of this project as the tests of them see them."""

import argparse
import pathlib
import re
import sys
import textwrap
import unittest

_FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_INDENTED = re.compile(r"(?:^|\n)\n((?: {4}[^\n]*\n)+)")
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_REGION = re.compile(
    r"^ *// \[(?P<name>\w+)\]\n(?P<text>.*?)^ *// \[/(?P=name)\]$",
    re.MULTILINE | re.DOTALL,
)


class Page:
    def __init__(self, path, root):
        self.path = path
        self.name = str(path.relative_to(root))
        self.text = path.read_text("utf-8")
        self.prose = _FENCE.sub("", self.text)

    def blocks(self, kind):
        """(note, text) of each fenced block of this kind. The note is the HTML
        comment in the line above, or None."""
        return [
            (match["note"], match["text"])
            for match in _FENCE.finditer(self.text)
            if match["kind"] == kind
        ]

    def code(self):
        """Everything that is set as code, in pieces without line ends."""
        fenced = [match["text"] for match in _FENCE.finditer(self.text)]
        indented = [textwrap.dedent(text) for text in _INDENTED.findall(self.prose)]
        lines = [line for text in fenced + indented for line in text.splitlines()]
        return lines + _INLINE.findall(self.prose)

    def links(self):
        return _LINK.findall(self.prose)

    def anchors(self):
        """Of each heading, as GitHub makes them."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {
            re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in headings
        }


class Project:
    """Sources, pages and programs; set by main() before the tests run."""

    def __init__(self, build_dir, source_dir):
        self.build_dir = build_dir
        self.source_dir = source_dir

    def pages(self):
        paths = [self.source_dir / "README.md", self.source_dir / "CHANGELOG.md"]
        paths += sorted((self.source_dir / "docs").glob("*.md"))
        return [Page(path, self.source_dir) for path in paths]

    def regions(self):
        """(file, name, text without its indentation) of each marked region."""
        found = []
        for path in sorted((self.source_dir / "examples").glob("*.[ch]*")):
            for match in _REGION.finditer(path.read_text("utf-8")):
                text = textwrap.dedent(match["text"])
                found.append((path.name, match["name"], text))
        return found

    def program(self, name):
        """Where it was built, or None."""
        for folder in ("bin", "examples"):
            path = self.build_dir / folder / name
            if path.exists():
                return path
        return None


class PagesTest(unittest.TestCase):
    project = None
    maxDiff = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", type=pathlib.Path, required=True)
    parser.add_argument("--source-dir", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    PagesTest.project = Project(arguments.build_dir, arguments.source_dir)
    unittest.main(argv=[sys.argv[0], *rest])
