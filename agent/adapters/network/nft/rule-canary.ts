/** Asks the kernel whether it has our rules, by a connection that they refuse. */
import { connect } from 'node:net'
import { codeOf } from '../../../../daemon/errors.ts'
import { canaries } from '../../../network/canary-rule.ts'
import type { RuleFamily } from '../../../network/rule-family.ts'

/**
 * IPv4 answers at once. Of IPv6, Linux uses the answer to the second packet, which it sends a second after the first (RFC 6298). A firewall
 * of others may answer nothing.
 */
const deadlineMs = 3_000

/**
 * Whether the table of this family refuses the connection that its canary rule names. False proves nothing: another firewall may come
 * first, and the rules of an earlier agent have no canary. Never rejects.
 */
export function answersCanary({ family }: Pick<RuleFamily, 'family'>): Promise<boolean> {
  const { address, port, code } = canaries[family]
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: deadlineMs })
    const end = (isRefused: boolean) => {
      socket.destroy()
      resolve(isRefused)
    }
    socket.once('error', (error) => end(codeOf(error) === code))
    socket.once('timeout', () => end(false))
    socket.once('connect', () => end(false))
  })
}
