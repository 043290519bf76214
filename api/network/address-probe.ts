/** Where nodes prove to each other that an address is theirs (docs/network-internals.md, "Addresses of nodes are proven"). */

/** UDP, beside VXLAN's. */
export const probePort = 8473

/** On a Node, written by its agent: the UDP port at which it proves its address. Agents of earlier versions do not write it. */
export const probePortAnnotation = 'bramble.dev/probe-port'

/** Port in the annotation; undefined: missing or invalid. */
export function parseProbePort(text: string | undefined): number | undefined {
  if (text === undefined || !/^[1-9]\d{0,4}$/.test(text)) return undefined
  const port = Number(text)
  return isProbePort(port) ? port : undefined
}

export function isProbePort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}
