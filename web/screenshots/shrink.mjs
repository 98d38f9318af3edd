// Makes a PNG small: at most 256 colours, which is plenty for a page. Reads what Chromium writes: eight bits a channel.
import { deflateSync, inflateSync, crc32 as crc } from 'node:zlib';

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

export function shrink(png) {
  const { width, height, channels, pixels } = decode(png);
  const colors = palette(pixels, channels);
  const nearest = new Map();
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const color = at(pixels, (y * width + x) * channels);
      let index = nearest.get(color);
      if (index === undefined) nearest.set(color, (index = closest(colors, color)));
      rows[y * (width + 1) + 1 + x] = index;
    }
  }
  return encode(width, height, colors, rows);
}

function at(pixels, offset) {
  return (pixels[offset] << 16) | (pixels[offset + 1] << 8) | pixels[offset + 2];
}

/** The most used colours; of those that look alike only one. */
function palette(pixels, channels) {
  const counts = new Map();
  for (let offset = 0; offset < pixels.length; offset += channels) {
    const color = at(pixels, offset);
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const chosen = [];
  for (const [color] of [...counts].sort((a, b) => b[1] - a[1])) {
    if (chosen.length === 256) break;
    if (chosen.length < 48 || distance(color, chosen[closest(chosen, color)]) > 150) chosen.push(color);
  }
  return chosen;
}

function distance(a, b) {
  const [r, g, c] = [(a >> 16) - (b >> 16), ((a >> 8) & 255) - ((b >> 8) & 255), (a & 255) - (b & 255)];
  return 2 * r * r + 4 * g * g + 3 * c * c;
}

function closest(colors, color) {
  let [best, least] = [0, Infinity];
  for (let n = 0; n < colors.length; n++) {
    const far = distance(colors[n], color);
    if (far < least) [best, least] = [n, far];
  }
  return best;
}

function decode(png) {
  const data = [];
  let header;
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') header = body;
    if (type === 'IDAT') data.push(body);
    at += length + 12;
  }
  const [width, height, channels] = [header.readUInt32BE(0), header.readUInt32BE(4), header[9] === 6 ? 4 : 3];
  return { width, height, channels, pixels: unfilter(inflateSync(Buffer.concat(data)), width * channels, height, channels) };
}

function unfilter(raw, stride, height, channels) {
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const kind = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const left = x >= channels ? out[y * stride + x - channels] : 0;
      const up = y > 0 ? out[(y - 1) * stride + x] : 0;
      const corner = y > 0 && x >= channels ? out[(y - 1) * stride + x - channels] : 0;
      out[y * stride + x] = raw[y * (stride + 1) + 1 + x] + [0, left, up, (left + up) >> 1, paeth(left, up, corner)][kind];
    }
  }
  return out;
}

function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

function encode(width, height, colors, rows) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(colors.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  const parts = [['IHDR', header], ['PLTE', table], ['IDAT', deflateSync(rows, { level: 9 })], ['IEND', Buffer.alloc(0)]];
  return Buffer.concat([SIGNATURE, ...parts.map(([type, body]) => chunk(type, body))]);
}

function chunk(type, body) {
  const out = Buffer.alloc(body.length + 12);
  out.writeUInt32BE(body.length, 0);
  out.write(type, 4, 'latin1');
  body.copy(out, 8);
  out.writeUInt32BE(crc(out.subarray(4, 8 + body.length)), 8 + body.length);
  return out;
}
