/**
 * Keeps the record of boots on disk, and holds back a pod that takes the machine down. The file is written twice a boot: at the
 * first start of the agent and once the boot has lasted. After a boot that broke off it is also written for each pod that is
 * started, for a suspect while it runs, and once the suspect has run long enough to count as harmless, until a boot lasts.
 */
import type { Pod } from '../../api/pod.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { StartDelay, StartGate } from '../pods/admission/start-gate.ts'
import { heldMessage, heldMs, holdAnnotation, isExempt, trialMessage } from './boot-loop-hold.ts'
import {
  afterRelease,
  afterRunning,
  afterStart,
  afterStop,
  afterUptime,
  type BootHistory,
  type BootState,
  bootHold,
  deletedPods,
  type HeldPod,
  harmlessPods,
  historyOf,
  isWatched,
  openedBoot,
  shortBoots,
  withName,
} from './boot-state.ts'

/** The disk operations of the record. */
export interface BootFile {
  /** Empty where the file does not exist or cannot be read. */
  read(): Promise<BootHistory>
  save(history: BootHistory): Promise<void>
}

export interface BootRecord {
  /** The record has another boot than this one. */
  readonly rebooted: boolean
  /** How many boots before this one did not last, in a row. */
  readonly shortBoots: number
  /**
   * Called every few seconds while this boot lasts. Saves that it has lasted, how long a suspect ran, that it was harmless, and
   * which pods are released. A write error is not a failure.
   */
  update(uptimeMs: number): Promise<void>
  /** Records that the agent is stopped in an orderly way: the end of this boot is then not a crash. */
  stop(): Promise<void>
  /** Holds back a pod that takes the machine down. */
  startGate(needs: StartGateNeeds): StartGate
}

export type StartGateNeeds = {
  readonly clock: Clock
  /** Uptime of the machine: the hold of a pod counts from the boot, not from the start of the agent. */
  readonly uptimeMs: () => number
  readonly log: Log
}

/** `bootID`: '' where the kernel has none; nothing is saved then. */
export async function openBootRecord(file: BootFile, bootID: string): Promise<BootRecord> {
  const opened = openedBoot(await file.read(), bootID)
  const cell = stateCell(file, opened.state, bootID !== '')
  if (opened.isChanged) await cell.save()
  let updatePods = async (): Promise<void> => undefined

  return {
    rebooted: opened.rebooted,
    shortBoots: shortBoots(opened.state),
    async update(uptimeMs) {
      await updatePods()
      if (bootID !== '') await cell.set(afterUptime(cell.get(), uptimeMs))
    },
    async stop() {
      if (bootID !== '') await cell.set(afterStop(cell.get()))
    },
    startGate(needs) {
      const { gate, update } = startGate(needs, cell)
      updatePods = update
      return gate
    },
  }
}

type StateCell = {
  get(): BootState
  /** Resolves when a changed state is saved, or could not be saved. */
  set(next: BootState): Promise<void>
  save(): Promise<void>
}

function stateCell(file: BootFile, first: BootState, isSaved: boolean): StateCell {
  let state = first
  let onDisk: BootState | undefined
  let saved: Promise<void> = Promise.resolve()
  /** Saves run one after the other. Several pods start at once, and one write then holds all changes. */
  const save = () => {
    saved = saved.then(async () => {
      const newest = state
      if (!isSaved || newest === onDisk) return
      const isDone = await file.save(historyOf(newest)).then(
        () => true,
        () => false,
      )
      if (isDone) onDisk = newest
    })
    return saved
  }
  return {
    get: () => state,
    async set(next) {
      if (next === state) return
      state = next
      await save()
    },
    save,
  }
}

/** `update` must be called every few seconds. */
function startGate({ clock, uptimeMs, log }: StartGateNeeds, cell: StateCell) {
  const logged = new Set<string>()
  /** Only pods that are watched, so that the map does not grow with the age of the node. */
  const startedMs = new Map<string, number>()
  let waitUntilMs: number | undefined
  const { trial, began } = cell.get().current
  // An earlier agent started the pod in this boot, at the latest now.
  if (trial !== undefined && began) startedMs.set(trial, clock.monotonicMs())

  const ranMs = (uid: string) => clock.monotonicMs() - (startedMs.get(uid) ?? Number.POSITIVE_INFINITY)

  const holdUntil = (pod: Pod, untilMs: number, message: string): StartDelay | undefined => {
    const againInMs = untilMs - clock.monotonicMs()
    if (againInMs <= 0) return undefined
    const uid = pod.metadata.uid ?? ''
    const isNew = !logged.has(uid)
    logged.add(uid)
    if (isNew) log.warn('Pod held back: the machine went down soon after its start', { pod: nameOf(pod), why: message })
    return { reason: 'BootLoop', message, againInMs, isNew }
  }

  const holdBack = (pod: Pod, held: HeldPod): StartDelay | undefined => {
    if (isExempt(pod)) {
      log.info('Pod that took the machine down is released', { pod: nameOf(pod), by: holdAnnotation })
      void cell.set(afterRelease(cell.get(), [held]))
      return undefined
    }
    void cell.set(withName(cell.get(), held, nameOf(pod)))
    const leftMs = heldMs - uptimeMs()
    return holdUntil(pod, clock.monotonicMs() + leftMs, heldMessage(nameOf(pod), clock.wallMs() + leftMs))
  }

  const gate: StartGate = {
    hold(pod) {
      const uid = pod.metadata.uid ?? ''
      if (startedMs.has(uid)) return undefined
      const state = cell.get()
      const hold = bootHold(state, uid, isExempt(pod))
      if (hold === undefined) return undefined
      if (hold.kind === 'held') return holdBack(pod, hold.held)
      waitUntilMs ??= clock.monotonicMs() + hold.waitMs
      return holdUntil(pod, waitUntilMs, trialMessage(state.verdict.brokenOff, hold.waitMs))
    },
    async starting(pod) {
      const uid = pod.metadata.uid ?? ''
      const state = cell.get()
      if (startedMs.has(uid) || !isWatched(state, uid, isExempt(pod))) return
      startedMs.set(uid, clock.monotonicMs())
      await cell.set(afterStart(state, uid))
    },
    wanted(podUIDs) {
      const deleted = deletedPods(cell.get(), podUIDs)
      if (deleted.length === 0) return
      log.info('Pods that were held back are deleted', { pods: deleted.map(({ pod }) => pod) })
      void cell.set(afterRelease(cell.get(), deleted))
    },
  }

  const update = async () => {
    await cell.set(afterRunning(cell.get(), ranMs))
    const harmless = harmlessPods(cell.get(), ranMs)
    if (harmless.length === 0) return
    await cell.set(afterRelease(cell.get(), harmless))
    log.info('Pods that were held back no longer take the machine down', { pods: harmless.map(({ pod }) => pod) })
  }

  return { gate, update }
}

function nameOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name ?? ''}`
}
