// Server-sent events read from a `fetch`, because the browser's own reader cannot send a token.

export interface Frame { id: string | null; event: string; data: string }

/** Takes pieces of a stream as they come and gives whole frames. Each piece is looked at once. */
export class Parser {
  private parts: string[] = [];
  private endsLine = true;

  push(piece: string): Frame[] {
    const frames: Frame[] = [];
    let rest = piece;
    if (this.endsLine && this.parts.length > 0 && rest.startsWith('\n')) {
      frames.push(...this.flush());
      rest = rest.slice(1);
    }
    for (let at = rest.indexOf('\n\n'); at >= 0; at = rest.indexOf('\n\n')) {
      this.parts.push(rest.slice(0, at));
      frames.push(...this.flush());
      rest = rest.slice(at + 2);
    }
    if (rest.length > 0) this.parts.push(rest);
    this.endsLine = rest.endsWith('\n');
    return frames;
  }

  private flush(): Frame[] {
    const text = this.parts.join('');
    this.parts = [];
    const frame: Frame = { id: null, event: 'message', data: '' };
    const data: string[] = [];
    for (const line of text.split('\n')) {
      const colon = line.indexOf(':');
      if (colon === 0 || line === '') continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'id') frame.id = value;
      else if (field === 'event') frame.event = value;
      else if (field === 'data') data.push(value);
    }
    if (data.length === 0) return [];
    frame.data = data.join('\n');
    return [frame];
  }
}
