/** `/proc/net/dev`: the traffic of each interface. */
import type { InterfaceReading } from '../../usage/usage.ts'

/** All interfaces but the loopback. */
export function interfacesOf(text: string): readonly InterfaceReading[] {
  return text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim()
    if (colon < 0 || name === 'lo') return []
    const numbers = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
      .map(Number)
    const [rxBytes, rxPackets, rxErrors, rxDropped, , , , , txBytes, txPackets, txErrors, txDropped] = numbers
    if (rxBytes === undefined || txDropped === undefined) return []
    return {
      name,
      rxBytes,
      rxPackets: rxPackets ?? 0,
      rxErrors: rxErrors ?? 0,
      rxDropped: rxDropped ?? 0,
      txBytes: txBytes ?? 0,
      txPackets: txPackets ?? 0,
      txErrors: txErrors ?? 0,
      txDropped,
    }
  })
}
