/**
 * What the revision code of a Raspberry Pi means, in the form that it has since the Pi 2: NOQuuuWuFMMMCCCCPPPPTTTTTTTTRRRR
 * (Raspberry Pi documentation, "Raspberry Pi revision codes").
 */

export type BoardRevision = {
  /** `4B 1.5`; a type that is not in the list shows as its number. */
  readonly board: string
  readonly memoryMegabytes: number
  readonly maker: string | undefined
}

const newStyle = 1 << 23
const makers = ['Sony UK', 'Egoman', 'Embest', 'Sony Japan', 'Embest', 'Stadium']
const types: ReadonlyMap<number, string> = new Map([
  [0x00, 'A'],
  [0x01, 'B'],
  [0x02, 'A+'],
  [0x03, 'B+'],
  [0x04, '2B'],
  [0x06, 'CM1'],
  [0x08, '3B'],
  [0x09, 'Zero'],
  [0x0a, 'CM3'],
  [0x0c, 'Zero W'],
  [0x0d, '3B+'],
  [0x0e, '3A+'],
  [0x10, 'CM3+'],
  [0x11, '4B'],
  [0x12, 'Zero 2 W'],
  [0x13, '400'],
  [0x14, 'CM4'],
  [0x15, 'CM4S'],
  [0x17, '5'],
  [0x18, 'CM5'],
  [0x19, '500'],
  [0x1a, 'CM5 Lite'],
])

/** Undefined: the code is of the older form, whose boards run no 64-bit system. */
export function boardRevision(code: number): BoardRevision | undefined {
  if ((code & newStyle) === 0) return undefined
  const type = (code >> 4) & 0xff
  return {
    board: `${types.get(type) ?? `type ${type}`} 1.${code & 0xf}`,
    memoryMegabytes: 256 << ((code >> 20) & 0x7),
    maker: makers[(code >> 16) & 0xf],
  }
}
