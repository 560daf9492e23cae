"use strict";
// Very many cells as one picture: which cell each pixel shows is computed once, so that a change of colours or a search for the
// cell under the pointer needs no shapes.
const Cells = (() => {
  const MANY = 4000, PIXELS = 1.5e6, HALF = { line: 2, point: 5 }; // half of a line's or a point's width, units of the drawing
  const numbers = (text) => text.split(/[ L]/).map(Number);
  // The rings of a cell's SVG path, each [x, y, x, y, ...]; lines and points become areas of their width.
  const rings = (path, kind) => {
    const parts = path.split("M").slice(1), half = HALF[kind];
    if (kind === "area") return [parts.map((part) => numbers(part.replace("Z", "")))];
    if (kind === "point") return parts.map((part) => numbers(part.replace("h0", ""))).map(([x, y]) => [[x - half, y - half, x + half, y - half, x + half, y + half, x - half, y + half]]);
    return parts.flatMap((part) => {
      const points = numbers(part), quads = [];
      for (let k = 2; k < points.length; k += 2) {
        const [x, y, X, Y] = points.slice(k - 2, k + 2), long = Math.hypot(X - x, Y - y) || 1;
        const across = (half * (Y - y)) / long, down = (half * (x - X)) / long;
        quads.push([[x + across, y + down, X + across, Y + down, X - across, Y - down, x - across, y - down]]);
      }
      return quads;
    });
  };
  // `box` is [left, top, width, height], the view box of the map's SVG.
  const raster = ({ paths, kind }, [left, top, width, height]) => {
    const scale = Math.min(2.5, Math.sqrt(PIXELS / (width * height)));
    const wide = Math.ceil(width * scale), tall = Math.ceil(height * scale), shown = new Int32Array(wide * tall).fill(-1);
    // Pixels whose centre is inside, an even-odd fill.
    const fill = (outline, i) => {
      let low = Infinity, high = -Infinity;
      for (const ring of outline) for (let k = 1; k < ring.length; k += 2) { low = Math.min(low, ring[k]); high = Math.max(high, ring[k]); }
      const last = Math.min(tall - 1, Math.ceil((high - top) * scale - 0.5) - 1);
      for (let row = Math.max(0, Math.ceil((low - top) * scale - 0.5)); row <= last; row += 1) {
        const y = (row + 0.5) / scale + top, crossed = [];
        for (const ring of outline) {
          let x0 = ring[ring.length - 2], y0 = ring[ring.length - 1];
          for (let k = 0; k < ring.length; k += 2) {
            const x1 = ring[k], y1 = ring[k + 1];
            if (y0 <= y !== y1 <= y) crossed.push(x0 + ((y - y0) / (y1 - y0)) * (x1 - x0));
            x0 = x1;
            y0 = y1;
          }
        }
        if (crossed.length > 2) crossed.sort((a, b) => a - b);
        for (let k = 0; k + 1 < crossed.length; k += 2) {
          const [a, b] = [crossed[k], crossed[k + 1]].sort((one, other) => one - other).map((x) => Math.ceil((x - left) * scale - 0.5));
          shown.fill(i, row * wide + Math.max(0, a), row * wide + Math.max(0, Math.min(wide, b)));
        }
      }
    };
    paths.forEach((path, i) => { for (const outline of rings(path, kind)) fill(outline, i); });
    const packed = new Map();
    const pixel = (colour) => {
      if (!packed.has(colour)) {
        const [r, g, b] = colour.startsWith("#") ? [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)) : colour.slice(4, -1).split(",").map(Number);
        packed.set(colour, new Uint32Array(new Uint8ClampedArray([r, g, b, 255]).buffer)[0]);
      }
      return packed.get(colour);
    };
    return {
      canvas: () => Object.assign(document.createElement("canvas"), { width: wide, height: tall, ariaHidden: "true" }),
      paint: (canvas, colour) => {
        const image = new ImageData(wide, tall), pixels = new Uint32Array(image.data.buffer), colours = new Uint32Array(paths.length);
        for (let i = 0; i < colours.length; i += 1) colours[i] = pixel(colour(i));
        for (let k = 0; k < pixels.length; k += 1) if (shown[k] >= 0) pixels[k] = colours[shown[k]];
        canvas.getContext("2d").putImageData(image, 0, 0);
      },
      // The cell at a pointer over the map's SVG, or null.
      at: (svg, event) => {
        const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
        const column = Math.floor((x - left) * scale), row = Math.floor((y - top) * scale);
        const i = column >= 0 && column < wide && row >= 0 && row < tall ? shown[row * wide + column] : -1;
        return i < 0 ? null : i;
      },
      // A copy of the map's SVG with the cells as a picture in it, to be saved.
      whole: (svg, canvas) => {
        const copy = svg.cloneNode(true);
        const picture = Charts.node("image", { href: canvas.toDataURL(), x: left, y: top, width: wide / scale, height: tall / scale });
        if (kind === "area") copy.prepend(picture);
        else copy.append(picture);
        return copy;
      },
    };
  };
  return { MANY, raster };
})();
