"""Running the pages: a page's blocks of code are one script, and the pictures it writes are those that it shows.

Run as a script it makes the pictures; with ``outputs``, it writes into the pages what their blocks print now.
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
OUTPUT = "Output"  # the title of a block that holds what the block before it prints
LEFT_OUT = "..."  # stands in an output for what is not shown
_FENCE = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?$')
_NOT_RUN = re.compile(r"^<!-- not run: (?P<reason>.+) -->$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: what it holds, where it starts, and why it is not run, where it is not."""

    language: str
    title: str | None
    code: str
    line: int
    reason: str | None

    @property
    def is_run(self) -> bool:
        """Whether it is code to be run; a block of Python with a title is a file of that name."""
        return self.language in ("python", "sh") and self.title is None and self.reason is None

    @property
    def is_file(self) -> bool:
        """Whether it is a file of the reader's."""
        return self.title is not None and self.title != OUTPUT and self.reason is None


@dataclass(frozen=True)
class Ran:
    """A block that was run, what it printed, and the block that says what it prints."""

    block: Block
    printed: str
    output: Block | None

    @property
    def expected(self) -> str | None:
        """What the page says that it prints."""
        return None if self.output is None else self.output.code


def pages() -> list[Path]:
    """List the pages that hold code."""
    return sorted(path for path in DOCS.rglob("*.md") if any(block.is_run for block in read_blocks(path)))


def read_blocks(page: Path) -> list[Block]:
    """Take the fenced blocks out of a page."""
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
        text = "\n".join(code) + "\n"
        found.append(Block(fence["language"], fence["title"], text, number, reason["reason"] if reason else None))
        before = ""
    return found


def run_page(page: Path, folder: Path) -> Iterator[Ran]:
    """Run a page's blocks in their order, in one namespace and in a folder."""
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
                # Empty lines before it, so that an error names the line of the page.
                exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
        yield Ran(block, printed.getvalue(), after if after is not None and after.title == OUTPUT else None)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder, as a reader in theirs: what lies in it can be imported."""
    here, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(here)
        sys.path[:] = path
        for module in folder.glob("*.py"):  # another page's may have the same name
            sys.modules.pop(module.stem, None)


def _run_shell(code: str) -> None:
    """Run the lines of a shell block that call absentia or Python; there are no others."""
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
            raise ValueError(f"a line of a shell block must call absentia or python file.py. Got {line!r} instead.")


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
                shutil.copy(picture, pictures)
        print(f"{page.relative_to(DOCS)}: {', '.join(one.name for one in written) or 'no pictures'}", flush=True)


def write_outputs(page: Path) -> None:
    """Run a page and write what its blocks print into it, but for outputs that leave something out."""
    with tempfile.TemporaryDirectory() as folder:
        ran = list(run_page(page, Path(folder)))
    lines = page.read_text(encoding="utf-8").splitlines()
    for one in reversed(ran):  # from the last to the first, so that the numbers of lines stay true
        if one.output is not None and LEFT_OUT not in one.output.code:
            begin = one.output.line
            printed = [line.rstrip() for line in one.printed.rstrip().splitlines()]
            shown = 0 if one.output.code == "\n" else one.output.code.count("\n")
            lines[begin : begin + shown] = printed
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["outputs"]:
        for one in pages():
            write_outputs(one)
    else:
        make_pictures()
