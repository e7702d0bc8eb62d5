"""Code on a page is a marked region of an example, which is compiled and run."""

import difflib
import re

import pages


def difference(text, regions):
    likest = max(
        regions,
        key=lambda region: difflib.SequenceMatcher(
            None, text.splitlines(), region.splitlines()
        ).ratio(),
    )
    return "\n".join(difflib.ndiff(text.splitlines(), likest.splitlines()))


class Code(pages.PagesTest):
    def test_each_block_is_a_region_of_an_example(self):
        regions = {text for _, _, text in self.project.regions()}
        blocks = 0
        for page in self.project.pages():
            for _, text in page.blocks("cpp"):
                blocks += 1
                with self.subTest(page=page.name):
                    self.assertTrue(
                        text in regions,
                        "code that is in no region of examples/; against the one "
                        "that is most like it:\n" + difference(text, regions),
                    )
        self.assertGreater(blocks, 10)

    def test_each_region_ends(self):
        for path in (self.project.source_dir / "examples").glob("*.cc"):
            text = path.read_text("utf-8")
            begun = re.findall(r"^ *// \[(\w+)\]$", text, re.MULTILINE)
            ended = re.findall(r"^ *// \[/(\w+)\]$", text, re.MULTILINE)
            self.assertEqual(begun, ended, path.name)

    def test_the_program_of_the_readme_has_at_most_15_lines(self):
        first = self.project.pages()[0].blocks("cpp")[0][1]
        self.assertIn("int main()", first)
        self.assertLessEqual(len(first.splitlines()), 15)


if __name__ == "__main__":
    pages.main()
