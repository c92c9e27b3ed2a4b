"""Turns each notebook into a page: runs it during the build and renders its cells and outputs as Markdown."""

from __future__ import annotations

import base64
import re
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient

OUTPUT = "{ .text .output .no-copy }"
LINK = re.compile(r"(\]\([\w./-]+)\.ipynb\b")


def on_files(files: Files, config: MkDocsConfig) -> None:
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = str(PurePosixPath(notebook.src_uri).with_suffix(".md"))
        path = Path(config.docs_dir, notebook.src_uri)
        files.append(File.generated(config, page, content=markdown(path, run=config.extra["run_notebooks"])))


def on_page_markdown(text: str, **_: Any) -> str:
    """Make links to a notebook point to its page."""
    return LINK.sub(r"\1.md", text)


def markdown(path: Path, run: bool) -> str:
    """A notebook as a page that can be downloaded."""
    notebook = nbformat.read(path, as_version=4)
    if run:
        place = {"metadata": {"path": str(path.parent)}}
        quiet = ["--log-level=ERROR"]  # it warns about its sockets otherwise
        NotebookClient(notebook, coalesce_streams=True, resources=place, extra_arguments=quiet).execute()
    parts = [part for cell in notebook.cells for part in cell_parts(cell)]
    return "\n\n".join([*parts, f'<a href="{path.name}" download>This page as a notebook</a>'])


def cell_parts(cell: Any) -> list[str]:
    """A cell's source and its outputs."""
    if cell.cell_type == "markdown":
        return [cell.source]
    return [fenced(cell.source, "python"), *(shown(output, cell) for output in cell.outputs)]


def shown(output: Any, cell: Any) -> str:
    """An output as an image or as text."""
    if output.output_type == "stream":
        return fenced(output.text, OUTPUT)
    if picture := output.data.get("image/svg+xml"):
        source = base64.b64encode(picture.encode()).decode()
        return f'<img alt="{cell.metadata.alt}" src="data:image/svg+xml;base64,{source}">'
    return fenced(output.data["text/plain"], OUTPUT)


def fenced(text: str, kind: str) -> str:
    return f"``` {kind}\n{text.rstrip()}\n```"
