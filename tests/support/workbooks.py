"""Excel workbooks as small as they can be, and as other programs write them."""

import zipfile
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TIES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DATE, CLOCK, OWN = 1, 2, 3  # styles of cells: two that every workbook has, and yyyy-mm-dd


def cell(value, place, row):
    """A cell as XML; a text is written in place, a pair is a number and its style."""
    at = f'r="{chr(65 + place)}{row}"'
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c {at} t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str) and value.startswith("#"):
        return f'<c {at} t="e"><v>{value}</v></c>'
    if isinstance(value, str):
        return f'<c {at} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, tuple):
        return f'<c {at} s="{value[1]}"><v>{value[0]}</v></c>'
    return f"<c {at}><v>{value!r}</v></c>"


def write_workbook(file, rows, sheet=None, shared=None, before=0):
    """Write a workbook; ``sheet`` is XML instead of the rows, ``shared`` the XML of texts, ``before`` empty sheets."""
    data = "".join(
        f'<row r="{k}">{"".join(cell(value, place, k) for place, value in enumerate(row))}</row>'
        for k, row in enumerate(rows, 1)
    )
    sheets = [""] * before + [data if sheet is None else sheet]
    names = "".join(f'<sheet name="s{k}" sheetId="{k + 1}" r:id="rId{k}"/>' for k in range(len(sheets)))
    ties = "".join(f'<Relationship Id="rId{k}" Type="x" Target="worksheets/sheet{k}.xml"/>' for k in range(len(sheets)))
    styles = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 20, 164))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_TIES}"><sheets>{names}</sheets></workbook>'
        )
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{ties}</Relationships>")
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{_MAIN}"><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
            f"<cellXfs>{styles}</cellXfs></styleSheet>",
        )
        if shared is not None:
            archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{_MAIN}">{shared}</sst>')
        for k, each in enumerate(sheets):
            archive.writestr(
                f"xl/worksheets/sheet{k}.xml",
                f'<worksheet xmlns="{_MAIN}"><sheetData>{each}</sheetData></worksheet>',
            )
