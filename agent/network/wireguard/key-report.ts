/** Loop: the public key of this node → its Node, whenever the fleet's message has another one for it, or none. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { wireguardKeyAnnotation } from '../../../api/network/wireguard.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { type ApiClient, statusMessage } from '../../../daemon/api-client.ts'
import { longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'

export type KeyReportNeeds = {
  readonly reads: { readonly networkMessage: Reader<NetworkMessage | undefined> }
  readonly publicKey: () => Promise<string>
  readonly api: Pick<ApiClient, 'patch'>
  readonly clock: Clock
  readonly log: Log
}

/** The controller publishes a change within 2 s. It leaves out a key that another node has: such a node asks again rarely. */
const retry = { firstMs: 10_000, maxMs: 10 * 60_000 }

export function keyReport({ reads, publicKey, api, clock, log }: KeyReportNeeds, nodeName: string): Loop {
  const wake = alarm(clock)
  let attempts = 0
  /** Messages about other nodes arrive meanwhile. */
  let nextMs = Number.NEGATIVE_INFINITY
  let failure: string | undefined

  const isMissing = async (): Promise<boolean> => {
    const message = reads.networkMessage.get()
    const own = message?.nodes.find(({ name }) => name === nodeName)
    return message?.wireguard !== undefined && own !== undefined && own.wireguardKey !== (await publicKey())
  }

  const report = async (signal: AbortSignal) => {
    const key = await publicKey()
    const patch = { metadata: { annotations: { [wireguardKeyAnnotation]: key } } }
    const answer = await api.patch(`/api/v1/nodes/${nodeName}`, patch, 'application/merge-patch+json', signal)
    if (answer.status !== 200) throw new Error(`${answer.status} ${statusMessage(answer.body) ?? ''}`.trim())
    log.info('WireGuard key reported', { publicKey: key })
  }

  /** Gives the time until the next pass. */
  const pass = async (signal: AbortSignal): Promise<number> => {
    if (clock.monotonicMs() >= nextMs) {
      try {
        if (!(await isMissing())) {
          attempts = 0
          return longestTimerMs
        }
        nextMs = clock.monotonicMs() + longestBackoffMs(attempts++, retry)
        await report(signal)
        failure = undefined
      } catch (error) {
        const because = storyOf(error)
        if (!signal.aborted && because !== failure) log.warn('Cannot report the WireGuard key of this node', { error })
        failure = because
        nextMs = Math.max(nextMs, clock.monotonicMs() + retry.firstMs)
      }
    }
    return Math.max(0, nextMs - clock.monotonicMs())
  }

  return {
    name: 'wireguard-key',
    async run(signal) {
      const stop = reads.networkMessage.onChange(wake.ring)
      try {
        while (!signal.aborted) await wake.sleep(await pass(signal), signal)
      } finally {
        stop()
      }
    },
  }
}
