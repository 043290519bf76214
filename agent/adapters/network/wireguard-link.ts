/** WireGuard's key and peers, through wg(8): the same for the kernel's and for wireguard-go. */
import { wireguardKeyProblem } from '../../../api/network/wireguard.ts'
import { canonicalIPv6, isIPv4 } from '../../../api/text/ip-address.ts'
import { wireguardDevice } from '../../network/peers/tunnels.ts'
import type { WireguardChange, WireguardPeerState, WireguardState } from '../../network/wireguard/wireguard-plan.ts'
import type { WireguardLink } from '../../network/wireguard/wireguard-sync.ts'
import { wireguardPublicKey } from '../disk/wireguard-key.ts'
import { hostLookup } from './host-lookup.ts'
import { MissingTool, runTool, type ToolOutcome } from './run-tool.ts'

/** A line of arguments is bounded; each peer takes about 200 bytes of it. */
const peersAtOnce = 200

/** `keyFile`: of the private key. */
export function wireguardLink(keyFile: string, tool = 'wg'): WireguardLink {
  const addressOf = hostLookup()
  let publicKey: Promise<string> | undefined
  const wg: RunWg = async (args) => {
    try {
      return await runTool(tool, args)
    } catch (error) {
      if (!(error instanceof MissingTool)) throw error
      throw new Error(`${error.message}, and the fleet uses WireGuard between sites: apt-get install wireguard-tools`)
    }
  }
  const set = async (...args: readonly string[]) => {
    const { code, stderr } = await wg(['set', wireguardDevice, ...args])
    if (code === 0) return
    // The key is in a file: no argument is secret.
    const reason = /address already in use/i.test(stderr) ? 'another program has its UDP port' : stderr.trim()
    throw new Error(`Cannot set up WireGuard: ${reason.slice(0, 200)}`)
  }
  return {
    publicKey() {
      publicKey ??= wireguardPublicKey(keyFile).catch((error: unknown) => {
        publicKey = undefined
        throw error
      })
      return publicKey
    },
    read: () => readWireguard(wg),
    async apply(changes) {
      for (const change of changes)
        if (change.change === 'setDevice') await set('listen-port', `${change.port}`, 'private-key', keyFile)
      const peers = changes.flatMap(peerArguments)
      for (let at = 0; at < peers.length; at += peersAtOnce) await set(...peers.slice(at, at + peersAtOnce).flat())
    },
    async resolve(host) {
      if (isIPv4(host)) return host
      // As wg prints it: what is compared with that would be set again and again in another form.
      const ofIPv6 = canonicalIPv6(host)
      return ofIPv6 === undefined ? await addressOf(host) : `[${ofIPv6}]`
    },
  }
}

/** Without a key and without changes: undefined where there is no interface. */
export async function readWireguard(run: RunWg = (args) => runTool('wg', args)): Promise<WireguardState | undefined> {
  const { code, stdout, stderr } = await run(['show', wireguardDevice, 'dump'])
  if (code === 0) return parseDump(stdout)
  // The second where the kernel has no WireGuard, either.
  if (/no such device|protocol not supported/i.test(stderr)) return undefined
  throw new Error(`Cannot read the state of WireGuard: ${stderr.trim().slice(0, 200)}`)
}

type RunWg = (args: readonly string[]) => Promise<ToolOutcome>

function peerArguments(change: WireguardChange): readonly (readonly string[])[] {
  if (change.change === 'setDevice') return []
  if (change.change === 'removePeer') return [['peer', change.publicKey, 'remove']]
  const { publicKey, endpoint, ranges, keepaliveSeconds } = change
  return [
    [
      ...['peer', publicKey],
      ...(endpoint === undefined ? [] : ['endpoint', endpoint]),
      ...(ranges === undefined ? [] : ['allowed-ips', ranges.join(',')]),
      ...(keepaliveSeconds === undefined ? [] : ['persistent-keepalive', `${keepaliveSeconds}`]),
    ],
  ]
}

/** Lines of `wg show DEVICE dump`, wg(8). The private key is in the first one, and is dropped here. */
function parseDump(text: string): WireguardState {
  const [device = '', ...rows] = text.trimEnd().split('\n')
  const [, publicKey = '', port] = device.split('\t')
  return {
    publicKey: wireguardKeyProblem(publicKey) === undefined ? publicKey : undefined,
    port: Number(port),
    peers: new Map(rows.map(peerRow)),
  }
}

function peerRow(row: string): [string, WireguardPeerState] {
  const [publicKey = '', , endpoint = '', ranges = '', handshake, , , keepalive] = row.split('\t')
  return [
    publicKey,
    {
      endpoint: endpoint === '(none)' ? undefined : endpoint,
      ranges: ranges === '(none)' ? [] : ranges.split(',').sort(),
      handshake: Number(handshake),
      keepaliveSeconds: keepalive === 'off' ? 0 : Number(keepalive),
    },
  ]
}
