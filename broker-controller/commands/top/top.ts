/** `bramble-controller top`: the fleet in a terminal, or as lines in a pipe, until it is left. */
import type { FleetUpdate } from '../../../api/dashboard/dashboard-messages.ts'
import { emptyFleet, type FleetState, fleetAfter } from '../../../api/dashboard/fleet-state.ts'
import { type Alarm, alarm } from '../../../daemon/alarm.ts'
import { longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { storyOf } from '../../../daemon/log.ts'
import { StreamRefusedError } from './fleet-updates.ts'
import { plainLines } from './plain-lines.ts'
import type { Terminal, TerminalListener } from './terminal.ts'
import { topScreen } from './top-screen.ts'
import { afterKey, type Extent, firstTopState, type TopLink, type TopState } from './top-state.ts'

export type TopNeeds = {
  /** A new connection to the controller. Ends or throws when it is lost. */
  readonly updates: (signal: AbortSignal) => AsyncIterable<FleetUpdate>
  /** Shown in the head. */
  readonly server: string
  readonly clock: Clock
}

/** Between two frames; what changes meanwhile is in the next one. */
const frameMs = 50
/** Ages grow while nothing happens. */
const ageMs = 1_000
const retry = { firstMs: 1_000, maxMs: 15_000 }

/** Until a key or `signal` ends it. Rejects when the first connection fails, or when the controller refuses for good. */
export async function topInTerminal(
  { updates, server, clock }: TopNeeds,
  open: (listener: TerminalListener) => Terminal,
  signal: AbortSignal,
): Promise<void> {
  const ending = new AbortController()
  const stop = () => ending.abort('over')
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const wake = alarm(clock)
  let state: TopState = firstTopState(server)
  let extent: Extent = { rows: 0, height: 1 }
  const follow = followed({ updates, server, clock }, ending.signal, (fleet, link) => {
    state = { ...state, fleet, link }
    wake.ring()
  })
  const over = follow.finally(stop)
  over.catch(() => undefined) // awaited below, after the terminal was restored
  const terminal = open({
    onKey(key) {
      const next = afterKey(state, key, extent)
      if (next === 'quit') stop()
      else state = next
      wake.ring()
    },
    onChange: () => wake.ring(),
    onEnd: stop,
  })
  try {
    await drawn(ending.signal, { wake, clock }, () => {
      const screen = topScreen(state, terminal.size(), clock.wallMs())
      extent = screen.extent
      terminal.draw(screen.lines)
    })
  } finally {
    stop()
    terminal.close()
    signal.removeEventListener('abort', stop)
  }
  await over
}

async function drawn(
  signal: AbortSignal,
  { wake, clock }: { readonly wake: Alarm; readonly clock: Clock },
  draw: () => void,
): Promise<void> {
  while (!signal.aborted) {
    draw()
    await clock.sleep(frameMs, signal)
    await wake.sleep(ageMs, signal)
  }
}

export type PlainSettings = {
  readonly print: (text: string) => void
  /** Print what changes, until `signal` aborts. */
  readonly watches: boolean
}

/** Machines report what they use only while it is shown: the first reports take some seconds. */
const usageMs = 15_000

/** Prints all lines once, as soon as the usage of the machines that are ready is there. Rejects as `topInTerminal` does. */
export async function topAsLines(
  { updates, server, clock }: TopNeeds,
  { print, watches }: PlainSettings,
  signal: AbortSignal,
): Promise<void> {
  const ending = new AbortController()
  const stop = () => ending.abort('over')
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const wake = alarm(clock)
  let now: FleetState = emptyFleet
  const follow = followed({ updates, server, clock }, ending.signal, (fleet) => {
    now = fleet
    wake.ring()
  })
  const over = follow.finally(() => {
    stop()
    wake.ring()
  })
  over.catch(() => undefined) // awaited below
  let completeMs: number | undefined
  let printed: ReadonlyMap<string, string> | undefined
  try {
    while (!ending.signal.aborted && (watches || printed === undefined)) {
      await wake.sleep(ageMs, ending.signal)
      if (now.isComplete) completeMs ??= clock.monotonicMs()
      const isLate = completeMs !== undefined && clock.monotonicMs() - completeMs >= usageMs
      if (printed === undefined && !(now.isComplete && (isLate || isUsageKnown(now)))) continue
      const lines = plainLines(now)
      const changed = [...lines].filter(([key, line]) => printed?.get(key) !== line).map(([, line]) => `${line}\n`)
      if (changed.length > 0) print(changed.join(''))
      printed = lines
    }
  } finally {
    stop()
    signal.removeEventListener('abort', stop)
  }
  await over
}

function isUsageKnown({ nodes, usage, rights }: FleetState): boolean {
  return rights?.usage !== true || [...nodes.values()].every(({ name, state }) => state !== 'ready' || usage.has(name))
}

/**
 * Calls `show` with each change, and connects again when the connection is lost: the old cards stay until all new ones are there.
 * Rejects when the first connection fails, or with a refusal that is final.
 */
async function followed(
  { updates, server, clock }: TopNeeds,
  signal: AbortSignal,
  show: (fleet: FleetState, link: TopLink) => void,
): Promise<void> {
  let shown: FleetState = emptyFleet
  let hasConnected = false
  let failures = 0
  const connection = async () => {
    let arrived: FleetState = emptyFleet
    for await (const update of updates(signal)) {
      arrived = fleetAfter(arrived, update)
      hasConnected = true
      failures = 0
      if (arrived.isComplete || !shown.isComplete) shown = arrived
      show(shown, { is: 'connected' })
    }
  }
  while (!signal.aborted) {
    let why = 'the controller ended the connection'
    try {
      await connection()
    } catch (cause) {
      if (signal.aborted) return
      const isFinal = !hasConnected || (cause instanceof StreamRefusedError && cause.isFinal)
      if (isFinal) throw new Error(`Cannot read the fleet from ${server}`, { cause })
      why = storyOf(cause)
    }
    if (signal.aborted) return
    show(shown, { is: 'lost', why })
    await clock.sleep(longestBackoffMs(failures++, retry), signal)
  }
}
