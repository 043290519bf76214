/**
 * The latest state of each topic, and a bounded queue of Events. One message of each topic is under way at a time, changes in
 * the meantime become one, and all states are published again on every connection: no queue grows without a connection.
 */
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'

/** A connection to the broker. */
export interface PublishLink {
  /** Resolves when the broker has acknowledged it. */
  publish(topic: string, body: string, how: { readonly qos: 1; readonly retain: boolean }): Promise<void>
  /** Ends a connection that does not acknowledge a message. */
  abandon(because: Error): void
}

export interface PublishQueue {
  /** Keeps `body` as the latest state of this topic; '' deletes it. Published even if it has not changed. */
  publishState(topic: string, body: string): void
  /** Publishes `body` once, in order. Beyond `mostQueued` the oldest are dropped. */
  enqueue(topic: string, body: string): void
  /** Everything is published on this link from now on. */
  open(link: PublishLink): void
  closed(): void
  republish(): void
  /** The latest state of this topic was published on this link and acknowledged. */
  isAcknowledged(topic: string): boolean
  /** Over the last published state of each topic, without deleted ones: see `api/digest.ts`. */
  digest(): string
  /** Nothing is under way, or there is no link. */
  isIdle(): boolean
  /** How many of the queued messages were dropped since the last call. */
  dropped(): number
}

export type PublishQueueSettings = {
  readonly mostQueued: number
  /** The broker has acknowledged a state. */
  readonly acknowledged?: (topic: string, body: string) => void
}

/** `print` is the part of it in the digest. */
type State = { readonly body: string; readonly print: string | undefined }
type Queued = { readonly topic: string; readonly body: string }

export function publishQueue({ mostQueued, acknowledged }: PublishQueueSettings): PublishQueue {
  const states = new Map<string, State>()
  const underWay = new Set<string>()
  const queue: Queued[] = []
  let sending: Queued | undefined
  let digest = emptyDigest
  let link: PublishLink | undefined
  let dropped = 0

  const publishState = (topic: string, body: string) => {
    states.set(topic, { body, print: states.get(topic)?.print })
    if (!underWay.has(topic)) publish(topic)
  }

  const publish = (topic: string) => {
    const [on, state] = [link, states.get(topic)]
    if (on === undefined || state === undefined) return
    const print = state.body === '' ? undefined : digestText(topic, state.body)
    for (const changed of [state.print, print]) if (changed !== undefined) digest = foldDigest(digest, changed)
    const sent: State = { body: state.body, print }
    states.set(topic, sent)
    underWay.add(topic)
    on.publish(topic, sent.body, { qos: 1, retain: true }).then(
      () => {
        if (link === on) settle(topic, sent)
      },
      (error) => on.abandon(error),
    )
  }

  const settle = (topic: string, sent: State) => {
    underWay.delete(topic)
    acknowledged?.(topic, sent.body)
    if (states.get(topic) !== sent)
      publish(topic) // it changed while it was under way
    else if (sent.body === '') states.delete(topic)
  }

  const sendNext = () => {
    const [on, next] = [link, queue[0]]
    if (on === undefined || next === undefined || sending !== undefined) return
    sending = next
    on.publish(next.topic, next.body, { qos: 1, retain: false }).then(
      () => {
        if (link !== on) return
        sending = undefined
        if (queue[0] === next) queue.shift()
        sendNext()
      },
      (error) => on.abandon(error),
    )
  }

  return {
    publishState,
    enqueue(topic, body) {
      if (queue.length >= mostQueued) {
        queue.shift()
        dropped++
      }
      queue.push({ topic, body })
      sendNext()
    },
    open(on) {
      link = on
      digest = emptyDigest
      for (const [topic, { body }] of states) {
        states.set(topic, { body, print: undefined })
        publish(topic)
      }
      sendNext()
    },
    closed() {
      link = undefined
      underWay.clear()
      sending = undefined
    },
    republish() {
      for (const [topic, { body }] of states) publishState(topic, body)
    },
    isAcknowledged: (topic) => link !== undefined && states.get(topic)?.print !== undefined && !underWay.has(topic),
    isIdle: () => link === undefined || (underWay.size === 0 && sending === undefined),
    digest: () => digest,
    dropped() {
      const count = dropped
      dropped = 0
      return count
    },
  }
}
