/** Asks the kernel whether it has our rules, by a datagram that they drop. */
import { createSocket } from 'node:dgram'
import { codeOf } from '../../../../daemon/errors.ts'
import { canaryAddresses, canaryPort } from '../../../network/canary-rule.ts'
import type { RuleFamily } from '../../../network/rule-family.ts'

const empty = Buffer.alloc(0)

/**
 * Whether the kernel refuses to send the datagram that the canary rule of this family drops. False proves nothing: the rules of an earlier
 * agent have no canary, and a machine may have no IPv6. A firewall of others that drops all of the loopback interface would be taken for
 * it. Never rejects.
 */
export function answersCanary({ family }: Pick<RuleFamily, 'family'>): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(family === 'IPv4' ? 'udp4' : 'udp6')
    const end = (isDropped: boolean) => {
      socket.close()
      resolve(isDropped)
    }
    // Where the socket cannot be bound it has no callback, but an event.
    socket.once('error', () => end(false))
    socket.send(empty, canaryPort, canaryAddresses[family], (error) => end(codeOf(error) === 'EPERM'))
  })
}
