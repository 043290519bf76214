/** Loop, on the controller that leads: the fleet → devices and entities of Home Assistant, by the MQTT broker of the household. */
import { unlessAborted, withOwnSignal } from '../../../daemon/aborted.ts'
import { backoffMs, connectionFailures } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { within } from '../../../daemon/deadline.ts'
import type { Log } from '../../../daemon/log.ts'
import { type LimitedLog, limitLog } from '../../../daemon/log-limit.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import type { LocalAnswer, LocalRequest } from '../../apiserver/filters/in-process-api.ts'
import type { OfferedRelease } from '../../controllers/rollouts/rollout-wish.ts'
import type { Store } from '../../store/store.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { HouseholdLink, HouseholdLinkSettings } from '../household/household-link.ts'
import { deviceID } from './device-ids.ts'
import { devices } from './devices.ts'
import { drains } from './drains.ts'
import { fleetButton, type HomeAssistantSettings, type MachineButton } from './home-assistant-settings.ts'
import { householdInbox } from './household-inbox.ts'
import { installs } from './installs.ts'
import { publishedDevices } from './published-devices.ts'
import { restarts } from './restarts.ts'
import { type RolloutInstalls, rolloutInstalls } from './rollout-installs.ts'
import { birthTopic, commandFilter, discoveryFilter, statusTopic } from './topics.ts'
import { type WatchedFleet, watchedFleet } from './watched-fleet.ts'

export type HomeAssistantNeeds = {
  readonly store: Store
  readonly usage: Pick<UsageBoard, 'newest' | 'pollMachines'>
  /** What nodes report of their pools. */
  readonly storage: Pick<StorageBoard, 'reportOf'>
  readonly open: (settings: HouseholdLinkSettings, signal: AbortSignal) => Promise<HouseholdLink>
  /** To the API, as the user of the buttons. */
  readonly request: (request: LocalRequest, signal: AbortSignal) => Promise<LocalAnswer>
  /** The releases that this controller serves to nodes. */
  readonly releases: () => Promise<readonly OfferedRelease[]>
  /** `https://HOST:PORT/ui/`; undefined: there is no dashboard. */
  readonly pages: string | undefined
  /** Release of this controller. */
  readonly version: string
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
}

const retry = { firstMs: 2_000, maxMs: 60_000 }
/** A connection must last this long before its loss counts as a first failure: two controllers of one fleet name would race. */
const stableMs = 30_000
/**
 * Retained messages arrive right behind a subscription, and nothing marks the last one. In several waits: a program that gets no turn for
 * seconds reads what arrived before the second of them.
 */
const collecting = { waits: 4, waitMs: 500 }
const roundMs = 1_000
const offlineMs = 2_000
/** Devices that one round looks at, and messages that it sends: a fleet of 1,000 is announced within a minute. */
const perRound = { devices: 250, messages: 40 }
/** Nodes are asked for what they use, and all devices looked at for it. A node that reports already is not asked again. */
const sweepMs = 10_000

export function homeAssistantLoop(needs: HomeAssistantNeeds, settings: HomeAssistantSettings): Loop {
  const { clock, log } = needs
  const fleet = watchedFleet(needs)
  const limited = limitLog(log, clock)
  const draining = drains({ ...needs, podsOf: fleet.podsOf, limited })
  const restarting = restarts(needs)
  const installing = installs({ ...needs, nodeNamed: (name) => fleet.node(deviceID(name)), rollout: fleet.rollout })
  const { installed, rollout, rolloutRevision } = fleet
  const rollouts = rolloutInstalls({ ...needs, installed, rollout, rolloutRevision })
  const buttons = {
    pressFleet: () => rollouts.press(),
    press(node: string, button: MachineButton) {
      if (button === 'restart') return restarting.press(node)
      if (button === 'update') return installing.press(node)
      draining.press(node, button)
    },
  }
  const connection = {
    name: 'home-assistant-connection',
    run: (signal: AbortSignal) =>
      keepConnected({ ...needs, fleet, buttons, limited, updates: rollouts.facts }, settings, signal),
  }
  const ofMachines = settings.buttons.some((button) => button !== fleetButton)
  const acting = [
    ...(ofMachines ? [draining.loop, restarting.loop, installing.loop] : []),
    ...(settings.buttons.includes(fleetButton) ? [rollouts.pressesLoop] : []),
  ]
  const loops = [...fleet.loops, rollouts.releasesLoop, connection, ...acting]
  return {
    name: 'home-assistant',
    async run(signal) {
      try {
        await runLoops(loops, signal, log)
      } finally {
        limited.close()
      }
    },
  }
}

