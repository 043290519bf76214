/** The identity of a machine's hardware, which distinguishes two machines with one node name. */
import { type Described, object, optional, text } from '../schema.ts'

export const HardwareIdentitySchema = object({
  /** A Pi's serial number, a PC's board or chassis serial: soldered in, not on the card. */
  boardSerial: optional(text),
  /** DMI product UUID. */
  systemUUID: optional(text),
  /** `/etc/machine-id`: on the card, so cloned with it. */
  machineID: optional(text),
  /** For people: `Raspberry Pi 4 Model B Rev 1.4`. */
  model: optional(text),
})
export type HardwareIdentity = Described<typeof HardwareIdentitySchema>

/** On a Node: the hashes of the authorities it trusts; a rollover of the authority waits for them. */
export const trustedAuthoritiesAnnotation = 'bramble.dev/trusted-authorities'
/** On Nodes and CertificateSigningRequests: the identity as JSON. */
export const hardwareIdentityAnnotation = 'bramble.dev/hardware-identity'

/**
 * Whether both are one machine. The first mark that both have decides: the board's serial number, for cloned cards share their
 * machine-id; then the UUID; then the machine-id. With no mark in common nothing proves it, so it is not.
 */
export function sameMachine(a: HardwareIdentity, b: HardwareIdentity): boolean {
  for (const mark of ['boardSerial', 'systemUUID', 'machineID'] as const) {
    const [ours, theirs] = [a[mark], b[mark]]
    if (ours !== undefined && theirs !== undefined) return ours.toLowerCase() === theirs.toLowerCase()
  }
  return false
}

/** Two machines with one machine-id: the card of one was copied for the other. */
export function isCopiedCard(a: HardwareIdentity, b: HardwareIdentity): boolean {
  return a.machineID !== undefined && a.machineID === b.machineID && !sameMachine(a, b)
}

/** `Raspberry Pi 4 Model B Rev 1.4, board serial 10000000deadbeef, machine-id 0123…`. */
export function describeHardware(identity: HardwareIdentity): string {
  const marks = [
    shortened(identity.model),
    identity.boardSerial && `board serial ${shortened(identity.boardSerial)}`,
    identity.systemUUID && `system UUID ${shortened(identity.systemUUID)}`,
    identity.machineID && `machine-id ${shortened(identity.machineID)}`,
  ].filter((mark) => mark !== undefined && mark !== '')
  return marks.length === 0 ? 'a machine that shows no identity' : marks.join(', ')
}

/** A machine's own words may be of any length, and go into logs and Events. */
function shortened(mark: string | undefined): string | undefined {
  return mark !== undefined && mark.length > longestMark ? `${mark.slice(0, longestMark)}...` : mark
}

/** A UUID has 36 characters, the longest model name of a Raspberry Pi about 50. */
const longestMark = 64
