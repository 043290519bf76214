/**
 * The time in which checkpoints of nodes are accepted: from the creation of a store that was restored, or created beside an existing
 * CA of the fleet, until all nodes of the backup sent their checkpoints, the time limit is reached, or an administrator
 * closes the window. One ConfigMap holds the state; no wall clock decides.
 */
import type { ConfigMap } from '../../../api/config-map.ts'
import { learntByAnnotation } from '../../../api/node/node-checkpoint.ts'
import { aborted } from '../../../daemon/aborted.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { untilAnswered } from '../election/until-answered.ts'
import type { EventRecorder } from '../event-recorder.ts'
import { informer, keyText } from '../informer.ts'
import { nodeReference } from '../references.ts'
import { rewrite } from '../rewrite.ts'
import { isWithoutRoom, type ObjectKey, type Store, type StoredObject, type StoreOrigin } from '../store.ts'

export const checkpointWindowKey: ObjectKey = { namespace: 'kube-system', name: 'bramble-checkpoints' }

export interface CheckpointWindow extends Loop {
  isOpen(): boolean
  /** For how long checkpoints have been accepted, to half a minute, and the names of the Nodes that came with the store. */
  progress(): Pick<State, 'isOpen' | 'openMs' | 'nodes'>
  /** Called when the window closes. */
  onClose(closed: () => void): void
}

export type CheckpointWindowNeeds = {
  readonly store: Store
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

export type CheckpointWindowSettings = {
  /** How long checkpoints are accepted, counted while the controller runs: a date may be wrong. */
  readonly limitMs: number
}

export const defaultCheckpointWindow: CheckpointWindowSettings = { limitMs: 24 * 3600_000 }

/** The content of the ConfigMap. */
type State = {
  readonly store: string
  readonly isOpen: boolean
  readonly openMs: number
  /** The Nodes that came with the store. */
  readonly nodes: readonly string[]
}

/** Nodes that the backup does not have register within this time, if they are switched on. */
export const leastOpenMs = 10 * 60_000
const endedByAdministrator = 'closed by an administrator'
const lookMs = 30_000
const saveEveryMs = 10 * 60_000
/** A bound on the Events of one closing; the log has the count. */
const mostEvents = 100

/** Why the window closes now; undefined: it stays open. `nodes`: all present Nodes. */
export function reasonToClose(
  { openMs, nodes: known, store }: State,
  nodes: readonly StoredObject<'nodes'>[],
  limitMs: number,
): string | undefined {
  if (openMs >= limitMs) return 'the time limit was reached'
  // A store that began without Nodes has no list of the nodes to wait for.
  if (known.length === 0 || openMs < leastOpenMs) return undefined
  const late = lateNodes(known, nodes, store)
  return late.length === 0 ? 'all nodes of the backup sent their checkpoints' : undefined
}

/** The nodes that came with the store, are there still, and sent no checkpoint to it. `known`: by name; `store`: its identity. */
export function lateNodes(
  known: readonly string[],
  nodes: readonly StoredObject<'nodes'>[],
  store: string,
): readonly string[] {
  const names = new Set(known)
  return nodes
    .filter(({ metadata }) => names.has(metadata.name) && metadata.annotations?.[learntByAnnotation] !== store)
    .map(({ metadata }) => metadata.name)
}

const emptyMap: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...checkpointWindowKey } }

