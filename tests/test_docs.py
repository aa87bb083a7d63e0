"""The README and the documentation: every page runs and prints what it shows, and the site builds."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import absentia
from absentia import interop, plots

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Outputs may differ by this much: trained networks differ between machines.
RELATIVE, ABSOLUTE = 0.1, 0.05
NUMBER = r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+−]?\d+)?"


def load(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "making" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


run_pages = load("run_pages")
references = load("references")
home = load("home")
run_notebooks = load("run_notebooks")
PAGES = run_pages.pages()


def name_of(page):
    return str(page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT))


def all_pages():
    return sorted(DOCS.rglob("*.md"))


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def differs(expected, printed):
    """Return how an output differs, in words or in numbers, or an empty text. Times in seconds may have any value."""
    wanted, got = (re.sub(rf"{NUMBER} s\b", "some s", " ".join(text.split())) for text in (expected, printed))
    parts = re.split(rf"({NUMBER}|\.\.\.)", wanted)
    pattern = "".join(
        ".*?" if part == "..." else f"({NUMBER})" if place % 2 else re.escape(part)
        for place, part in enumerate(parts)
    )
    match = re.fullmatch(pattern, got)
    if match is None:
        return f"the words differ:\n{printed}"
    figures = [number(part) for part in parts[1::2] if part != "..."]
    for want, found in zip(figures, map(number, match.groups()), strict=True):
        if abs(want - found) > RELATIVE * abs(want) + ABSOLUTE:
            return f"{found:g} is printed, not {want:g}:\n{printed}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_runs_and_prints_what_it_shows(page, tmp_path):
    for ran in run_pages.run_page(page, tmp_path):
        where = f"{name_of(page)}, line {ran.block.line}"
        if ran.expected is None:
            assert not ran.printed.strip(), f"{where}: the page does not show the output:\n{ran.printed}"
        else:
            assert not differs(ran.expected, ran.printed), f"{where}: {differs(ran.expected, ran.printed)}"
    shown = re.findall(r"\]\((?:\.\./)?(?:pictures|gallery)/([\w-]+\.png)\)", page.read_text())
    assert {path.name for path in tmp_path.glob("*.png")} == set(shown)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(run_notebooks.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_kept_in_it(path):
    kept = json.loads(path.read_text())["cells"]
    found = run_notebooks.run(path).cells
    assert sum("image/png" in str(cell.get("outputs")) for cell in found) >= 2
    for before, after in zip(kept, found, strict=True):
        expected, printed = (
            "".join("".join(one["text"]) for one in cell.get("outputs", []) if one["output_type"] == "stream")
            for cell in (before, after)
        )
        assert not differs(expected, printed)


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("mean leaves 74.6 % (R = -0.41), 4,800 evaluations, 9.9 s", True),
        ("mean  leaves\n75.1 % (R = −0.42), 4,810 evaluations, 0.1 s", True),
        ("mean leaves 94.6 % (R = -0.41), 4,800 evaluations, 0.5 s", False),
        ("mean leaves 74.6 % (R = 0.41), 4,800 evaluations, 0.5 s", False),
        ("zero leaves 74.6 % (R = -0.41), 4,800 evaluations, 0.5 s", False),
        ("mean leaves 74.6 % (R = -0.41)", False),
    ],
)
def test_outputs_are_compared_by_words_and_numbers(printed, same):
    assert (not differs("mean leaves 74.6 % (R = -0.41), 4,800 evaluations, 0.5 s", printed)) is same


def test_outputs_are_written_into_a_page_by_running_it(tmp_path):
    fence, output = "```python\n{}\n```\n\n", '```text title="Output"\n{}\n```\n\n'
    page = tmp_path / "page.md"
    page.write_text(
        f"{fence.format('print(1 + 1)')}{output.format('3')}{fence.format('print(4)')}{output.format('...')}"
    )
    run_pages.write_outputs(page)
    assert [block.code for block in run_pages.read_blocks(page)][1::2] == ["2\n", "...\n"]
    page.write_text(f"{fence.format('print(1)')}{output.format('').replace(chr(10) * 2, chr(10), 1)}The end.\n")
    run_pages.write_outputs(page)
    assert page.read_text().endswith('```text title="Output"\n1\n```\n\nThe end.\n')


def test_an_output_may_omit_parts():
    assert not differs("a 1 ... c 3", "a 1 and b 2 and c 3")
    assert differs("a 1 ... c 3", "a 1 and b 2 and c 4")


@pytest.mark.parametrize("page", [ROOT / "README.md", *all_pages()], ids=name_of)
def test_code_that_is_not_run_has_a_reason(page):
    text = page.read_text()
    blocks = run_pages.read_blocks(page)
    assert text.count("```") == 2 * len(blocks), "a fence is indented, or has an unknown form"
    for before, block in zip([None, *blocks], blocks, strict=False):
        if block.title == run_pages.OUTPUT:
            assert before is not None
            assert before.is_run, f"line {block.line}: no code that is run precedes this output"
        else:
            plain = not block.language and page.name == "design.md"
            assert block.is_run or block.is_file or block.reason or plain, f"line {block.line} is not run"


def test_a_block_that_fails_fails_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\n```\n\n```python\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        list(run_pages.run_page(page, tmp_path))
    assert caught.traceback[-1].lineno + 1 == 8  # the line of the page


@pytest.mark.parametrize("line", ["absentia explain --nonsense", "curl example.org"])
def test_a_wrong_line_of_shell_fails_the_page(tmp_path, line):
    page = tmp_path / "page.md"
    page.write_text(f"```sh\n{line}\n```\n")
    with pytest.raises((RuntimeError, ValueError)):
        list(run_pages.run_page(page, tmp_path))


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text().split("nav:")[1].split("markdown_extensions:")[0]
    assert sorted(re.findall(r"- ([\w/-]+\.md)$", menu, re.MULTILINE)) == [name_of(page) for page in all_pages()]


def test_every_public_name_is_in_the_reference():
    entries = " ".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    paths = re.findall(r"::: (absentia\.[\w.]+)", entries)
    described = {path.rsplit(".", 1)[1] for path in paths}
    names = {*absentia.__all__, *interop.__all__, *plots.__all__}
    # Versions, packages, and what the plots share need no entry.
    names -= {"__version__", "interop", "plots", "new_figure"}
    assert names <= described
    # A path that is also a module would show the module.
    modules = [(ROOT / "src").joinpath(*path.split(".")) for path in paths]
    assert not [module for module in modules if module.is_dir() or module.with_suffix(".py").exists()]


def test_every_reference_that_the_code_cites_is_in_the_bibliography():
    folders = (ROOT / "src", ROOT / "experiments")
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))
    cited = set(re.findall(r"\[([a-z]+\d{4}[a-z]+)\]", sources))
    known = references.read_references()
    assert cited
    assert cited <= set(known)
    for key, fields in known.items():
        text = references.cite(key, fields)
        assert f"{{#{key}}}" in text
        assert fields["title"] in text
        assert not set("$\\") & set(text)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(name):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / name).read_text())
    assert any(link.startswith("docs/") for link in links)
    assert not [link for link in links if not (link.startswith("http") or (ROOT / link).exists())]


def test_the_home_page_is_the_readme_without_links_out_of_the_site():
    text = "[a](docs/how-to/a.md#b), [c](CHANGELOG.md), [d](https://example.org)"
    assert home.as_page(text) == "[a](how-to/a.md#b), c, [d](https://example.org)"


def test_the_hooks_use_the_ruff_of_the_constraints():
    pinned = re.search(r"^ruff==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
    assert f"rev: v{pinned}\n" in (ROOT / ".pre-commit-config.yaml").read_text()


def test_examples_in_docstrings_become_code_and_keys_become_links():
    pytest.importorskip("griffe")
    text = load("docstrings").as_markdown("Do it, as in [ren2023faithful].\n\n>>> f(1)\n1\n\n>>> f(2)\n2\n\nMore.")
    assert text == "Do it, as in [ren2023faithful][].\n\n```pycon\n>>> f(1)\n1\n\n>>> f(2)\n2\n```\n\nMore."
    section = "Do it.\n\nExamples\n--------\n>>> f(1)\n1"
    assert load("docstrings").as_markdown(section) == section


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_the_network(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    for name in ("mkdocs.yml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("pictures", "__pycache__"))
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "docs" / "pictures").mkdir()
    for page in all_pages():  # empty pictures, because running all pages takes long
        for name in re.findall(r"pictures/([\w-]+\.png)", page.read_text()):
            (tmp_path / "docs" / "pictures" / name).write_bytes(b"")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(https?://[^\s\">]+)", page.read_text())
        assert not loaded, page.name
