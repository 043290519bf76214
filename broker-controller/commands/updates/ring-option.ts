/** `--ring NAME=NODES,SOAK`. */
import { parseDuration } from '../../../daemon/duration.ts'
import type { Ring } from '../../controllers/rollouts/rollout-rules.ts'

/** Undefined: it has another form. What its values may be is checked with the other rules. */
export function readRing(written: string): Ring | undefined {
  const [, name = '', nodes = '', soak = ''] = /^([^=,]+)=([^,]+),([^,]+)$/.exec(written) ?? []
  const soakMs = parseDuration(soak)
  if (soakMs === undefined) return undefined
  const soakSeconds = Math.round(soakMs / 1000)
  const [, key, value] = /^([^=]+)=([^=]*)$/.exec(nodes) ?? []
  if (key !== undefined && value !== undefined) return { name, soakSeconds, labels: { [key]: value } }
  const [, number = '', percent] = /^(\d{1,6})(%?)$/.exec(nodes) ?? []
  if (number === '') return undefined
  return percent === '%' ? { name, soakSeconds, percent: Number(number) } : { name, soakSeconds, count: Number(number) }
}