/** Resolves with the state as it is now, before any node connects. */
export async function openCheckpointWindow(
  needs: CheckpointWindowNeeds,
  origin: StoreOrigin,
  { limitMs }: CheckpointWindowSettings = defaultCheckpointWindow,
): Promise<CheckpointWindow> {
  const { store, clock, log } = needs
  const listeners: (() => void)[] = []
  const first = origin.acceptsCheckpoints
    ? await firstState(needs, origin, limitMs)
    : { state: closedState(origin), isSaved: true }
  let { state, isSaved } = first
  if (state.isOpen) log.info('Accepting checkpoints of nodes', { store: origin.id, openMs: state.openMs, limitMs })

  const closed = (reason: string) => {
    if (!state.isOpen) return
    state = { ...state, isOpen: false }
    log.info('No longer accepting checkpoints of nodes', { reason })
    for (const notify of listeners) notify()
  }
  /** The time so far. A window that was closed since it was last read stays closed. */
  const saveTime = async () => {
    // Not saved yet: the store had no room at the start. Later, a missing ConfigMap was deleted, which closes the
    // window.
    if (!isSaved) await saveFirst(store, state)
    isSaved = true
    const change = (map: ConfigMap) => (isOpenIn(map) ? withState(map, state, undefined, '') : undefined)
    await rewrite({ store, clock }, 'configmaps', { key: checkpointWindowKey, change })
  }
  const saveEnd = async (reason: string) => {
    const ended = (map: ConfigMap) => withState(map, { ...state, isOpen: false }, reason, rfc3339(clock.wallMs()))
    const saved = await rewrite({ store, clock }, 'configmaps', { key: checkpointWindowKey, change: ended })
    if (saved === undefined) await store.create('configmaps', ended(emptyMap))
  }
  const isOpenIn = (map: ConfigMap | undefined) => {
    const known = stateIn(map)
    return known?.store === origin.id && known.isOpen
  }
  const close = async (reason: string, signal: AbortSignal) => {
    const { items } = await store.list('nodes')
    const late = lateNodes(state.nodes, items, origin.id)
    closed(reason)
    const saving = { what: 'the end of the checkpoint window', keep: aborted, clock, log, signal }
    await untilAnswered(saving, () => saveEnd(reason))
    await recordMissed(needs, late, reason)
  }
  const maps = informer({ store, clock, log }, 'configmaps', (present, previous) => {
    if (!isSaved || keyText((present ?? previous)?.metadata ?? {}) !== keyText(checkpointWindowKey)) return
    if (!isOpenIn(present)) closed(endedByAdministrator)
    // Deleted, or not understood: the next start must not take this store for one that has not accepted any yet.
    if (stateIn(present) === undefined) {
      saveEnd(endedByAdministrator).catch((error) =>
        log.warn('Cannot save the end of the checkpoint window', { error }),
      )
    }
  })
  const closeIfDue = async (signal: AbortSignal) => {
    const reason = reasonToClose(state, (await store.list('nodes')).items, limitMs)
    if (reason === undefined) return
    await close(reason, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }
  const watchTime = async (signal: AbortSignal) => {
    let lastMs = clock.monotonicMs()
    // Saved at the first look, too: of a controller that is restarted often the time counts. While workloads may wait it is saved
    // at each look: they wait for ten minutes, and not for ten minutes of one run.
    let savedMs = Number.NEGATIVE_INFINITY
    let isFailing = !isSaved
    while (!signal.aborted && state.isOpen) {
      await clock.sleep(lookMs, signal)
      if (signal.aborted || !state.isOpen) continue
      const nowMs = clock.monotonicMs()
      state = { ...state, openMs: state.openMs + nowMs - lastMs }
      lastMs = nowMs
      await closeIfDue(signal)
      const isDue = nowMs - savedMs >= saveEveryMs || state.openMs <= leastOpenMs + lookMs
      if (!state.isOpen || !isDue) continue
      isFailing = !(await hasSaved(saveTime, isFailing, log))
      if (!isFailing) savedMs = nowMs
    }
    return aborted(signal)
  }
  return {
    name: 'checkpoint-window',
    isOpen: () => state.isOpen,
    progress: () => state,
    onClose: (notify) => void listeners.push(notify),
    async run(signal) {
      if (!origin.acceptsCheckpoints) return aborted(signal)
      const watching = { name: 'checkpoint-window-time', run: watchTime }
      await runLoops([{ name: 'checkpoint-window-state', run: maps.run }, watching], signal, log)
    },
  }
}

/** False: the time is not saved yet. `isFailing`: that is logged already. */
async function hasSaved(saveTime: () => Promise<void>, isFailing: boolean, log: Log): Promise<boolean> {
  try {
    await saveTime()
    return true
  } catch (error) {
    if (!isFailing) log.warn('The time of the checkpoint window is not saved yet', { retryInMs: lookMs, error })
    return false
  }
}

/** One Event for each of the first hundred nodes. An Event that cannot be written is logged. */
async function recordMissed({ events, log }: CheckpointWindowNeeds, late: readonly string[], why: string) {
  if (late.length > 0) log.warn('Nodes sent no checkpoint after the restore', { count: late.length })
  for (const name of late.slice(0, mostEvents)) {
    const message = `Checkpoints are no longer accepted after the restore (${why}). When this node connects, its pods that are not in the backup are removed`
    const what = { type: 'Warning', reason: 'CheckpointMissed', message, component: 'bramble-controller' } as const
    await events
      .record({ object: nodeReference(name), ...what })
      .catch((error: unknown) => log.warn('Event not recorded', { node: name, reason: what.reason, error }))
  }
}

/** Does the store with this origin and this ConfigMap of the window (undefined: it has none) accept checkpoints, or will it? */
export function acceptsNow({ id, acceptsCheckpoints }: StoreOrigin, map: ConfigMap | undefined): boolean {
  if (!acceptsCheckpoints) return false
  const known = stateIn(map)
  return known?.store === id ? known.isOpen : true
}

function closedState({ id }: StoreOrigin): State {
  return { store: id, isOpen: false, openMs: 0, nodes: [] }
}

/** The saved state, or an open window for a new store. `isSaved`: the store had room for it. */
async function firstState(
  { store, clock, log }: CheckpointWindowNeeds,
  origin: StoreOrigin,
  limitMs: number,
): Promise<{ readonly state: State; readonly isSaved: boolean }> {
  const known = stateIn(await store.get('configmaps', checkpointWindowKey))
  if (known?.store === origin.id) return { state: known, isSaved: true }
  const { items } = await store.list('nodes')
  // An earlier version accepted checkpoints without end and kept no state.
  const isEarlier = items.some(({ metadata }) => metadata.annotations?.[learntByAnnotation] === origin.id)
  const openMs = isEarlier ? clock.wallMs() - (origin.sinceMs ?? Number.NEGATIVE_INFINITY) : 0
  const nodes = items.map(({ metadata }) => metadata.name)
  // Within what can be saved: the age of a store that did not record its beginning is infinite.
  const savedMs = Math.min(Math.max(0, openMs), limitMs)
  const state: State = { store: origin.id, isOpen: openMs < limitMs, openMs: savedMs, nodes }
  try {
    await saveFirst(store, state)
    return { state, isSaved: true }
  } catch (error) {
    // A backup may be larger than the store may be: without the API no space could be freed.
    if (!isWithoutRoom(error)) throw error
    log.warn('The time of the checkpoint window is not saved yet', { retryInMs: lookMs, error })
    return { state, isSaved: false }
  }
}

/** In place of what an earlier store saved. */
async function saveFirst(store: Store, state: State): Promise<void> {
  const present = await store.get('configmaps', checkpointWindowKey)
  const wanted = withState(present ?? emptyMap, state, undefined, '')
  if (present === undefined) await store.create('configmaps', wanted)
  else await store.update('configmaps', wanted)
}

function stateIn(map: ConfigMap | undefined): State | undefined {
  const { store = '', state = '', openSeconds = '', nodes = '' } = map?.data ?? {}
  const openMs = Number(openSeconds) * 1000
  if (store === '' || !Number.isFinite(openMs)) return undefined
  return { store, isOpen: state === 'open', openMs, nodes: nodes.split('\n').filter((name) => name !== '') }
}

function withState(map: ConfigMap, state: State, reason: string | undefined, now: string): ConfigMap {
  const data = {
    store: state.store,
    state: state.isOpen ? 'open' : 'closed',
    openSeconds: String(Math.round(state.openMs / 1000)),
    nodes: state.nodes.join('\n'),
    ...(reason !== undefined && { closedBecause: `${reason}, ${now}` }),
  }
  return { ...map, data: { ...(state.isOpen ? {} : map.data), ...data } }
}
