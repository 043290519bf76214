/** Publishes the names of the contents that this node holds: once for each connection to a controller that reads them, and on request. */
import { type ContentsMessage, type ControllerMessage, mostHeldNames } from '../../../api/topics.ts'
import type { MqttLink } from './mqtt-link.ts'

type PublishingLink = Pick<MqttLink, 'publish' | 'abandon'>

export interface ContentsReport {
  /** A new link: no message of its controller was received yet. */
  opened(link: PublishingLink): void
  received(message: Pick<ControllerMessage, 'contents'>): void
  /** Publishes them now, if the controller reads them. */
  publish(): void
  closed(): void
}

/** `held`: undefined while it is unknown. */
export function contentsReport(topic: string, held: () => readonly string[] | undefined): ContentsReport {
  let link: PublishingLink | undefined
  let isRead = false
  let isUnderWay = false
  let waits = false

  const publish = () => {
    const [on, names] = [link, held()]
    if (on === undefined || !isRead || names === undefined) return
    // Published with what is held then.
    waits = isUnderWay
    if (isUnderWay) return
    isUnderWay = true
    const message: ContentsMessage = { names: names.slice(0, mostHeldNames) }
    on.publish(topic, JSON.stringify(message), { qos: 1, retain: false }).then(
      () => {
        if (link !== on) return
        isUnderWay = false
        if (waits) publish()
      },
      (error) => on.abandon(error),
    )
  }

  return {
    opened(on) {
      link = on
      isRead = false
      isUnderWay = false
      waits = false
    },
    received({ contents = false }) {
      const isNew = contents && !isRead
      isRead = contents
      if (isNew) publish()
    },
    publish,
    closed() {
      link = undefined
    },
  }
}
