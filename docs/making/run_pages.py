"""Run the code of the README and of the pages: the blocks of a page are one script.

Run this file to write the pictures of all pages, or with ``outputs`` to write what the blocks print into the pages.
Files after ``outputs`` are the pages to run, such as ``outputs README.md``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
OUTPUT = "Output"  # the title of a block that shows what the block before it prints
OMITTED = "..."  # marks parts of an output that are not shown
_FENCE = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?$')
_NOT_RUN = re.compile(r"^<!-- not run: (?P<reason>.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its content, its first line, and the reason if it is not run."""

    language: str
    title: str | None
    code: str
    line: int
    reason: str | None

    @property
    def is_run(self) -> bool:
        """Whether it is code to run. A block of Python with a title is a file of that name."""
        return self.language in ("python", "sh") and self.title is None and self.reason is None

    @property
    def is_file(self) -> bool:
        """Whether it is a file that the page needs."""
        return self.title is not None and self.title != OUTPUT and self.reason is None


@dataclass(frozen=True)
class Ran:
    """A block that was run, what it printed, and the block that shows the expected output."""

    block: Block
    printed: str
    output: Block | None

    @property
    def expected(self) -> str | None:
        """What the page shows as its output."""
        return None if self.output is None else self.output.code


def pages() -> list[Path]:
    """Return the README and the pages, without those that have no code to run."""
    found = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [path for path in found if any(block.is_run for block in read_blocks(path))]


def read_blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    found, before, lines = [], "", iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        fence = _FENCE.match(line)
        if fence is None:
            before = line.strip() or before
            continue
        code = []
        for _, inside in lines:
            if inside == "```":
                break
            code.append(inside)
        reason = _NOT_RUN.match(before)
        text = "".join(f"{inside}\n" for inside in code)
        found.append(Block(fence["language"], fence["title"], text, number, reason["reason"] if reason else None))
        before = ""
    return found


def run_page(page: Path, folder: Path) -> Iterator[Ran]:
    """Run the blocks of a page in order, in one namespace and in a folder."""
    blocks = read_blocks(page)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block.is_file:
            (folder / str(block.title)).write_text(block.code, encoding="utf-8")
        if not block.is_run:
            continue
        with _inside(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            if block.language == "sh":
                _run_shell(block.code)
            else:
                # The empty lines make errors name the line of the page.
                exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
        yield Ran(block, printed.getvalue(), after if after is not None and after.title == OUTPUT else None)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Make a folder the working directory, and let code import its modules."""
    here, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(here)
        sys.path[:] = path
        for module in folder.glob("*.py"):  # another page may have a module of the same name
            sys.modules.pop(module.stem, None)


def _run_shell(code: str) -> None:
    """Run the lines of a shell block; each must call absentia or Python."""
    from absentia.cli import main

    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["absentia"]:
            try:
                main(words[1:])
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(f"{line!r} ended with {end.code}") from end
        elif words[:1] == ["python"] and len(words) == 2:
            runpy.run_path(words[1], run_name="__main__")
        elif words:
            raise ValueError(f"A line of a shell block must call absentia or python file.py. Got {line!r} instead.")


def make_pictures() -> None:
    """Run all pages and keep the pictures that they write."""
    pictures = DOCS / "pictures"
    pictures.mkdir(exist_ok=True)
    for page in pages():
        with tempfile.TemporaryDirectory() as folder:
            for _ in run_page(page, Path(folder)):
                pass
            written = sorted(Path(folder).glob("*.png"))
            for picture in written:
                kept = f"(gallery/{picture.name})" in page.read_text(encoding="utf-8")
                shutil.copy(picture, DOCS / "gallery" if kept else pictures)
        print(f"{page.name}: {', '.join(one.name for one in written) or 'no pictures'}", flush=True)


def write_outputs(page: Path) -> None:
    """Run a page and write what its blocks print into it, except for outputs with omitted parts."""
    with tempfile.TemporaryDirectory() as folder:
        ran = list(run_page(page, Path(folder)))
    lines = page.read_text(encoding="utf-8").splitlines()
    for one in reversed(ran):  # from last to first, so that line numbers stay valid
        if one.output is not None and OMITTED not in one.output.code:
            begin = one.output.line
            printed = [line.rstrip() for line in one.printed.rstrip().splitlines()]
            lines[begin : begin + one.output.code.count("\n")] = printed
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["outputs"]:
        named = [Path(name) for name in sys.argv[2:]]
        for page in named or pages():
            write_outputs(page)
    else:
        make_pictures()
