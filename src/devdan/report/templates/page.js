(() => {
  // Buttons that copy commands.
  document.querySelectorAll(".command").forEach((command) => {
    if (!navigator.clipboard) return;
    const button = command.appendChild(document.createElement("button"));
    button.textContent = "Copy";
    button.type = "button";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });
  // What is long and seldom read is folded on phones, but never on paper.
  const folds = [...document.querySelectorAll("details.fold")];
  if (window.matchMedia("(max-width: 640px)").matches) folds.forEach((fold) => { fold.open = false; });
  window.addEventListener("beforeprint", () => folds.forEach((fold) => { fold.open = true; }));
  // A shade on the side where more of a table is.
  const shade = (box) => {
    box.classList.toggle("more-left", box.scrollLeft > 1);
    box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  };
  const boxes = [...document.querySelectorAll(".scroll")];
  boxes.forEach((box) => { shade(box); box.addEventListener("scroll", () => shade(box), { passive: true }); });
  window.addEventListener("resize", () => boxes.forEach(shade));
  document.addEventListener("toggle", () => boxes.forEach(shade), true);
  // The page of a run that goes on loads itself again, unless somebody is busy with it.
  const running = document.getElementById("running");
  if (!running) return;
  const age = running.querySelector("time"), pause = running.querySelector("button");
  let paused = false, pressed = false;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
  });
  for (const [type, is] of [["pointerdown", true], ["pointerup", false], ["pointercancel", false]]) {
    window.addEventListener(type, () => { pressed = is; });
  }
  setInterval(() => {
    const seconds = Math.round((Date.now() - new Date(age.dateTime)) / 1000);
    if (seconds > 60) running.querySelector("span").textContent = `Nothing new for ${Math.floor(seconds / 60)} min: the run is at a long chunk, or it was stopped.`;
    const searches = [...document.querySelectorAll("input[type=search]")].some((input) => input.value || input === document.activeElement);
    if (!paused && !pressed && !searches && !document.hidden) location.reload();
  }, 5000);
})();
