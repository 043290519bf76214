/**
 * The operating system of a node: what its agent reports of pending updates and of the last upgrade, and the upgrade that the controller
 * wants now. The node receives the latter in its `desired` message; a machine installs only what its own package sources have.
 */
import { decode } from '../decode.ts'
import type { Node } from '../node.ts'
import { bool, type Described, integer, list, object, oneOf, optional, text } from '../schema.ts'
import { parseJson } from '../text/json.ts'

/** Set by the agent: an OsReport as JSON. */
export const osUpdatesAnnotation = 'bramble.dev/os-updates'

/** True: a reboot is pending, of a newer kernel or of packages that ask for it. */
export const rebootRequiredCondition = 'RebootRequired'

/** `id` identifies one maintenance of the node, and never comes again. */
export const OsUpgradeSchema = object({ id: text })
export type OsUpgrade = Described<typeof OsUpgradeSchema>

const OsReportSchema = object({
  /** The agent carries out upgrades: its configuration has `osUpgrades`. */
  upgrades: bool,
  /** When the package lists of the machine were downloaded, RFC 3339. Left out with the numbers: they were not counted yet. */
  listsFrom: optional(text),
  /** Pending updates from a security archive, and all others. */
  security: optional(integer),
  others: optional(integer),
  /** Packages with pending security updates: the first of them. */
  packages: list(text),
  rebootRequired: bool,
  /** Packages that ask for the reboot, or the kernel: the first of them. */
  rebootBecause: list(text),
  /** The upgrade that the controller wants, or wanted last. */
  upgrade: optional(
    object({ id: text, outcome: oneOf('waiting', 'running', 'done', 'failed'), reason: optional(text) }),
  ),
})
export type OsReport = Described<typeof OsReportSchema>

/** Undefined: there is none, or it cannot be read. */
export function osReportOf({ metadata }: Pick<Node, 'metadata'>): OsReport | undefined {
  const decoded = decode(OsReportSchema, parseJson(metadata.annotations?.[osUpdatesAnnotation] ?? ''))
  return decoded.ok ? decoded.value : undefined
}

/** Whether a text can be the `id` of an upgrade: it is a word in files that a shell reads. */
export function isUpgradeID(id: string): boolean {
  return /^[0-9A-Za-z][0-9A-Za-z:.-]{0,63}$/.test(id)
}
