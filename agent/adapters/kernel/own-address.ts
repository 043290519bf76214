/** Whether this machine has an address, asked of the kernel. */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { codeOf } from '../../../daemon/errors.ts'

/**
 * A socket is bound to it and closed: that takes 0.1 ms however many interfaces pods have, which a list of them all would not. An
 * address that cannot be bound for another reason counts as the machine's. Never rejects.
 */
export function hasOwnAddress(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
    const end = (isOwn: boolean) => {
      socket.close()
      resolve(isOwn)
    }
    socket.once('error', (error) => end(codeOf(error) !== 'EADDRNOTAVAIL'))
    socket.bind({ address, port: 0, exclusive: true }, () => end(true))
  })
}
