/**
 * What a node has to say, the newest of each thing: one message of each topic is under way at a time, changes in the
 * meantime become one, and all of it is said again on every connection. So no queue can grow while nobody listens.
 */
import { digestText, emptyDigest, foldDigest } from '../../../api/digest.ts'
import type { MqttLink } from './mqtt-link.ts'

export type OutboxLink = Pick<MqttLink, 'publish' | 'abandon'>

export interface NewestOutbox {
  /** Keeps `body` as the newest on this topic; '' withdraws it. Published even when it is the same as before. */
  say(topic: string, body: string): void
  /** Passes this on once, after those before it. Of too many the oldest are dropped. */
  tell(topic: string, body: string): void
  /** Everything is said on this link from now on. */
  open(link: OutboxLink): void
  closed(): void
  sayEverything(): void
  /** The newest body on this topic was published on this link and acknowledged. */
  isTaken(topic: string): boolean
  /** Over what was last published of each topic, withdrawn ones left out: see `api/digest.ts`. */
  digest(): string
  /** Nothing is under way; also when there is no link. */
  isIdle(): boolean
  /** How many of those told had to be dropped since this was last asked. */
  dropped(): number
}

export type OutboxSettings = {
  readonly mostTold: number
  /** The broker has taken what was said. */
  readonly taken?: (topic: string, body: string) => void
}

/** `print` is what the digest holds of it. */
type Said = { readonly body: string; readonly print: string | undefined }
type Told = { readonly topic: string; readonly body: string }

export function newestOutbox({ mostTold, taken }: OutboxSettings): NewestOutbox {
  const said = new Map<string, Said>()
  const underWay = new Set<string>()
  const told: Told[] = []
  let telling: Told | undefined
  let digest = emptyDigest
  let link: OutboxLink | undefined
  let dropped = 0

  const say = (topic: string, body: string) => {
    said.set(topic, { body, print: said.get(topic)?.print })
    if (!underWay.has(topic)) publish(topic)
  }

  const publish = (topic: string) => {
    const [on, thing] = [link, said.get(topic)]
    if (on === undefined || thing === undefined) return
    const print = thing.body === '' ? undefined : digestText(topic, thing.body)
    for (const changed of [thing.print, print]) if (changed !== undefined) digest = foldDigest(digest, changed)
    const sent: Said = { body: thing.body, print }
    said.set(topic, sent)
    underWay.add(topic)
    on.publish(topic, sent.body, { qos: 1, retain: true }).then(
      () => {
        if (link === on) settle(topic, sent)
      },
      (error) => on.abandon(error),
    )
  }

  const settle = (topic: string, sent: Said) => {
    underWay.delete(topic)
    taken?.(topic, sent.body)
    if (said.get(topic) !== sent)
      publish(topic) // it changed while it was under way
    else if (sent.body === '') said.delete(topic)
  }

  const tellNext = () => {
    const [on, next] = [link, told[0]]
    if (on === undefined || next === undefined || telling !== undefined) return
    telling = next
    on.publish(next.topic, next.body, { qos: 1, retain: false }).then(
      () => {
        if (link !== on) return
        telling = undefined
        if (told[0] === next) told.shift()
        tellNext()
      },
      (error) => on.abandon(error),
    )
  }

  return {
    say,
    tell(topic, body) {
      if (told.length >= mostTold) {
        told.shift()
        dropped++
      }
      told.push({ topic, body })
      tellNext()
    },
    open(on) {
      link = on
      digest = emptyDigest
      for (const [topic, { body }] of said) {
        said.set(topic, { body, print: undefined })
        publish(topic)
      }
      tellNext()
    },
    closed() {
      link = undefined
      underWay.clear()
      telling = undefined
    },
    sayEverything() {
      for (const [topic, { body }] of said) say(topic, body)
    },
    isTaken: (topic) => link !== undefined && said.get(topic)?.print !== undefined && !underWay.has(topic),
    isIdle: () => link === undefined || (underWay.size === 0 && telling === undefined),
    digest: () => digest,
    dropped() {
      const count = dropped
      dropped = 0
      return count
    },
  }
}
