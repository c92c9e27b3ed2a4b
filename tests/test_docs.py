"""The documentation: links lead somewhere, figures are those of the benchmarks, the site needs no network."""

import ast
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import deviations
import experiments
import growing
import nbformat
import pytest
from browser import WIDTHS, opened

from devdan import DEVDAN, kernel

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@cache
def text_of(path):
    """The prose of a page or a notebook."""
    if path.suffix == ".ipynb":
        cells = nbformat.read(path, as_version=4).cells
        return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return FENCE.sub("", path.read_text())


@cache
def anchors(path):
    """What the headings of a page are called in links, on the site and where repositories are read."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text_of(path))}


def broken(path):
    """The links of a page that lead nowhere."""
    for link in LINK.findall(text_of(path)):
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        if not re.match(r"[a-z]+:", link) and (not target.exists() or (anchor and anchor not in anchors(target))):
            yield link


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert list(broken(path)) == []


def test_a_broken_link_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A head\n\n[a](#a-head) [b](#another) [c](gone.md) [d](https://example.org/gone)\n")
    assert list(broken(page)) == ["#another", "gone.md"]


ROWS = {
    "`DEVDAN()`": "devdan",
    "`DEVDANEnsemble()`": "devdan-ensemble",
    "`DEVDAN.paper()`, inputs scaled beforehand": "devdan-paper",
    "the paper": "paper: DEVDAN",
    "River's adaptive random forest": "river-arf",
    "River's logistic regression": "river-logreg",
    "scikit-learn's MLP, mini-batches": "sklearn-mlp",
}


def rows(text):
    """Name and figures of each row of the tables; of rows of one name, the first."""
    found = {}
    for line in text.splitlines():
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found.setdefault(name, [match[0] for cell in cells if (match := re.search(r"\d+\.\d\d", cell))])
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_figures_are_those_of_the_benchmarks(page):
    quoted, measured, held_out = (
        rows((ROOT / path).read_text()) for path in (page, "docs/benchmarks-paper.md", "docs/benchmarks-unseen.md")
    )
    shown = ROWS.keys() & quoted.keys()
    assert {"`DEVDAN()`", "River's adaptive random forest"} <= shown
    for name in shown:
        average = held_out[f"`{ROWS[name]}`"][-1:] if name != "the paper" else []
        assert quoted[name] == measured[ROWS[name]][:5] + average, name


def test_the_page_for_contributors_names_every_room():
    page = (ROOT / "CONTRIBUTING.md").read_text().split("## Rooms")[1].split("## Conventions")[0]
    source = ROOT / "src" / "devdan"
    rooms = {path.stem for path in source.glob("*.py")} | {path.parent.name for path in source.glob("*/__init__.py")}
    assert rooms - {"__init__", "__main__"} <= set(re.findall(r"`(\w+)`", page))


def functions_named(page):
    """The functions in the last cells of tables, and in brackets behind bold words, with their modules if named."""
    cells = re.findall(r"^\|.*\|([^|]+)\|$", page, re.MULTILINE)
    brackets = re.findall(r"^- \*\*.+?\*\* \((`.+?)\)", page, re.MULTILINE | re.DOTALL)
    return {found for text in [*cells, *brackets] for found in re.findall(r"`(?:(\w+)\.)?(\w+)`", text)}


def functions_defined(room):
    """By module."""
    trees = {path.stem: ast.parse(path.read_text()) for path in (ROOT / "src" / "devdan" / room).glob("*.py")}
    return {
        module: {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for module, tree in trees.items()
    }


def test_the_algorithm_names_functions_that_are_where_it_says():
    defined = functions_defined("kernel")
    first, *others = re.split(r"^### (\w+)\.py$", (ROOT / "docs" / "algorithm.md").read_text(), flags=re.MULTILINE)
    chapters = [("paper", first), *zip(others[::2], others[1::2], strict=True)]
    named = {(module or chapter, name) for chapter, text in chapters for module, name in functions_named(text)}
    assert len(named) > 40
    assert {f"{module}.{name}" for module, name in named if name not in defined[module]} == set()


def test_the_algorithm_maps_every_equation():
    page = (ROOT / "docs" / "algorithm.md").read_text()
    spans = re.findall(r"^\| (\d+)(?:–(\d+))? \|", page, re.MULTILINE)
    numbers = [number for start, end in spans for number in range(int(start), int(end or start) + 1)]
    assert numbers == list(range(1, 25))  # the paper has 24


def test_the_page_on_rules_names_functions_that_exist():
    named = functions_named((ROOT / "docs" / "pensemble.md").read_text().split("## Our interpretation")[0])
    assert len(named) > 20
    assert {name for _, name in named} - {"rule_kernel"} <= set.union(*functions_defined("bench").values())


def test_the_picture_of_growth_follows_every_unit():
    model = DEVDAN(random_state=3)
    _, units = growing.learn(model)
    assert sum(unit.death is None for unit in units) == model.n_hidden_
    assert len(units) == 1 + sum(model.growths_.values())
    first = min(growing.DRIFTS)
    assert sum(unit.came > first for unit in units) > sum(unit.came <= first for unit in units)
    circles = ET.fromstring(f"<svg>{growing.lives(units)}</svg>").iter("circle")
    assert sum(1 for _ in circles) == sum(t % growing.BEAD == 0 for unit in units for t, _ in unit.weights)


# --- The site ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built without running the notebooks, which have a test of their own."""
    pytest.importorskip("mkdocs", reason="the site needs the docs extra")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {"RUN_NOTEBOOKS": "false", "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=os.environ | quiet, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


class Loaded(HTMLParser):
    """What a browser loads for a page by itself, unlike a link that somebody follows."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        names = ("src", "srcset", "data", "poster") if tag != "link" else ("href",)
        self.addresses += [value for name, value in attrs if name in names and value]


def loaded(path):
    if path.suffix == ".css":
        return re.findall(r"""(?:url\(|@import )["']?([^"')]+)""", path.read_text())
    parser = Loaded()
    parser.feed(path.read_text())
    return parser.addresses


def test_the_site_loads_nothing_from_another_host(site):
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 20
    foreign = {(path.name, address) for path in files for address in loaded(path) if re.match(r"(https?:)?//", address)}
    assert foreign == set()


def test_what_another_host_would_load_is_noticed(tmp_path):
    page = tmp_path / "page.html"
    page.write_text('<a href="https://a.org">a</a><script src="https://b.org/b.js"></script><link href="//c.org/c">')
    assert loaded(page) == ["https://b.org/b.js", "//c.org/c"]


@pytest.mark.parametrize("page", ["quickstart", "any-stream", "at-work", "river", "api"])
def test_code_is_not_cut_off(browser, site, page):
    for width in WIDTHS:
        with opened(browser, site / f"{page}.html", width) as shown:
            cut = shown.evaluate("""() => [...document.querySelectorAll("article pre code")]
                .filter((code) => code.scrollWidth > code.clientWidth + 1).map((code) => code.textContent)""")
            assert cut == [], width


def test_equations_are_mathml(site):
    page = (site / "how-it-works.html").read_text()
    equations = re.findall(r"<math.*?</math>", page, re.DOTALL)
    assert len(equations) > 20
    assert not any("\\" in equation for equation in equations), "a command that has no MathML"
    assert "$" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_links_to_notebooks_and_results_lead_to_their_pages(site):
    assert 'href="notebooks/first-stream.html"' in (site / "quickstart.html").read_text()
    assert 'href="speed.html"' in (site / "benchmarks.html").read_text()


def test_a_notebook_becomes_a_page(tmp_path):
    pytest.importorskip("mkdocs", reason="the site needs the docs extra")
    from notebooks import markdown  # noqa: PLC0415 (needs mkdocs)

    new = nbformat.v4
    outputs = [
        new.new_output("stream", text="said\n"),
        new.new_output("display_data", data={"image/svg+xml": "<svg/>", "text/plain": "<Figure>"}),
        new.new_output("execute_result", data={"text/plain": "'result'"}),
    ]
    cells = [
        new.new_markdown_cell("# Title"),
        new.new_code_cell("1 + 1", outputs=outputs, metadata={"alt": "a picture"}),
    ]
    nbformat.write(new.new_notebook(cells=cells), tmp_path / "small.ipynb")
    page = markdown(tmp_path / "small.ipynb", run=False)
    places = [page.index(part) for part in ("# Title", "1 + 1", "said", 'alt="a picture"', "'result'", "small.ipynb")]
    assert places == sorted(places)
    assert "<Figure>" not in page


def test_the_api_names_what_is_public(site):
    page = (site / "api.html").read_text()
    for name in ("DEVDAN.observe", "DEVDANEnsemble", "DEVDANFleet.partial_fit", "evaluation.prequential"):
        assert f'id="devdan.{name}"' in page
    assert ":meth:" not in page


def test_what_is_measured_by_altering_the_kernel_still_has_its_places():
    source = "".join(file.read_text() for file in Path(kernel.__file__).parent.glob("*.py"))
    tables = [getattr(experiments, name) for name in ("KERNEL", "FIELDS", "RANKS", "BEYOND", "MIXED")]
    altered = [one for table in (deviations.KERNEL, *tables) for one in table.items()]
    assert [(title, old) for title, changes in altered for old, _ in changes if old not in source] == []
