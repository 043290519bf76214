/**
 * Reads JSON of any size as its bytes arrive, and keeps only the values that a shape names. Images and pods choose labels, variables and
 * commands, and Docker repeats them in its answers: the memory that an answer takes must depend on the shape alone.
 */

/** What is kept of a value. A value of another type, and one that a shape does not name, is left out. */
export type JsonShape =
  /** A longer one than `mostTextBytes` is left out: half an id, name or path would be another one. */
  | 'text'
  /** Text for people: it is cut after `mostProseBytes`. */
  | 'prose'
  | 'number'
  | 'flag'
  | { readonly list: JsonShape; readonly most?: number }
  /** An object whose names are data. */
  | { readonly map: JsonShape }
  | { readonly fields: { readonly [name: string]: JsonShape } }

/** The type of what is kept: everything may be missing. */
export type Kept<S> = S extends 'text' | 'prose'
  ? string
  : S extends 'number'
    ? number
    : S extends 'flag'
      ? boolean
      : S extends { readonly list: infer One }
        ? readonly Kept<One>[]
        : S extends { readonly map: infer One }
          ? { readonly [name: string]: Kept<One> | undefined }
          : S extends { readonly fields: infer Fields }
            ? { readonly [Name in keyof Fields]?: Kept<Fields[Name]> | undefined }
            : never

export interface JsonReader<S extends JsonShape> {
  /** The values that end in this piece. Throws where the bytes are not JSON, or where more than `mostKeptBytes` would be kept. */
  read(piece: Buffer): readonly Kept<S>[]
}

/** PATH_MAX; longer than any id, label of the agent, or name of an image. */
export const mostTextBytes = 4_096
export const mostProseBytes = 64 * 1024
/** Elements of a list below the first level, and entries of a map. The others are left out. */
export const mostElements = 1_000
/** Bytes that are kept of one value. A list of some thousand containers fits. */
export const mostKeptBytes = 16 * 1024 * 1024
/** What an object, a list or a value takes in memory beside its text. */
const valueBytes = 64
/** More levels than any answer of Docker has. */
const mostDepth = 100
const mostScalarBytes = 64

const code = (character: string) => character.charCodeAt(0)
const [quote, backslash, comma, colon] = [code('"'), code('\\'), code(','), code(':')] as const
const [openBrace, closeBrace, openBracket, closeBracket] = [code('{'), code('}'), code('['), code(']')] as const

/** Faster than that of Buffer, which first looks at what is searched. */
const { indexOf: indexOfByte } = Uint8Array.prototype

type Frame = {
  readonly shape: JsonShape
  readonly value: { [name: string]: unknown } | unknown[]
  /** Name of the next value of an object; undefined: its name is next, or is not kept. */
  name: string | undefined
  isNameNext: boolean
  /** Elements and entries so far. */
  count: number
}

type Wanted = Exclude<JsonShape, object> | 'name'

