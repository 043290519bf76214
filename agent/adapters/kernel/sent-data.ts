/**
 * The unacknowledged data of a TCP connection, from the kernel's list of connections, because Node.js has neither TCP_INFO nor
 * TCP_USER_TIMEOUT. A dead peer is thus detected without sending a byte.
 */
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'

/**
 * Bytes that the kernel has and the peer has not acknowledged; undefined when the kernel does not list the connection. `root` is where the
 * machine's files are. Never rejects.
 */
export async function unacknowledgedBytes(
  root: string,
  { localPort, remotePort, localFamily }: Pick<Socket, 'localPort' | 'remotePort' | 'localFamily'>,
): Promise<number | undefined> {
  if (localPort === undefined || remotePort === undefined) return undefined
  const file = localFamily === 'IPv6' ? 'proc/net/tcp6' : 'proc/net/tcp'
  const text = await readFile(join(root, file), 'utf8').catch(() => '')
  return unacknowledgedIn(text, localPort, remotePort)
}

/** The same from the file's text: `sl local_address rem_address st tx_queue:rx_queue …`, in hexadecimal (proc_net_tcp.txt). */
export function unacknowledgedIn(text: string, localPort: number, remotePort: number): number | undefined {
  const port = (number: number) => `:${number.toString(16).toUpperCase().padStart(4, '0')}`
  const match = new RegExp(`${port(localPort)} [0-9A-F]+${port(remotePort)} [0-9A-F]{2} ([0-9A-F]{8}):`).exec(text)
  return match?.[1] === undefined ? undefined : Number.parseInt(match[1], 16)
}
