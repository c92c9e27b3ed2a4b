(() => {
  // The table of keys: sorted by a click on a heading, searched as one types, some rows at a time.
  const card = document.getElementById("all-keys");
  if (!card) return;
  const rows = JSON.parse(document.getElementById("key-rows").textContent), step = 50;
  const body = card.querySelector("tbody"), search = card.querySelector("input"), more = card.querySelector(".more button");
  const heads = [...card.querySelectorAll("thead th")], status = card.querySelector("[role=status]");
  const share = (value) => value === null ? "–" : `${value.toFixed(1)} %`, whole = (value) => value.toLocaleString("en");
  const written = [String, whole, share, share, whole, whole, whole];
  let column = 1, up = false, shown = step;
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);  // last, whichever way
    const way = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    return up ? way : -way;
  };
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const found = rows.filter((row) => row[0].toLowerCase().includes(wanted)).sort((a, b) => compare(a[column], b[column]));
    body.replaceChildren(...found.slice(0, shown).map((row) => {
      const line = document.createElement("tr");
      row.forEach((value, k) => {
        const cell = line.appendChild(document.createElement(k ? "td" : "th"));
        if (!k) cell.scope = "row";
        cell.textContent = written[k](value);
      });
      return line;
    }));
    heads.forEach((head, k) => k === column ? head.setAttribute("aria-sort", up ? "ascending" : "descending") : head.removeAttribute("aria-sort"));
    status.textContent = wanted ? `${whole(found.length)} found` : "";
    more.hidden = found.length <= shown;
    more.textContent = `${whole(Math.min(step, found.length - shown))} more of ${whole(found.length)}`;
  };
  heads.forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
    up = k === column ? !up : k === 0;
    column = k;
    draw();
  }));
  search.addEventListener("input", () => { shown = step; draw(); });
  more.addEventListener("click", () => { shown += step; draw(); });
  draw();
})();
