/** The messages that wait for one channel: sent in order, each tried again with back-off, none kept for ever. */
import { alarm } from '../../../daemon/alarm.ts'
import { longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Notification } from './messages.ts'
import type { Channel } from './notify-settings.ts'
import { SendError } from './send-message.ts'

export type ChannelQueueNeeds = {
  readonly send: (channel: Channel, message: Notification, signal: AbortSignal) => Promise<void>
  readonly clock: Clock
  readonly log: Log
}

export interface ChannelQueue {
  /** The oldest one makes room if too many wait. */
  add(message: Notification): void
  run(signal: AbortSignal): Promise<void>
}

const mostWaiting = 20
const retry = { firstMs: 5_000, maxMs: 5 * 60_000 }
/** An older message is dropped. */
const longestMs = 6 * 3600_000

type Waiting = { readonly message: Notification; readonly sinceMs: number }

export function channelQueue(channel: Channel, { send, clock, log }: ChannelQueueNeeds): ChannelQueue {
  const wake = alarm(clock)
  let waiting: readonly Waiting[] = []
  const drop = (why: string) => {
    waiting = waiting.slice(1)
    log.warn('Notification dropped', { channel: channel.name, why })
  }
  const trySend = async (message: Notification, signal: AbortSignal): Promise<SendError | undefined> => {
    try {
      await send(channel, message, signal)
      return undefined
    } catch (error) {
      return error instanceof SendError ? error : new SendError('it could not be sent', false, { cause: error })
    }
  }
  /** Both give the number of failures since a message was sent or dropped. */
  const sent = (one: Waiting): number => {
    waiting = waiting.filter((other) => other !== one)
    return 0
  }
  const failed = (one: Waiting, { message, isFinal }: SendError, failures: number): number => {
    if (failures === 0) log.warn('Notification not sent', { channel: channel.name, why: message })
    const isOld = clock.monotonicMs() - one.sinceMs >= longestMs
    if ((!isFinal && !isOld) || waiting[0] !== one) return failures + 1
    drop(isFinal ? 'the server refuses it' : 'it is too old')
    return 0
  }
  return {
    add(message) {
      if (waiting.length >= mostWaiting) drop(`more than ${mostWaiting} wait`)
      waiting = [...waiting, { message, sinceMs: clock.monotonicMs() }]
      wake.ring()
    },
    async run(signal) {
      let failures = 0
      while (!signal.aborted) {
        const [first] = waiting
        if (first === undefined) {
          await wake.sleep(longestMs, signal)
          continue
        }
        const failure = await trySend(first.message, signal)
        if (signal.aborted) return
        failures = failure === undefined ? sent(first) : failed(first, failure, failures)
        if (failures > 0) await clock.sleep(longestBackoffMs(failures - 1, retry), signal)
      }
    },
  }
}
