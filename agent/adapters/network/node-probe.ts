/** Does the machine with an address answer? One TCP connection to a port where nothing listens: its refusal is the answer. */
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { startDeadline } from '../../../daemon/deadline.ts'
import type { NodeProbe } from '../../network/services/silence-manager.ts'

export type NodeProbeSettings = {
  /** Root of the machine's files. */
  readonly root: string
  readonly port?: number
  readonly deadlineMs?: number
}

/** The kubelet's: firewalls of clusters let it through, and no service of a house listens there. */
const kubeletPort = 10_250
/** The kernel gives up a neighbour after three requests, one a second (arp(7), mcast_solicit). */
const probeMs = 5_000

export function nodeProbe({ root, port = kubeletPort, deadlineMs = probeMs }: NodeProbeSettings): NodeProbe {
  return async (address) => {
    const outcome = await outcomeOf(address, port, deadlineMs)
    if (outcome === 'connected' || outcome === 'ECONNREFUSED' || outcome === 'ECONNRESET') return 'answers'
    if (outcome !== 'ETIMEDOUT' && outcome !== 'EHOSTUNREACH') return undefined
    // A firewall refuses with the same error that the kernel has for a neighbour that is not there. The kernel has no file of those of IPv6.
    const neighbours = await readFile(join(root, 'proc/net/arp'), 'utf8').catch(() => '')
    return isMissing(neighbours, address) ? 'unreachable' : 'silent'
  }
}

/** `connected`, or the code of the error. */
function outcomeOf(host: string, port: number, deadlineMs: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const end = (outcome: string) => {
      stop()
      socket.destroy()
      resolve(outcome)
    }
    const stop = startDeadline(deadlineMs, () => end('ETIMEDOUT'))
    socket.once('connect', () => end('connected'))
    socket.on('error', (error) => end('code' in error ? String(error.code) : ''))
  })
}

/** `/proc/net/arp`: address, type, flags, hardware address, …; flags without ATF_COM (2): no answer (if_arp.h). */
function isMissing(neighbours: string, address: string): boolean {
  return neighbours.split('\n').some((line) => {
    const [ip, , flags] = line.trim().split(/\s+/)
    return ip === address && (Number(flags) & 2) === 0
  })
}
