"""The page is safe: its policy, its scripts and styles, and text that stays text."""

import base64
import hashlib
import json
import re
from itertools import combinations
from pathlib import Path

import absentia as ab
from absentia.plots.look import LOOKS, LOWERS, NEUTRAL, RAISES
from absentia.report import rendering

FOLDER = Path(rendering.__file__).parent


def test_no_text_in_the_data_can_end_its_element(everything, tmp_path):
    text = ab.write_report(everything, tmp_path / "report.html").read_text(encoding="utf-8")
    block = text.split('id="data">')[1].split("</script>")[0]
    assert not re.search("[<>&\u2028\u2029]", block)
    assert json.loads(rendering.json_block(["\u2028</script><!--&"])) == ["\u2028</script><!--&"]


def test_the_policy_allows_the_page_its_own_scripts_and_styles_and_nothing_else(page):
    (policy,) = [attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv")]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert rules["img-src"] == ["data:"]
    assert "unsafe" not in policy
    assert "http" not in policy

    def hashes(kind):
        shown = [text for tag, attrs, text in page.blocks if tag == kind and "type" not in attrs]
        return {f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in shown}

    assert set(rules["script-src"]) == hashes("script")
    assert hashes("style") < set(rules["style-src"])  # and the style that the charting library brings
    assert len(rules["style-src"]) == 2


def test_the_policy_comes_before_scripts_and_styles(page):
    order = [tag for tag, attrs in page.elements if attrs.get("http-equiv") or tag in ("script", "style")]
    assert order[0] == "meta"


def test_nothing_is_fetched(page):
    addresses = [value for _, attrs in page.elements for name, value in attrs.items() if name in ("src", "href")]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    style = page.blocks[0][2]
    assert "url(" not in style
    assert "@import" not in style


def test_the_vendored_files_are_those_that_the_readme_lists():
    readme = (FOLDER / "vendor" / "README.md").read_text()
    for file in ("d3.min.js", "plot.umd.min.js"):
        content = (FOLDER / "vendor" / file).read_bytes()
        assert f"`{hashlib.sha256(content).hexdigest()}`" in readme
        assert b"</script" not in content
    assert "7.9.0" in (FOLDER / "vendor" / "d3.min.js").read_text()[:100]
    assert "Permission to use" in (FOLDER / "vendor" / "d3.LICENSE").read_text()
    assert "Permission to use" in (FOLDER / "vendor" / "plot.LICENSE").read_text()


def test_the_colours_are_those_of_the_pictures():
    style, script = ((FOLDER / name).read_text() for name in ("report.css", "symbols.js"))
    for name, colour in {"raises": RAISES, "lowers": LOWERS, "neutral": NEUTRAL}.items():
        assert f"--{name}: {colour.lower()}" in style.lower()
    symbols = script.split("SYMBOLS = {")[1].split("};")[0]
    drawn = set(re.findall(r'(?:^|[ "])([^ "]+?)"?: (?:d3|polygon|saltire)', symbols))
    assert drawn == {marker for _, marker in LOOKS.values()}


def test_ids_are_unique_and_every_control_has_a_label(page):
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert all(one != other for one, other in combinations(ids, 2))
    labelled = {attrs.get("for") for tag, attrs in page.elements if tag == "label"}
    selects = [attrs["id"] for tag, attrs in page.elements if tag == "select"]
    assert selects
    assert set(selects) <= labelled
    buttons = [attrs for tag, attrs in page.elements if tag == "button"]
    assert all(attrs.get("aria-label") for attrs in buttons)