type SessionNeeds = HomeAssistantNeeds & {
  readonly fleet: WatchedFleet
  readonly buttons: { press(nodeName: string, button: MachineButton): void; pressFleet(): void }
  readonly updates: RolloutInstalls['facts']
  readonly limited: LimitedLog
}

async function keepConnected(needs: SessionNeeds, settings: HomeAssistantSettings, signal: AbortSignal): Promise<void> {
  const { clock, log, random, fleet } = needs
  const { host, port } = settings.broker
  const server = `${host}:${port}`
  await fleet.listed
  const failures = connectionFailures(stableMs)
  let isLogged = false
  while (!signal.aborted) {
    const startedMs = clock.monotonicMs()
    const { wasOpen, error } = await session(needs, settings, signal).then(
      (error) => ({ wasOpen: true, error }),
      (error: unknown) => ({ wasOpen: false, error }),
    )
    if (signal.aborted) return
    if (wasOpen) failures.ended(clock.monotonicMs() - startedMs)
    else failures.refused()
    if (failures.count === 0) isLogged = false
    if (!isLogged) log.warn('No connection for Home Assistant, trying until it is back', { server, error })
    else log.debug('No connection for Home Assistant', { server, error })
    isLogged = true
    await clock.sleep(retry.firstMs + backoffMs(Math.max(0, failures.count - 1), retry, random), signal)
  }
}

/** One connection. Resolves with what ended it, or undefined when `signal` aborts. Rejects if it cannot be opened. */
async function session(
  needs: SessionNeeds,
  settings: HomeAssistantSettings,
  signal: AbortSignal,
): Promise<Error | undefined> {
  const { clock, fleet } = needs
  const { broker, fleetName, topicPrefix } = settings
  const received = householdInbox(needs, settings)
  const status = statusTopic(topicPrefix)
  const link = await needs.open(
    {
      broker,
      // The same for every controller of the fleet: the one that leads now takes over, and the broker ends the other connection.
      clientId: `bramble-${fleetName}`,
      will: { topic: status, body: 'offline' },
      receive: received.receive,
    },
    signal,
  )
  const published = publishedDevices(devices(needs, settings), { link, clock }, settings)
  fleet.onChange(published.mark)
  return withOwnSignal(signal, async (own) => {
    const working = publishUntil({ ...needs, link, received, published }, settings, own.signal).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error : new Error('The session failed', { cause: error })),
    )
    try {
      return await unlessAborted(Promise.race([working, link.ended]), signal)
    } finally {
      own.abort()
      fleet.onChange(() => {})
      if (signal.aborted) await goOffline(link, status)
      await link.close()
      await working
    }
  })
}

/** A broker that hangs does not delay the end of the controller: it publishes the last will later. */
async function goOffline(link: HouseholdLink, status: string): Promise<void> {
  const published = link.publish(status, 'offline', { qos: 1, retain: true })
  await within(offlineMs, 'No answer', published).catch(() => undefined)
}

type PublishingNeeds = SessionNeeds & {
  readonly link: HouseholdLink
  readonly received: ReturnType<typeof householdInbox>
  readonly published: ReturnType<typeof publishedDevices>
}

/** Subscribes, then publishes what the fleet is. Rejects when the connection ends or the broker refuses. */
async function publishUntil(
  needs: PublishingNeeds,
  settings: HomeAssistantSettings,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, link, received, published } = needs
  const { broker, topicPrefix, discoveryPrefix, buttons } = settings
  const ownAnnouncements = discoveryFilter(settings)
  await link.subscribe(ownAnnouncements)
  await link.subscribe(birthTopic(discoveryPrefix))
  for (const button of buttons) await link.subscribe(commandFilter(topicPrefix, button))
  await link.publish(statusTopic(topicPrefix), 'online', { qos: 1, retain: true })
  log.info('Connected for Home Assistant', { server: `${broker.host}:${broker.port}` })
  for (let wait = 0; wait < collecting.waits; wait++) await clock.sleep(collecting.waitMs, signal)
  if (signal.aborted) return
  await link.unsubscribe(ownAnnouncements)
  published.begin(received.takeAnnounced())
  await rounds(needs, signal)
}

async function rounds(
  { clock, usage, fleet, published, received }: PublishingNeeds,
  signal: AbortSignal,
): Promise<void> {
  let sweptMs = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    const now = clock.monotonicMs()
    if (received.takeBirth(now)) published.forget()
    if (now - sweptMs >= sweepMs) {
      sweptMs = now
      usage.pollMachines(fleet.nodeNames())
      published.markAll()
    }
    await published.round(perRound)
    await clock.sleep(roundMs, signal)
  }
}
