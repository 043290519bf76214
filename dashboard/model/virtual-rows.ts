/** Which rows of a long list are drawn: those in the window, and a few around it. */

export type Window = { readonly scrollTop: number; readonly height: number }

export type DrawnRows = {
  readonly first: number
  /** Exclusive. */
  readonly end: number
  /** Height of the space above the first drawn row, in pixels. */
  readonly above: number
  /** Height of the whole list, in pixels. */
  readonly total: number
}

/** Pixels above and below the window, so that a frame which comes late shows rows. */
const aroundPixels = 400

/** `rowHeight` in pixels, the same for all rows. */
export function drawnRows(count: number, rowHeight: number, { scrollTop, height }: Window): DrawnRows {
  const around = Math.ceil(aroundPixels / rowHeight)
  const first = Math.max(0, Math.min(count, Math.floor(scrollTop / rowHeight) - around))
  const end = Math.max(first, Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + around))
  return { first, end, above: first * rowHeight, total: count * rowHeight }
}

/** So many columns of at least this width fit. */
export function columnsIn(width: number, least: number, gap: number): number {
  return Math.max(1, Math.floor((width + gap) / (least + gap)))
}
