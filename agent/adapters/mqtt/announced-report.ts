/**
 * A report on a topic that not every controller has: published once for each connection to a controller that reads it, and on request. A broker
 * of an earlier version would not accept it, and the digest of reports would never agree.
 */
import type { ControllerMessage } from '../../../api/topics.ts'
import type { MqttLink } from './mqtt-link.ts'

type PublishingLink = Pick<MqttLink, 'publish' | 'abandon'>

export interface AnnouncedReport {
  /** A new link: no message of its controller was received yet. */
  opened(link: PublishingLink): void
  received(message: Pick<ControllerMessage, 'contents' | 'volumes'>): void
  /** Publishes it now, if the controller reads it. */
  publish(): void
  closed(): void
}

export type Announced = {
  readonly isRead: (message: Pick<ControllerMessage, 'contents' | 'volumes'>) => boolean
  /** undefined: there is none yet. */
  readonly body: () => string | undefined
}

export function announcedReport(topic: string, { isRead: isReadBy, body }: Announced): AnnouncedReport {
  let link: PublishingLink | undefined
  let isRead = false
  let isUnderWay = false
  let waits = false

  const publish = () => {
    const [on, text] = [link, body()]
    if (on === undefined || !isRead || text === undefined) return
    // Published as it is then.
    waits = isUnderWay
    if (isUnderWay) return
    isUnderWay = true
    on.publish(topic, text, { qos: 1, retain: false }).then(
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
    received(message) {
      const reads = isReadBy(message)
      const isNew = reads && !isRead
      isRead = reads
      if (isNew) publish()
    },
    publish,
    closed() {
      link = undefined
    },
  }
}
