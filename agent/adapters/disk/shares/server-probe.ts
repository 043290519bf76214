/** Asks a server whether it is there before anything is mounted from it: a mount would wait long. All its volumes share the question. */
import { connect, isIP } from 'node:net'
import { withinOr } from '../../../../daemon/deadline.ts'
import { codeOf } from '../../../../daemon/errors.ts'
import { VolumeError } from '../../../pods/volumes/volume-store.ts'
import { hostLookup } from '../../network/host-lookup.ts'
import { NoAnswer } from '../remote/bounded-child.ts'
import { answerTurns } from '../remote/mount-turns.ts'

export type ServerPort = { readonly server: string; readonly port: number }

/** Throws VolumeError while the server does not take connections. */
export type ServerProbe = (at: ServerPort) => Promise<void>

const patienceMs = 2_000
const usualPauseMs = 5_000

/** `reach`: rejects with NoAnswer where the server does not answer. */
export function serverProbe(reach: (at: ServerPort) => Promise<void> = reacher(), pauseMs = usualPauseMs): ServerProbe {
  const inTurn = answerTurns<ServerPort>({
    keyOf: ({ server, port }) => `${server} ${port}`,
    probe: reach,
    refusal: (_, cause) => new VolumeError(cause.message, { cause }),
    pauseMs,
  })
  return (at) => inTurn(at, () => reach(at))
}

function reacher() {
  const lookUp = hostLookup()
  return async (at: ServerPort): Promise<void> => {
    const { server, port } = at
    const silent = new NoAnswer(`${server} does not answer on port ${port}`)
    const inTime = await withinOr(patienceMs, silent, reachAddress(at, await addressOf(server)))
    if (inTime !== undefined) throw silent
  }

  async function addressOf(server: string): Promise<string> {
    if (isIP(server) > 0) return server
    const found = await withinOr(patienceMs, undefined, lookUp(server))
    if (found === undefined) throw new NoAnswer(`the name ${server} has no address`)
    return found.replace(/^\[(.*)\]$/, '$1')
  }
}

/** Closed at once: only the connection counts. */
async function reachAddress({ server, port }: ServerPort, address: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host: address, port, timeout: patienceMs })
    const end = (done: () => void) => {
      socket.destroy()
      done()
    }
    socket.once('connect', () => end(resolve))
    socket.once('timeout', () => end(() => reject(new NoAnswer(`${server} does not answer on port ${port}`))))
    socket.once('error', (cause) =>
      end(() => {
        if (codeOf(cause) === 'ECONNREFUSED') {
          reject(new VolumeError(`${server} refuses connections on port ${port}`, { cause }))
        } else reject(new NoAnswer(`${server} does not answer on port ${port}`, { cause }))
      }),
    )
  })
}
