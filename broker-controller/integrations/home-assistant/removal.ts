/** Removes what a fleet has left on the broker of the household: Home Assistant then forgets its devices. */
import type { Clock } from '../../../daemon/clock.ts'
import type { HouseholdLink, HouseholdLinkSettings, HouseholdMessage } from '../household/household-link.ts'
import type { HomeAssistantSettings } from './home-assistant-settings.ts'
import { announcedDevice, discoveryFilter, isOwnTopic, statusTopic } from './topics.ts'

export type RemovalNeeds = {
  readonly open: (settings: HouseholdLinkSettings, signal: AbortSignal) => Promise<HouseholdLink>
  readonly clock: Clock
}

export type Removed = { readonly devices: number; readonly topics: number }

/**
 * Retained messages arrive right behind a subscription, and nothing marks the last one: so many looks, one after the other, find that none
 * arrived meanwhile. They are counted, because a program that gets no turn for seconds reads what arrived only then.
 */
const quietLooks = 4
const lookMs = 500
const longestMs = 60_000
const mostTopics = 100_000
const atOnce = 50

/** Resolves when the broker has removed them. Rejects if a controller still publishes for this fleet, or the broker refuses. */
export async function removeFromHomeAssistant(
  settings: HomeAssistantSettings,
  { open, clock }: RemovalNeeds,
  signal: AbortSignal,
): Promise<Removed> {
  const { broker, fleetName, topicPrefix } = settings
  const found = new Set<string>()
  let isRunning = false
  let arrived = 0
  const receive = ({ topic, body, isRetained }: HouseholdMessage) => {
    const isOurs = announcedDevice(topic, settings) !== undefined || isOwnTopic(topic, topicPrefix)
    if (!isRetained || body.length === 0 || !isOurs || found.size >= mostTopics) return
    arrived++
    found.add(topic)
    if (topic === statusTopic(topicPrefix)) isRunning = body.toString() === 'online'
  }
  const link = await open({ broker, clientId: `bramble-${fleetName}-removal`, receive }, signal)
  try {
    const startedMs = clock.monotonicMs()
    await link.subscribe(discoveryFilter(settings))
    await link.subscribe(`${topicPrefix}/#`)
    for (let quiet = 0; quiet < quietLooks && clock.monotonicMs() - startedMs < longestMs; ) {
      const before = arrived
      await clock.sleep(lookMs, signal)
      signal.throwIfAborted()
      quiet = arrived === before ? quiet + 1 : 0
    }
    if (isRunning) throw new Error(stillRunning)
    const topics = [...found]
    for (let at = 0; at < topics.length; at += atOnce) {
      const some = topics.slice(at, at + atOnce)
      await Promise.all(some.map((topic) => link.publish(topic, '', { qos: 1, retain: true })))
    }
    const devices = topics.filter((topic) => announcedDevice(topic, settings) !== undefined)
    return { devices: devices.length, topics: topics.length }
  } finally {
    await link.close()
  }
}

const stillRunning =
  'A controller is connected and would publish again: stop it, or start it without homeAssistant, and run this with a copy of the configuration'
