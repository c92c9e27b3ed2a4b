"""Adds pages from outside docs/ to the site, and rewrites links to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

EXTRA_PAGES = {"speed.md": "benchmarks/results/speed-amd-epyc.md"}


def on_files(files: Files, config: MkDocsConfig) -> None:
    root = Path(config.config_file_path).parent
    for page, source in EXTRA_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(root / source)))


def on_page_markdown(text: str, **_: Any) -> str:
    for page, source in EXTRA_PAGES.items():
        text = text.replace(f"](../{source}", f"]({page}")
    return text
