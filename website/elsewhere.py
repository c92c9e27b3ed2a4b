"""Adds pages from elsewhere in the repository to the site, and corrects the links to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ELSEWHERE = {"speed.md": "benchmarks/results/speed-amd-epyc.md"}


def on_files(files: Files, config: MkDocsConfig) -> None:
    root = Path(config.config_file_path).parent
    for page, source in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(root / source)))


def on_page_markdown(text: str, **_: Any) -> str:
    for page, source in ELSEWHERE.items():
        text = text.replace(f"](../{source}", f"]({page}")
    return text
