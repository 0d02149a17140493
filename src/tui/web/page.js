// The terminal has the keys as soon as it is connected, without a click.
const watcher = new MutationObserver(() => {
  if (!document.body.classList.contains("-loaded")) return;
  watcher.disconnect();
  document.querySelector(".xterm-helper-textarea").focus();
});
watcher.observe(document.body, { attributeFilter: ["class"] });
