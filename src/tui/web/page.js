// Before Textual's own script looks for it, once all is loaded.
document.getElementById("terminal").dataset.sessionWebsocketUrl = `ws://${location.host}/ws`;

// The terminal has the keys as soon as it is connected, without a click.
const watcher = new MutationObserver(() => {
  if (!document.body.classList.contains("-loaded")) return;
  watcher.disconnect();
  document.querySelector(".xterm-helper-textarea").focus();
});
watcher.observe(document.body, { attributeFilter: ["class"] });
