"""Converts equations between dollar signs to MathML during the build; browsers show it without scripts or fonts."""

from __future__ import annotations

import re

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.config.defaults import MkDocsConfig

DISPLAYED = r"\$\$(.+?)\$\$"
WITHIN = r"(?<![\w\\$])\$([^\s$](?:[^$]*[^\s$])?)\$(?![\w$])"


class Equation(InlineProcessor):
    """An equation, inline or displayed."""

    def __init__(self, pattern: str, md: Markdown, display: str) -> None:
        super().__init__(pattern, md)
        self.display = display

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802 (Markdown's name)
        return self.md.htmlStash.store(convert(m[1], display=self.display)), m.start(), m.end()


class Equations(Extension):
    """Markdown with equations. Code is processed first, so dollar signs in code are left alone."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        md.inlinePatterns.register(Equation(DISPLAYED, md, "block"), "equation-displayed", 186)
        md.inlinePatterns.register(Equation(WITHIN, md, "inline"), "equation-within", 185)


def on_config(config: MkDocsConfig) -> None:
    config.markdown_extensions.append(Equations())  # type: ignore[arg-type]
