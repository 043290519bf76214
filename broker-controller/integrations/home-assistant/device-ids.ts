/** Names of a fleet → names that are safe in topics and in Home Assistant. */
import { createHash } from 'node:crypto'

const longestPlain = 48
const longestStart = 24
const hashDigits = 24

/** The fleet itself, among the devices. No node has this ID: theirs begin with a letter or a digit. */
export const fleetDevice = '_fleet'

/**
 * The ID of a node's device: its name where that has only letters, digits and -, else a readable start and a hash of the name. Names of
 * nodes have no `_`, so the two forms never meet. Only `[a-z0-9_-]`: what a discovery topic of Home Assistant may have.
 */
export function deviceID(nodeName: string): string {
  if (nodeName.length <= longestPlain && /^[a-z0-9][a-z0-9-]*$/.test(nodeName)) return nodeName
  const start = nodeName
    .toLowerCase()
    .replace(/[^a-z0-9-]/g, '-')
    .replace(/^-+/, '')
    .slice(0, longestStart)
  const hash = createHash('sha256').update(nodeName).digest('hex').slice(0, hashDigits)
  return `${start || 'node'}_${hash}`
}

/** Whether a part of a topic may be the ID of a device. */
export function isDeviceID(text: string): boolean {
  return text === fleetDevice || (text.length <= longestPlain + 1 && /^[a-z0-9][a-z0-9_-]*$/.test(text))
}

/** A text of a node, for people: one line without control characters and without what reorders it, at most `longest` characters. */
export function shortLine(text: string, longest: number): string {
  const clean = text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const points = [...clean]
  return points.length > longest ? `${points.slice(0, longest - 1).join('')}…` : clean
}
