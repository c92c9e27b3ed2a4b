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
})();
