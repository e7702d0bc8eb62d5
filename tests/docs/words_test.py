"""Nothing that ships speaks of the place where it was made."""

import re

import pages

EVERYWHERE = [r"/work/", r"\.\./shared\b"]
ON_PAGES = [r"\b(this|last|next|an earlier|previous) sessions?\b", r"\b[Ii]ssue \d", r"(?<![\w&])#\d", r"\bTODO\b"]


class Words(pages.PagesTest):
    def check(self, path, text, patterns):
        for number, line in enumerate(text.splitlines(), 1):
            for pattern in patterns:
                found = re.search(pattern, line)
                with self.subTest(file=str(path), line=number):
                    self.assertIsNone(found, line)

    def test_pages_and_examples(self):
        for page in self.project.pages():
            self.check(page.name, page.text, EVERYWHERE + ON_PAGES)
        for path in (self.project.source_dir / "examples").rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                self.check(path.name, path.read_text("utf-8"), EVERYWHERE + ON_PAGES)

    def test_sources(self):
        for folder in ("include", "src", "cmake", "bench", "tests"):
            for path in sorted((self.project.source_dir / folder).rglob("*")):
                is_text = path.suffix in (".h", ".cc", ".cmake", ".in", ".py", ".sh")
                if is_text and path.name != "words_test.py":
                    self.check(path, path.read_text("utf-8"), EVERYWHERE)


if __name__ == "__main__":
    pages.main()
