"use strict";
// The theme's toggles in the list of pages have a sign and no name, which a screen reader needs.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    const link = toggle.closest("li").querySelector("a");
    toggle.setAttribute("aria-label", `Pages of ${link ? link.textContent.trim() : "this part"}`);
  }
});
