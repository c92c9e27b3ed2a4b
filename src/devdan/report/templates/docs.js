const authorize = document.getElementById("authorize");
if (authorize) {
  authorize.hidden = false;
  authorize.addEventListener("submit", (event) => event.preventDefault());
}
document.querySelectorAll("form[data-path]").forEach((form) => {
  // Sends a request as described; without a script, the page is complete but for that.
  const told = form.parentElement.querySelector("[role=status]");
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const path = form.dataset.path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(form.elements[name].value));
    const body = form.elements.body && form.elements.body.value;
    const token = authorize ? authorize.elements.token.value.trim() : "";
    const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
    try {
      const answer = await fetch(path.slice(1), { method: form.dataset.method, headers, body });
      const kind = answer.headers.get("content-type") || "";
      if (/json|text\/plain/.test(kind)) {
        told.textContent = `${answer.status}\n${await answer.text()}`;
      } else {  // a file, or events without an end
        told.textContent = `${answer.status} ${kind}`;
        if (answer.body) answer.body.cancel();
      }
    } catch (error) {
      told.textContent = String(error);
    }
  });
});
