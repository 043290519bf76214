/**
 * What an agent that runs has of the fleet's network: lines of JSON that it writes for `bramble-agent network` on its machine. The
 * checkpoint may be older by a minute.
 */
import { decode } from '../../api/decode.ts'
import { NetworkMessageSchema } from '../../api/network/pod-network.ts'
import type { ServiceState } from '../../api/network/service-endpoints.ts'
import { type Problem, problemText } from '../../api/problem.ts'
import { list, mapOf, object, oneOf, optional, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { yieldTurn } from '../../daemon/limits/turn-limit.ts'
import { NetworkObstacleSchema } from './gate/network-obstacle.ts'
import { decodeServices } from './messages/received-services.ts'
import type { NetworkFindings } from './network-report.ts'
import type { PathFindings } from './path-ends.ts'
import type { Unproven } from './probes/peer-addresses.ts'

/** `message` undefined: the fleet has no network of its own, or the node has never received it. */
export type KnownNetwork = Pick<NetworkFindings, 'message' | 'services' | 'proofs' | 'obstacle'> &
  Pick<PathFindings, 'silentNodes'>

const ReasonSchema = object({ why: oneOf('no answer', 'no certificate', 'other node'), node: optional(text) })
/** The first line; each further one is a Service. */
const HeadSchema = object({
  network: optional(NetworkMessageSchema),
  obstacle: optional(NetworkObstacleSchema),
  proven: mapOf(text),
  failures: mapOf(ReasonSchema),
  silent: optional(object({ ipv4: list(text), ipv6: list(text) })),
})

/** A fleet has thousands of Services: a piece is written at a time. */
const pieceBytes = 64 * 1024

/** Takes several turns of the event loop where there are many Services. */
export async function* liveNetworkLines(
  { message, obstacle, proofs, silentNodes: silent }: Omit<KnownNetwork, 'services'>,
  services: Iterable<ServiceState>,
): AsyncGenerator<Uint8Array> {
  const { used, failures } = proofs
  const proven = { proven: Object.fromEntries(used), failures: Object.fromEntries(failures) }
  const head = { network: message, obstacle, ...proven, silent }
  let piece = `${JSON.stringify(head)}\n`
  for (const service of services) {
    if (piece.length >= pieceBytes) {
      yield Buffer.from(piece)
      piece = ''
    }
    piece += `${JSON.stringify(service)}\n`
    await yieldTurn()
  }
  yield Buffer.from(piece)
}

/** Throws where it is not what `liveNetworkLines` writes. A Service that this version does not understand is left out. */
export function readLiveNetwork(lines: string): KnownNetwork {
  const [first = '', ...others] = lines.split('\n').filter((line) => line !== '')
  const head = decode(HeadSchema, parseJson(first))
  if (!head.ok) throw notValid(head.problems)
  const { network: message, obstacle, proven, failures, silent } = head.value
  const decoded = decodeServices({ epoch: '', version: 0, services: others.map((line) => parseJson(line)) })
  if (!decoded.ok) throw notValid(decoded.problems)
  return {
    message,
    ...(obstacle && { obstacle }),
    services: decoded.value.message.services,
    proofs: {
      used: new Map(Object.entries(proven)),
      failures: new Map(Object.entries(failures).map(([name, { why, node = '' }]) => [name, reasonOf(why, node)])),
    },
    ...(silent && { silentNodes: silent }),
  }
}

function notValid(problems: readonly Problem[]): Error {
  return new Error(`The answer of the agent is not valid: ${problems.slice(0, 3).map(problemText).join(', ')}`)
}

function reasonOf(why: Unproven['why'], node: string): Unproven {
  return why === 'other node' ? { why, node } : { why }
}
