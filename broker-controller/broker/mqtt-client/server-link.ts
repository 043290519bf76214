/** The connection to an external MQTT server: opened again with back-off as long as it is wanted. */
import { withOwnSignal } from '../../../daemon/aborted.ts'
import { backoffMs, connectionFailures } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { MqttClient } from './mqtt-client.ts'

export type ServerLinkNeeds = {
  readonly open: (signal: AbortSignal) => Promise<MqttClient>
  /** Called with a new connection, before it is `client`. */
  readonly subscribe: (client: MqttClient) => Promise<void>
  /** The connection is used from now on. */
  readonly connected: (client: MqttClient) => Promise<void>
  /** There is no connection, or none any more. */
  readonly failed: (error: unknown) => void
  readonly isWanted: () => boolean
  readonly clock: Clock
  readonly random: () => number
}

export interface ServerLink extends Pick<Loop, 'run'> {
  /** undefined: there is none. */
  readonly client: MqttClient | undefined
  /** Ends the present connection; another one is opened. */
  interrupt(because: string): void
  /** While paused, there is none. */
  pause(isPaused: boolean): void
}

const retry = { firstMs: 500, maxMs: 10_000 }
/** A connection that lasted so long counts as a success. */
const stableMs = 10_000

export function serverLink(needs: ServerLinkNeeds): ServerLink {
  const { clock, random } = needs
  let client: MqttClient | undefined
  let isPaused = false
  let wake = new AbortController()

  const interrupt = (because: string) => {
    client?.abandon(new Error(because))
    wake.abort()
  }

  /** Resolves with the reason for its end. */
  const connectOnce = async (signal: AbortSignal): Promise<Error> => {
    const opened = await needs.open(signal)
    const stop = () => opened.abandon(new Error('The controller stops'))
    signal.addEventListener('abort', stop, { once: true })
    try {
      await needs.subscribe(opened)
      if (isPaused) throw new Error('The controller does not lead')
      client = opened
      await needs.connected(opened)
      return await opened.ended
    } finally {
      opened.abandon(new Error('The connection was not used'))
      signal.removeEventListener('abort', stop)
      client = undefined
    }
  }

  const waitAgain = async (ms: number, signal: AbortSignal) => {
    wake = new AbortController()
    const { signal: woken } = wake
    await withOwnSignal(signal, (own) => {
      woken.addEventListener('abort', () => own.abort(), { once: true })
      return clock.sleep(ms, own.signal)
    })
  }

  return {
    get client() {
      return client
    },
    interrupt,
    pause(next) {
      isPaused = next
      interrupt(next ? 'The controller does not lead' : 'The controller leads again')
    },
    async run(signal) {
      const failures = connectionFailures(stableMs)
      while (!signal.aborted) {
        if (isPaused || !needs.isWanted()) {
          await waitAgain(retry.maxMs, signal)
          continue
        }
        const beganMs = clock.monotonicMs()
        const { wasOpen, because } = await connectOnce(signal).then(
          (because) => ({ wasOpen: true, because }),
          (because: unknown) => ({ wasOpen: false, because }),
        )
        if (signal.aborted || isPaused || !needs.isWanted()) continue
        needs.failed(because)
        if (wasOpen) failures.ended(clock.monotonicMs() - beganMs)
        else failures.refused()
        await waitAgain(backoffMs(failures.count, retry, random), signal)
      }
    },
  }
}
