/**
 * What a delta consists of, before compression: a number for the format, then in turn the length of new bytes, these bytes, the length of
 * a copy, and where the copy begins in the base, counted from the end of the copy before. Numbers are in groups of seven bits, the
 * lowest first, as in Protocol Buffers; a distance has its sign in its lowest bit.
 */

export type DeltaStep =
  | { readonly step: 'insert'; readonly bytes: Uint8Array }
  | { readonly step: 'copy'; readonly from: number; readonly length: number }

/** New bytes, and the part of the base that follows them. A `length` of 0: nothing follows, which only the last one may have. */
export type DeltaPart = { readonly bytes: Uint8Array; readonly from: number; readonly length: number }

export interface DeltaReader {
  /** The steps that this piece of a delta completes. Throws if it is not one of a delta. */
  read(piece: Uint8Array): readonly DeltaStep[]
  /** Throws if the delta is cut short. */
  end(): void
}

const format = 1
/** Far above every archive: a number is read exactly, and its sums, too. */
const largestNumber = 2 ** 40
type Awaited = 'format' | 'insertLength' | 'insert' | 'copyLength' | 'distance'

export function deltaReader(): DeltaReader {
  let awaited: Awaited = 'format'
  let number = 0
  let scale = 1
  let length = 0
  let copyEnd = 0

  /** The number that ends with this byte; undefined: another byte of it follows. */
  const numberWith = (byte: number): number | undefined => {
    number += (byte & 0x7f) * scale
    scale *= 128
    if (number > largestNumber || scale > largestNumber * 128)
      throw new Error('The delta has a number that is too large')
    if (byte >= 0x80) return undefined
    const whole = number
    number = 0
    scale = 1
    return whole
  }

  /** Takes a number that is complete. */
  const take = (whole: number): DeltaStep | undefined => {
    switch (awaited) {
      case 'format':
        if (whole !== format) throw new Error(`The delta has the format ${whole}, and ${format} is supported`)
        awaited = 'insertLength'
        return undefined
      case 'insertLength':
        length = whole
        awaited = whole > 0 ? 'insert' : 'copyLength'
        return undefined
      case 'copyLength':
        // Steps that add nothing to the archive would have no end.
        if (whole === 0) throw new Error('The delta has a copy of no bytes')
        length = whole
        awaited = 'distance'
        return undefined
      default:
        awaited = 'insertLength'
        return copyAt(whole)
    }
  }

  const copyAt = (distance: number): DeltaStep => {
    const from = copyEnd + (distance % 2 === 0 ? distance / 2 : -(distance + 1) / 2)
    if (from < 0) throw new Error('The delta copies from before its base')
    copyEnd = from + length
    return { step: 'copy', from, length }
  }

  const numberStep = (byte: number): DeltaStep | undefined => {
    const whole = numberWith(byte)
    return whole === undefined ? undefined : take(whole)
  }

  const insertFrom = (piece: Uint8Array): DeltaStep => {
    const bytes = piece.subarray(0, length)
    length -= bytes.length
    if (length === 0) awaited = 'copyLength'
    return { step: 'insert', bytes }
  }

  return {
    read(piece) {
      const steps: DeltaStep[] = []
      for (let at = 0; at < piece.length; ) {
        const step = awaited === 'insert' ? insertFrom(piece.subarray(at)) : numberStep(piece[at] ?? 0)
        at += step?.step === 'insert' ? step.bytes.length : 1
        if (step !== undefined) steps.push(step)
      }
      return steps
    },
    end() {
      const isAtNumber = scale === 1 && (awaited === 'insertLength' || awaited === 'copyLength')
      if (!isAtNumber) throw new Error('The delta is cut short')
    },
  }
}

/** What `deltaReader` reads. */
export function deltaBytes(parts: readonly DeltaPart[]): Buffer {
  const pieces: Uint8Array[] = [Uint8Array.of(format)]
  let copyEnd = 0
  for (const { bytes, from, length } of parts) {
    pieces.push(numberBytes(bytes.length), bytes)
    if (length === 0) continue
    const distance = from - copyEnd
    pieces.push(numberBytes(length), numberBytes(distance >= 0 ? 2 * distance : -2 * distance - 1))
    copyEnd = from + length
  }
  return Buffer.concat(pieces)
}

function numberBytes(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Uint8Array.from([...bytes, rest])
}
