"use strict";
// The cells of a map: which one is at a place, and very many of them as one picture, which needs no shapes in the document.
const Cells = (() => {
  const MANY = 4000, FEW = 6e5, PIXELS = 1.5e6, HALF = { area: 0, line: 2, point: 5 }; // half of a line's or a point's width, units of the drawing
  const numbers = (text) => text.split(/[ L]/).map(Number);
  // A cell's SVG path: its rings or lines, each [x, y, x, y, ...], and the box around them.
  const read = (path) => {
    const lines = path.split("M").slice(1).map((part) => numbers(part.replace(/Z|h0/, "")));
    let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
    for (const line of lines) for (let k = 0; k < line.length; k += 2) {
      left = Math.min(left, line[k]);
      right = Math.max(right, line[k]);
      top = Math.min(top, line[k + 1]);
      bottom = Math.max(bottom, line[k + 1]);
    }
    return { lines, left, top, right, bottom };
  };
  // The rings of the areas that a cell fills; lines and points become areas of their width.
  const areas = ({ lines }, kind, half) => {
    if (kind === "area") return [lines];
    if (kind === "point") return lines.map(([x, y]) => [[x - half, y - half, x + half, y - half, x + half, y + half, x - half, y + half]]);
    return lines.flatMap((points) => {
      const quads = [];
      for (let k = 2; k < points.length; k += 2) {
        const [x, y, X, Y] = points.slice(k - 2, k + 2), long = Math.hypot(X - x, Y - y) || 1;
        const across = (half * (Y - y)) / long, down = (half * (x - X)) / long;
        quads.push([[x + across, y + down, X + across, Y + down, X - across, Y - down, x - across, y - down]]);
      }
      return quads;
    });
  };
  const packed = new Map();
  const pixel = (colour) => {
    if (!packed.has(colour)) {
      const [r, g, b] = colour.startsWith("#") ? [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)) : colour.slice(4, -1).split(",").map(Number);
      packed.set(colour, new Uint32Array(new Uint8ClampedArray([r, g, b, 255]).buffer)[0]);
    }
    return packed.get(colour);
  };
  const of = ({ paths, kind }) => {
    let shapes = null;
    const known = () => (shapes = shapes || paths.map(read)); // when they are first needed
    const pen = document.createElement("canvas").getContext("2d");
    // The topmost cell at a place, or null; a line or a point is `half` units to either side.
    const at = (x, y, half) => {
      const near = (i) => {
        const { left, top, right, bottom } = shapes[i];
        if (x < left - half || x > right + half || y < top - half || y > bottom + half) return false;
        pen.lineWidth = 2 * half;
        return kind === "point" || (kind === "area" ? pen.isPointInPath(new Path2D(paths[i]), x, y, "evenodd") : pen.isPointInStroke(new Path2D(paths[i]), x, y));
      };
      for (let i = known().length - 1; i >= 0; i -= 1) if (near(i)) return i;
      return null;
    };
    // The cells in `box` (left, top, width and height in the drawing) as pixels: which cell each one shows is computed once.
    // `zoom` is how much larger than the whole drawing they are seen, `most` the largest number of pixels.
    const raster = (box, zoom, most = PIXELS) => {
      const [left, top, width, height] = box, half = HALF[kind] / zoom, scale = Math.min(2.5 * zoom, Math.sqrt(most / (width * height)));
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
            shown.fill(i, row * wide + Math.min(wide, Math.max(0, a)), row * wide + Math.max(0, Math.min(wide, b)));
          }
        }
      };
      known().forEach((shape, i) => {
        if (shape.right + half < left || shape.left - half > left + width || shape.bottom + half < top || shape.top - half > top + height) return;
        for (const outline of areas(shape, kind, half)) fill(outline, i);
      });
      const paint = (canvas, colour) => {
        const image = new ImageData(wide, tall), pixels = new Uint32Array(image.data.buffer), colours = new Uint32Array(paths.length);
        for (let i = 0; i < colours.length; i += 1) colours[i] = pixel(colour(i));
        for (let k = 0; k < pixels.length; k += 1) if (shown[k] >= 0) pixels[k] = colours[shown[k]];
        if (canvas.width !== wide || canvas.height !== tall) Object.assign(canvas, { width: wide, height: tall });
        canvas.getContext("2d").putImageData(image, 0, 0);
        return canvas;
      };
      return { box, scale, zoom, paint };
    };
    return { at, raster, half: HALF[kind] };
  };
  return { MANY, FEW, of };
})();
