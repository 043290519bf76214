/** The messages of a node on its connection topic: online, the reason of a disconnect, and the last will. */
import type { ConnectionMessage } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { within } from '../../../daemon/deadline.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Leave } from '../../node/connection/control-plane.ts'
import type { MqttLink, MqttLinkSettings } from './mqtt-link.ts'

export type ConnectionMessagesNeeds = {
  readonly topic: string
  /** Part of each message. */
  readonly facts: Pick<ConnectionMessage, 'bootID' | 'agentVersion' | 'references' | 'leaseDurationSeconds'>
  /** The reason of an agent that stops, and for how long. */
  readonly leave: (() => Promise<Leave>) | undefined
  readonly clock: Clock
  readonly log: Log
}

type PublishingLink = Pick<MqttLink, 'publish'>

export interface ConnectionMessages {
  /** The broker publishes it if the connection is lost. */
  readonly will: MqttLinkSettings['will']
  /** Publishes that the node is connected, and its goodbye if it is leaving. Rejects with the link's error. */
  online(link: PublishingLink): Promise<void>
  /** Sets the leave, or withdraws it, and publishes that if there is a link. Resolves when it is acknowledged; never rejects. */
  leave(link: PublishingLink | undefined, leave: Leave | undefined): Promise<void>
  /** Publishes the goodbye of an agent that stops. Resolves within 3.5 s; never rejects. */
  stop(link: PublishingLink): Promise<void>
}

const goodbyeMs = 2_000
const leaveMs = 1_500

export function connectionMessages({
  topic,
  facts,
  leave: finalLeave,
  clock,
  log,
}: ConnectionMessagesNeeds): ConnectionMessages {
  let leaving: Leave | undefined

  const body = (message: Pick<ConnectionMessage, 'state' | 'reason' | 'expectedBackSeconds'>): string =>
    JSON.stringify({ ...message, ...facts } satisfies ConnectionMessage)

  const publish = (link: PublishingLink, state: 'online' | 'goodbye', leave: Partial<Leave> = {}) =>
    link.publish(topic, body({ state, ...leave }), { qos: 1, retain: true })

  /** Published within 2 s, or logged: a broker that hangs delays no shutdown. */
  const publishInTime = async (published: Promise<void>): Promise<boolean> => {
    try {
      await within(goodbyeMs, 'The broker did not acknowledge the goodbye', published, clock)
      return true
    } catch (error) {
      log.warn('Goodbye not published', { error })
      return false
    }
  }

  /** The reason is requested at the very end only: what stops the agent may show late. Without an answer the last known one counts. */
  const lastLeave = async (): Promise<Leave> => {
    const otherwise = leaving ?? { reason: 'agent-stopped' }
    if (finalLeave === undefined) return otherwise
    return await within(leaveMs, 'No reason for the stop', finalLeave(), clock).catch(() => otherwise)
  }

  return {
    will: { topic, body: body({ state: 'lost' }) },
    async online(link) {
      await publish(link, 'online')
      if (leaving !== undefined) await publish(link, 'goodbye', leaving)
    },
    async leave(link, leave) {
      leaving = leave
      if (link === undefined) return
      await publishInTime(leave === undefined ? publish(link, 'online') : publish(link, 'goodbye', leave))
      // No heartbeat yet: the next one comes in its turn, once the node is Ready again. A node that is back and NotReady would lose its pods.
    },
    async stop(link) {
      const leave = await lastLeave()
      if (await publishInTime(publish(link, 'goodbye', leave))) log.info('Goodbye published', leave)
    },
  }
}
