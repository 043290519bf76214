/** The stream of the dashboard: one page after another joins the rounds, and receives the cards that it may see. */
import { setImmediate } from 'node:timers/promises'
import type { NodeHistory, UsageRow } from '../../api/dashboard/dashboard-messages.ts'
import type { Identity } from '../../api/identity.ts'
import type { Authorizer } from '../../broker-controller/apiserver/handlers/authorizer.ts'
import type { UsageBoard } from '../../broker-controller/usage/usage-board.ts'
import { alarm } from '../../daemon/alarm.ts'
import { type FleetCardNeeds, type FleetCards, fleetCards } from './fleet-cards.ts'
import { allCards, cardKinds, changesText, keepAlive, message, retryLine } from './fleet-messages.ts'
import { changedUsage, namesOf, recordUsage } from './fleet-usage.ts'
import { type FleetViewer, fleetViewer } from './fleet-viewer.ts'
import { usageHistory } from './usage-history.ts'
import { viewRights } from './view-rights.ts'

export type DashboardFleetNeeds = FleetCardNeeds & {
  readonly usage: UsageBoard
  readonly access: Authorizer
  /** Sample what nodes use also while no page is open. */
  readonly alwaysSample: boolean
}

export interface DashboardFleet {
  /**
   * Server-sent events with a FleetUpdate each, until `signal` aborts, or `identity` rejects: it is asked again every few seconds, and
   * the rights that it has.
   */
  stream(identity: () => Promise<Identity>, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Undefined: nothing was recorded for this node. */
  history(node: string): NodeHistory | undefined
  /** Samples where that is configured; resolves when `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
}

const lingerRounds = 20
const roundMs = 1_000
const rightsEveryRounds = 3
const sampleEveryRounds = 10
/** Machines report a second after the first page was opened. */
const firstSampleEveryRounds = 2
const keepAliveRounds = 15
/** Cards that one round computes: below 50 ms of CPU on a Raspberry Pi 4. */
const mostCards = 2_000
const cardsAtOnce = 250
const mostViewers = 200

/** Nothing is watched and no node is polled while no page is open, or only sampled where that is configured. */
export function dashboardFleet(needs: DashboardFleetNeeds): DashboardFleet {
  const { clock, log, store, usage, access, alwaysSample } = needs
  const viewers = new Set<FleetViewer>()
  const history = usageHistory({ clock })
  const lastUsage = new Map<string, UsageRow>()
  let cards: Watched | undefined
  let watching: Promise<void> | undefined
  /** Ends the watches under way. */
  let stopWatching = () => {}
  let closed = false

  const namespaces = async () => (await store.list('namespaces')).items.map(({ metadata }) => metadata.name ?? '')

  const sampleAll = async () => {
    const { items } = await store.list('nodes')
    usage.pollMachines(namesOf(items))
    recordUsage(items, { usage, history })
  }

  const everyRound = async (present: FleetCards, count: number) => {
    if (count % rightsEveryRounds === 0) {
      const all = await namespaces()
      for (const viewer of viewers) {
        await viewer.check((identity) => viewRights(identity, access, all))
        await setImmediate() // with rights in 200 namespaces one takes some ms
      }
    }
    const isSampling = count % (count < sampleEveryRounds ? firstSampleEveryRounds : sampleEveryRounds) === 0
    if (isSampling && viewers.size > 0) usage.pollMachines(namesOf(present.nodes()))
    if (isSampling) recordUsage(present.nodes(), { usage, history })
    const used = isSampling ? changedUsage(present.nodes(), lastUsage, usage) : {}
    await sendChanges(present, used, viewers, count % keepAliveRounds === 0)
  }

  const watch = async () => {
    const stopping = new AbortController()
    stopWatching = () => stopping.abort()
    const present = watchedCards(needs, stopping.signal)
    cards = present
    try {
      await present.filled
      let idle = 0
      for (let count = 0; !stopping.signal.aborted && (idle < lingerRounds || viewers.size > 0); count++) {
        idle = viewers.size === 0 ? idle + 1 : 0
        await everyRound(present, count)
        await Promise.race([clock.sleep(roundMs, stopping.signal), present.running])
      }
    } finally {
      stopping.abort()
      cards = undefined
      watching = undefined
      lastUsage.clear()
      for (const viewer of viewers) viewer.end()
      await present.running.catch(() => undefined)
    }
  }

  /** Its rights and all cards: at the start, and again when its rights have changed. */
  async function* beginning(viewer: FleetViewer): AsyncIterable<Uint8Array> {
    yield message({ reset: viewer.rights })
    viewer.isLive = true
    viewer.needsReset = false
    await Promise.race([cards?.filled, viewer.aborted])
    if (cards !== undefined) yield* allCards(cards, viewer, lastUsage)
  }

  return {
    history: history.of,
    async *stream(identity, signal) {
      if (closed || viewers.size >= mostViewers) return
      const rights = await viewRights(await identity(), access, await namespaces())
      const viewer = fleetViewer({ identity, rights, wake: alarm(clock), signal })
      viewers.add(viewer)
      try {
        yield retryLine
        watching ??= watch().catch((error: unknown) => log.error('Dashboard stopped watching', { error }))
        while (!viewer.ended) {
          if (viewer.needsReset) yield* beginning(viewer)
          const text = viewer.next()
          if (text !== undefined) yield text
          else if (!viewer.needsReset) await viewer.wait()
        }
      } finally {
        viewers.delete(viewer)
        viewer.end()
      }
    },
    async run(signal) {
      while (!signal.aborted) {
        if (alwaysSample) {
          await sampleAll().catch((error: unknown) => log.warn('Use of machines not sampled', { error }))
        }
        await clock.sleep(alwaysSample ? alwaysEveryMs : idleMs, signal)
      }
      closed = true
      stopWatching()
      await watching
    },
  }
}

const alwaysEveryMs = 60_000
const idleMs = 24 * 3600_000

/** `filled`: every card was computed once; rejects when the watches fail before. */
type Watched = FleetCards & { readonly filled: Promise<void>; readonly running: Promise<void> }

function watchedCards(needs: FleetCardNeeds, signal: AbortSignal): Watched {
  const cards = fleetCards(needs)
  const running = cards.run(signal)
  const fill = async () => {
    await Promise.race([cards.listed, running])
    while (Object.values(cards.tables).some(({ pending }) => pending > 0)) {
      for (const kind of cardKinds) await cards.tables[kind].take(cardsAtOnce)
      await setImmediate()
    }
  }
  const filled = fill()
  for (const one of [filled, running]) one.catch(() => undefined) // the rounds end with it
  return { ...cards, filled, running }
}

/** Computes what changed. It becomes text once for all viewers with the same rights. */
async function sendChanges(
  { tables }: FleetCards,
  used: { readonly [node: string]: UsageRow },
  viewers: Iterable<FleetViewer>,
  keepsAlive: boolean,
): Promise<void> {
  const changes: Parameters<typeof changesText>[0][number][] = []
  for (const kind of cardKinds) changes.push({ kind, found: await tables[kind].take(mostCards) })
  const texts = new Map<string, Buffer | undefined>()
  for (const viewer of viewers) {
    if (!viewer.isLive) continue
    const { rightsKey, rights } = viewer
    if (!texts.has(rightsKey)) texts.set(rightsKey, changesText(changes, used, rights))
    const text = texts.get(rightsKey) ?? (keepsAlive ? keepAlive : undefined)
    if (text !== undefined) viewer.send(text)
  }
}