/** The values so far, of which one has begun. */
function keptTree<S extends JsonShape>(shape: S) {
  const frames: Frame[] = []
  let ended: Kept<S>[] = []
  /** Levels of a value that is not kept. */
  let skippedDepth = 0
  let keptBytes = 0

  const keep = (bytes: number) => {
    keptBytes += bytes + valueBytes
    if (keptBytes > mostKeptBytes)
      throw new Error(`Docker's answer is too large: the agent needs more than ${mostKeptBytes} bytes of it`)
  }
  const put = (value: unknown) => {
    const frame = frames.at(-1)
    if (frame === undefined) {
      ended.push(value as Kept<S>)
      keptBytes = 0
    } else if (Array.isArray(frame.value)) frame.value.push(value)
    else if (frame.name !== undefined) {
      if (isMap(frame.shape)) keep(frame.name.length)
      // Not an assignment: the name may be that of the prototype.
      Object.defineProperty(frame.value, frame.name, { value, enumerable: true, writable: true, configurable: true })
    }
  }
  return {
    open(isList: boolean) {
      const next = skippedDepth > 0 ? undefined : nextShape(shape, frames.at(-1))
      if (typeof next !== 'object' || isList !== 'list' in next) {
        if (frames.length === 0) throw notJson()
        skippedDepth++
        return
      }
      if (frames.length >= mostDepth) throw notJson()
      keep(0)
      frames.push({ shape: next, value: isList ? [] : {}, name: undefined, isNameNext: !isList, count: 0 })
    },
    close(isList: boolean) {
      if (skippedDepth > 0) {
        skippedDepth--
        return
      }
      const frame = frames.pop()
      if (frame === undefined || Array.isArray(frame.value) !== isList) throw notJson()
      put(frame.value)
    },
    separate(isComma: boolean) {
      const frame = frames.at(-1)
      if (frame === undefined) throw notJson()
      if (skippedDepth > 0) return
      if (isComma) frame.count++
      if (!Array.isArray(frame.value)) frame.isNameNext = isComma
    },
    /** What the text or scalar that begins is; undefined: it is not kept. */
    wanted(isText: boolean): Wanted | undefined {
      if (skippedDepth > 0) return undefined
      const frame = frames.at(-1)
      if (isText && frame?.isNameNext === true) return 'name'
      const next = nextShape(shape, frame)
      const isScalar = next === 'number' || next === 'flag'
      if (typeof next === 'string' && isScalar !== isText) return next
      if (frame === undefined) throw notJson()
      return undefined
    },
    /** The text or scalar that ended; undefined: it is too long. */
    take(wanted: Wanted, value: string | number | boolean | undefined) {
      const frame = frames.at(-1)
      if (wanted === 'name') {
        if (frame !== undefined) frame.name = typeof value === 'string' ? value : undefined
        return
      }
      if (value === undefined) return
      keep(typeof value === 'string' ? value.length : 0)
      if (isOfType(wanted, value)) put(value)
    },
    taken() {
      const values = ended
      ended = []
      return values
    },
  }
}

/** A scalar of another type, such as null, is left out. */
function isOfType(wanted: Wanted, value: string | number | boolean): boolean {
  return typeof value === 'string' || typeof value === (wanted === 'flag' ? 'boolean' : 'number')
}

/** Reads one value after the other, as Docker's streams have them. */
export function jsonReader<S extends JsonShape>(shape: S): JsonReader<S> {
  const tree = keptTree(shape)
  /** What has begun and does not end in the last piece. */
  let begun: 'nothing' | 'text' | 'scalar' = 'nothing'
  let wanted: Wanted | undefined
  let isEscaped = false
  /** Bytes of earlier pieces: copies, because a piece may be large, and must not be kept in memory for its last bytes. */
  let earlier: Buffer[] = []
  let earlierBytes = 0

  const begin = (what: 'text' | 'scalar') => {
    begun = what
    wanted = tree.wanted(what === 'text')
  }
  /** The text or scalar continues in the next piece. */
  const holdOn = (bytes: Buffer) => {
    if (wanted !== undefined && earlierBytes <= mostBytes(wanted)) {
      earlier.push(Buffer.from(bytes.subarray(0, mostBytes(wanted) + 1)))
    }
    earlierBytes += bytes.length
  }
  const end = (piece: Buffer, from: number, to: number) => {
    if (wanted !== undefined) {
      const last = piece.subarray(from, to)
      const bytes = earlierBytes === 0 ? last : Buffer.concat([...earlier, last])
      tree.take(wanted, decoded(wanted, bytes))
    }
    begun = 'nothing'
    if (earlierBytes > 0) [earlier, earlierBytes] = [[], 0]
  }
  /** Returns the offset behind the part of the text that is in this piece. */
  const readText = (piece: Buffer, at: number): number => {
    let from = isEscaped ? at + 1 : at
    isEscaped = false
    for (;;) {
      const found = indexOfByte.call(piece, quote, from)
      if (found < 0) {
        isEscaped = isEscapedAt(piece, from, piece.length)
        holdOn(piece.subarray(at))
        return piece.length
      }
      if (!isEscapedAt(piece, from, found)) {
        end(piece, at, found)
        return found + 1
      }
      from = found + 1
    }
  }
  const readScalar = (piece: Buffer, at: number): number => {
    let to = at
    while (to < piece.length && isInScalar(piece[to] ?? 0)) to++
    if (to < piece.length) end(piece, at, to)
    else holdOn(piece.subarray(at))
    return to
  }
  const readMark = (byte: number) => {
    if (byte === quote) begin('text')
    else if (byte === openBrace || byte === openBracket) tree.open(byte === openBracket)
    else if (byte === closeBrace || byte === closeBracket) tree.close(byte === closeBracket)
    else if (byte === comma || byte === colon) tree.separate(byte === comma)
  }

  return {
    read(piece) {
      let at = 0
      while (at < piece.length) {
        const byte = piece[at] ?? 0
        if (begun === 'text') at = readText(piece, at)
        else if (begun === 'scalar') at = readScalar(piece, at)
        else if (isInScalar(byte)) begin('scalar')
        else {
          readMark(byte)
          at++
        }
      }
      return tree.taken()
    },
  }
}

