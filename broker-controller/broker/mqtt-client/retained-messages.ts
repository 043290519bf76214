/** What the controller retains at an external MQTT server, kept to publish it again: the server may lose it. */
import { type Topic, topicName, topicRules } from '../../../api/topics.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import { longestPublished } from '../server-limits.ts'
import type { MqttClient } from './mqtt-client.ts'

export interface RetainedMessages {
  /** '' withdraws what is retained on the topic. */
  keep(topic: Topic, body: string): void
  /** Is there a message to be retained on this topic? */
  has(topic: Topic): boolean
  /** Publishes what is kept of this topic. Rejects when the connection ends before the server has it. */
  publish(to: Pick<MqttClient, 'publish'>, name: string): Promise<void>
  /** The same for all. */
  publishAll(to: Pick<MqttClient, 'publish'>): Promise<void>
}

/** Messages that are encoded in one turn of the event loop and in memory for the socket: a fleet has thousands. */
const publishedAtOnce = 100

export function retainedMessages(log: Pick<LimitedLog, 'error'>): RetainedMessages {
  const kept = new Map<string, { readonly topic: Topic; readonly body: string }>()

  const publish = async (to: Pick<MqttClient, 'publish'>, name: string) => {
    const entry = kept.get(name)
    if (entry === undefined) return
    const { topic, body } = entry
    const bytes = Buffer.byteLength(body)
    if (bytes > longestPublished) {
      const facts = { topic: name, bytes, most: longestPublished }
      return log.error(`${name}/TooLarge`, 'Message not published: it is larger than the MQTT server accepts', facts)
    }
    await to.publish({ topic: name, body, qos: topicRules[topic.kind].qos, retain: true })
    // A later one may have been published meanwhile.
    if (body === '' && kept.get(name) === entry) kept.delete(name)
  }

  return {
    keep: (topic, body) => void kept.set(topicName(topic), { topic, body }),
    has: (topic) => (kept.get(topicName(topic))?.body ?? '') !== '',
    publish,
    async publishAll(to) {
      const names = [...kept.keys()].values()
      const some = async () => {
        for (const name of names) await publish(to, name)
      }
      await Promise.all(Array.from({ length: publishedAtOnce }, some))
    },
  }
}
