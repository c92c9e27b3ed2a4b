"""What a reader finds on a page, and text that must not become a part of it."""

import re
from html.parser import HTMLParser

HOSTILE = "</script><script>alert(1)</script>"


class Text(HTMLParser):
    """The text of a page, the tags that are open at its end, and the ids of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.open, self.words, self.scripts, self.sources = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "link", "br", "input"}:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append(dict(attrs).get("id"))
        self.sources += [value for name, value in attrs if name in {"src", "href"} and not value.startswith("#")]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def legends(html):
    """The texts of each legend."""
    return [
        re.findall(r"</svg>([^<]*)</li>", found)
        for found in re.findall(r'<ul class="legend">.*?</ul>', html, re.DOTALL)
    ]
