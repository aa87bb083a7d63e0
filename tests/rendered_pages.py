"""The report as a browser reads it."""

import json
from html.parser import HTMLParser

import absentia as ab


class Page(HTMLParser):
    """A parsed page: elements with their attributes, the content of scripts and styles, and the visible text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.blocks = []
        self.text = []
        self._inside = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = (tag, dict(attrs))
            self.blocks.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.blocks[-1][2] += data
        else:
            self.text.append(data)

    def data(self):
        (block,) = [text for tag, attrs, text in self.blocks if attrs.get("type") == "application/json"]
        return json.loads(block)

    def words(self):
        return " ".join(" ".join(self.text).split())


def render(found, path, **options):
    return Page(ab.write_report(found, path / "report.html", **options).read_text(encoding="utf-8"))
