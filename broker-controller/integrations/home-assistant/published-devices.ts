/** What the broker has of the devices on one connection: marked devices are compared and published, a bounded number in each round. */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../daemon/clock.ts'
import type { HouseholdLink } from '../household/household-link.ts'
import { fleetDevice } from './device-ids.ts'
import type { Devices } from './devices.ts'
import type { HomeAssistantSettings } from './home-assistant-settings.ts'
import { nextPublications, nothingSent, type SentDevice } from './publications.ts'
import { discoveryTopic, stateTopic } from './topics.ts'

export interface PublishedDevices {
  /** `found`: devices that the broker has announcements of, with the keys of their entities. All devices are published from now on. */
  begin(found: ReadonlyMap<string, ReadonlySet<string>>): void
  /** The device may have changed, or be gone. */
  mark(id: string): void
  markAll(): void
  /** Everything is published again. */
  forget(): void
  /** Looks at marked devices, and resolves when the broker has what was published. Rejects when the connection ends. */
  round(most: { readonly devices: number; readonly messages: number }): Promise<void>
}

type Known = { readonly sent: SentDevice; readonly announced: ReadonlySet<string> }

const unknown: Known = { sent: nothingSent, announced: new Set() }
const retained = { qos: 1, retain: true } as const
/** Devices between two turns of the event loop: each is some 50 µs. */
const atOnce = 25

export function publishedDevices(
  devices: Devices,
  { link, clock }: { readonly link: Pick<HouseholdLink, 'publish'>; readonly clock: Pick<Clock, 'monotonicMs'> },
  settings: HomeAssistantSettings,
): PublishedDevices {
  const known = new Map<string, Known>()
  /** In the order in which they are looked at. */
  const marked = new Set<string>()
  /** When readings of a device may be published; before that it is not looked at again for them. */
  const due = new Map<string, number>()
  let hasBegun = false

  const remove = async (id: string) => {
    known.delete(id)
    due.delete(id)
    // Home Assistant removes the device by the first one.
    await link.publish(discoveryTopic(settings, id), '', retained)
    await link.publish(stateTopic(settings.topicPrefix, id), '', retained)
  }

  /** Gives what it publishes: nothing, or the messages under way. */
  const look = (id: string): readonly Promise<void>[] => {
    const before = known.get(id)
    const wanted = devices.wanted(id, before?.announced ?? new Set())
    if (wanted === undefined) return before === undefined ? [] : [remove(id)]
    const { sent } = before ?? unknown
    const next = nextPublications(wanted, sent, clock.monotonicMs(), settings)
    known.set(id, { sent: next.sent, announced: wanted.announced })
    if (next.dueMs === undefined) due.delete(id)
    else due.set(id, next.dueMs)
    return next.publications.map(({ what, body }) =>
      link.publish(
        what === 'state' ? stateTopic(settings.topicPrefix, id) : discoveryTopic(settings, id),
        body,
        retained,
      ),
    )
  }

  /** The promises are awaited later: until then a rejection is not an unhandled one. */
  const lookQuietly = (id: string) => {
    const sent = look(id)
    for (const one of sent) one.catch(() => undefined)
    return sent
  }

  const markDue = () => {
    const now = clock.monotonicMs()
    for (const [id, dueMs] of due) if (now >= dueMs) marked.add(id)
  }

  return {
    begin(found) {
      hasBegun = true
      for (const [id, announced] of found) {
        known.set(id, { sent: nothingSent, announced })
        marked.add(id)
      }
      for (const id of devices.ids()) marked.add(id)
    },
    mark(id) {
      if (!hasBegun) return
      marked.add(id)
      marked.add(fleetDevice)
    },
    markAll() {
      for (const id of [...known.keys(), ...devices.ids()]) marked.add(id)
    },
    forget() {
      for (const [id, { announced }] of known) {
        known.set(id, { sent: nothingSent, announced })
        marked.add(id)
      }
    },
    async round(most) {
      markDue()
      const underWay: Promise<void>[] = []
      let looked = 0
      // The fleet first: machines refer to it.
      const order = marked.has(fleetDevice) ? [fleetDevice, ...marked] : [...marked]
      for (const id of order) {
        if (underWay.length >= most.messages || looked >= most.devices) break
        if (!marked.delete(id)) continue
        underWay.push(...lookQuietly(id))
        if (++looked % atOnce === 0) await setImmediate()
      }
      await Promise.all(underWay)
    },
  }
}
