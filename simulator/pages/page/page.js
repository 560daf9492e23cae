"use strict";
// The data of a page, and its charts; `Page` is what the script of a map needs of them.
const Page = (async () => {
  const source = document.getElementById("page-data");
  const unpacked = async (text) => {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const page = JSON.parse(source.dataset.packing ? await unpacked(source.textContent) : source.textContent);
  const byId = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };

  // ---- plots -----------------------------------------------------------------------------------------------
  const drawIn = (parent) => {
    for (const node of parent.querySelectorAll("[data-chart]:empty")) {
      if (node.closest("details:not([open])")) continue; // drawn when it is opened: it has no width before
      Charts.add(node, page.charts[node.dataset.chart], node.dataset.chart);
    }
  };
  drawIn(document);
  for (const box of document.querySelectorAll("details")) box.addEventListener("toggle", () => drawIn(box));
  // On paper nothing can be opened.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(#values-box)")];
    for (const box of opened) box.open = true;
    drawIn(document);
  });
  window.addEventListener("afterprint", () => opened.forEach((box) => { box.open = false; }));
  for (const box of document.querySelectorAll("[data-same]")) {
    box.addEventListener("change", () => {
      for (const [node, { chart }] of Charts.places) {
        if (!chart.facet || !chart.facet.startsWith(box.dataset.same)) continue;
        chart.apart = !box.checked;
        Charts.draw(node);
      }
    });
  }
  if (!page.campaigns) document.documentElement.dataset.report = "ready";
  return { page, byId, make };
})();