/** An odd number of backslashes ends before `at`; those before `from` are not counted. */
function isEscapedAt(piece: Buffer, from: number, at: number): boolean {
  let first = at
  while (first > from && piece[first - 1] === backslash) first--
  return (at - first) % 2 === 1
}

function mostBytes(wanted: Wanted): number {
  if (wanted === 'number' || wanted === 'flag') return mostScalarBytes
  return wanted === 'prose' ? mostProseBytes : mostTextBytes
}

/** Undefined: it is too long. */
function decoded(wanted: Wanted, bytes: Buffer): string | number | boolean | undefined {
  const most = mostBytes(wanted)
  const isCut = bytes.length > most
  if (isCut && wanted !== 'prose') return undefined
  return wanted === 'number' || wanted === 'flag'
    ? scalarOf(bytes)
    : textOf(isCut ? bytes.subarray(0, most) : bytes, isCut)
}

/** The shape of the next value in `frame`; undefined: it is not kept. */
function nextShape(root: JsonShape, frame: Frame | undefined): JsonShape | undefined {
  if (frame === undefined) return root
  const { shape, name, count } = frame
  if (typeof shape === 'string') return undefined
  if ('list' in shape) return isTooMany(root, shape, count) ? undefined : shape.list
  if (name === undefined) return undefined
  if ('map' in shape) return count < mostElements ? shape.map : undefined
  return Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined
}

/** Its names are kept, too; those of the fields of a shape are there already. */
function isMap(shape: JsonShape): boolean {
  return typeof shape === 'object' && 'map' in shape
}

/** The rows of an answer are limited by `mostKeptBytes`: none of them is left out. */
function isTooMany(root: JsonShape, shape: { readonly most?: number }, count: number): boolean {
  return shape !== root && count >= (shape.most ?? mostElements)
}

/** Bytes of numbers, true, false and null: everything but white space and marks. */
function isInScalar(byte: number): boolean {
  return byte > 32 && byte !== comma && byte !== colon && byte !== quote && !isBracket(byte)
}

function isBracket(byte: number): boolean {
  return byte === openBrace || byte === closeBrace || byte === openBracket || byte === closeBracket
}

/** The text of a JSON string without its quotes. `isCut`: perhaps within a character or an escape. */
function textOf(bytes: Buffer, isCut: boolean): string {
  if (indexOfByte.call(bytes, backslash) < 0) return bytes.toString()
  for (let end = bytes.length; end >= bytes.length - (isCut ? longestEscape : 0); end--) {
    try {
      return JSON.parse(`"${bytes.toString('utf8', 0, end)}"`)
    } catch {
      // The last escape is cut.
    }
  }
  throw notJson()
}

/** `\u1234` */
const longestEscape = 6

function scalarOf(bytes: Buffer): number | boolean | undefined {
  try {
    return JSON.parse(bytes.toString('latin1')) ?? undefined
  } catch {
    throw notJson()
  }
}

function notJson(): Error {
  return new Error('Docker sent invalid JSON')
}
