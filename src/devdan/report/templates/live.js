(() => {
  // Whenever something has happened to the stream, its part of the page is fetched again.
  const live = document.getElementById("live"), told = document.getElementById("told"), stream = live.dataset.stream;
  if (!stream) {
    setTimeout(() => location.reload(), 5000);  // until there is one
    return;
  }
  let busy = false, again = false;
  const renew = async () => {
    if (busy) { again = true; return; }
    busy = true;
    again = false;
    const answer = await fetch(`live/${encodeURIComponent(stream)}`);
    if (answer.ok) live.innerHTML = await answer.text();
    busy = false;
    if (again) renew();
  };
  const events = new EventSource(`v1/streams/${encodeURIComponent(stream)}/events`);
  events.addEventListener("open", () => { told.textContent = "Follows the service."; });
  events.addEventListener("message", renew);
  events.addEventListener("error", () => { told.textContent = "The service does not answer; this is the latest that it told."; });
})();
