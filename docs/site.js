// What scrolls sideways, wide tables and long lines of programs, must be within reach of the keyboard too. The theme wraps
// tables while the page loads; whether something scrolls depends on the window's width.
window.addEventListener("load", () => {
  const watcher = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, pre > code")) watcher.observe(box);
});
