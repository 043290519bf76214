/** Lists of many rows as JSON, in pieces between which the event loop has a turn. */
import { setImmediate } from 'node:timers/promises'

/** About 64 KiB. */
const rowsInPiece = 256

/** `lists`: by the name of their field. */
export async function* objectPieces(lists: {
  readonly [field: string]: readonly (object | string)[]
}): AsyncIterable<string> {
  let before = '{'
  for (const [field, rows] of Object.entries(lists)) {
    yield `${before}${JSON.stringify(field)}:`
    yield* rowPieces(rows)
    before = ','
  }
  yield '}\n'
}

/** A JSON array; yields to the event loop between two pieces. */
export async function* rowPieces(rows: Iterable<object | string>): AsyncIterable<string> {
  let piece = '['
  let count = 0
  for (const row of rows) {
    piece += `${count === 0 ? '' : ','}${JSON.stringify(row)}`
    if (++count % rowsInPiece !== 0) continue
    yield piece
    piece = ''
    await setImmediate()
  }
  yield `${piece}]\n`
}
