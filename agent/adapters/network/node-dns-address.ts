/** The address of the name server of this node: on the loopback interface, and listened on. */
import { networkInterfaces } from 'node:os'
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import type { NameHost } from '../../network/names/name-server.ts'
import { openNameSockets } from './name-sockets.ts'
import { runToolOrThrow } from './run-tool.ts'

/**
 * `ip`: the program. The address has the scope of the machine: the kernel never chooses it as the source of other packets, and still
 * takes packets to it from the bridge of the pods.
 */
export function nodeDnsHost({ ip = 'ip', port = 53 }: { readonly ip?: string; readonly port?: number } = {}): NameHost {
  const local = `${nodeDnsAddress}/32`
  const hasAddress = () =>
    Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === nodeDnsAddress))
  return {
    hasAddress,
    async open(answerer) {
      if (!hasAddress()) {
        const line = ['address', 'replace', local, 'dev', 'lo', 'scope', 'host']
        await runToolOrThrow(`Cannot give this machine the address ${nodeDnsAddress}`, ip, line)
      }
      return openNameSockets({ address: nodeDnsAddress, port }, answerer)
    },
    async release() {
      if (!hasAddress()) return
      const line = ['address', 'delete', local, 'dev', 'lo']
      await runToolOrThrow(`Cannot take the address ${nodeDnsAddress} from this machine`, ip, line)
    },
  }
}
