/**
 * Was the machine started since we last ran, do its boots last, and does one pod break them off? One small file, written
 * twice a boot: at the first start of the agent and once the boot has lasted. After a boot that broke off it is written
 * for each pod that is started, for a suspect as it goes on, and once it has done no harm, until a boot lasts. It names
 * boots and no dates: the clock may have been wrong in any of them.
 */
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import type { Log } from '../../../daemon/log.ts'
import { type BootNote, type BootVerdict, bootLastsMs, harmMs, judgeBoots, ranMarks } from '../../health/boot-loop.ts'
import { heldMessage, heldMs, holdAnnotation, isExempt, trialMessage } from '../../health/boot-loop-hold.ts'
import { pathOf } from '../../pods/desired-pods.ts'
import type { Hold, StartGate } from '../../pods/start-gate.ts'
import { bootFilePath, bootFileText, type HeldPod, readBootFile } from './boot-file.ts'

export interface BootRecord {
  /** Another boot is on record. */
  readonly rebooted: boolean
  /** How many boots before this one did not last, in a row. */
  readonly shortBoots: number
  /**
   * Called every few seconds while this boot goes on. Put on record are that it has lasted, how long a suspect ran, that it
   * did no harm, and who need not be held back any more. A card that takes no writes is no reason to fail.
   */
  goesOn(uptimeMs: number): Promise<void>
  /** The agent is stopped in order: what comes is no power cut. */
  ends(): Promise<void>
  /** Holds back a pod that takes the machine down. */
  startGate(needs: StartGateNeeds): StartGate
}

export type StartGateNeeds = {
  readonly clock: Clock
  /** Of the machine: a pod is held for so long of a boot, whenever the agent was started. */
  readonly uptimeMs: () => number
  readonly log: Log
}

const kept = 8
const clearedMs = 10 * 60_000

export async function openBootRecord(dataDirectory: string, bootID: string): Promise<BootRecord> {
  const path = bootFilePath(dataDirectory)
  const file = await readBootFile(path)
  const isKnown = bootID === '' || file.boots[0]?.bootID === bootID
  const earlier = isKnown ? file.boots.slice(1) : file.boots
  const verdict = judgeBoots(earlier, new Set(file.held.map(({ uid }) => uid)))
  const state: State = {
    current: (isKnown ? file.boots[0] : undefined) ?? { bootID },
    held: file.held,
  }
  let written: Promise<void> = Promise.resolve()
  /** One after the other: several pods start at once. */
  const write = () => {
    written = written.then(async () => {
      if (bootID === '') return
      const boots = [state.current, ...earlier].slice(0, kept)
      await replaceFile(path, bootFileText({ boots, held: state.held.slice(-kept) })).catch(() => undefined)
    })
    return written
  }
  if (!isKnown) {
    const { guilty, trial } = verdict
    if (guilty !== undefined) state.held = [...state.held, { uid: guilty, pod: guilty }]
    if (trial !== undefined) state.current = { ...state.current, trial: trial.uid }
    await write()
  } else if (state.current.ended) {
    const { ended: _, ...goesOn } = state.current
    state.current = goesOn
    await write()
  }
  let lookAtPods = async (): Promise<void> => undefined
  const firstLasting = earlier.findIndex(({ lasted }) => lasted)

  return {
    rebooted: !isKnown && file.boots.length > 0,
    shortBoots: firstLasting === -1 ? earlier.length : firstLasting,
    async goesOn(uptimeMs) {
      await lookAtPods()
      if (uptimeMs < bootLastsMs || state.current.lasted || bootID === '') return
      state.current = { bootID, lasted: true }
      await write()
    },
    async ends() {
      if (state.current.lasted || state.current.ended || bootID === '') return
      state.current = { ...state.current, ended: true }
      await write()
    },
    startGate(needs) {
      const { gate, look } = startGate(needs, { state, verdict, write })
      lookAtPods = look
      return gate
    },
  }
}

/** What is on record, as it shall be written next. */
type State = { current: BootNote; held: readonly HeldPod[] }

type OpenRecord = { readonly state: State; readonly verdict: BootVerdict; readonly write: () => Promise<void> }

/** `look`: to be called every few seconds. */
function startGate({ clock, uptimeMs, log }: StartGateNeeds, { state, verdict, write }: OpenRecord) {
  const bornMs = clock.monotonicMs()
  const logged = new Set<string>()
  /** Of those that matter only: pods come and go for years. */
  const startedMs = new Map<string, number>()
  let waitUntilMs: number | undefined
  // An agent before us in this boot started it, no later than now.
  if (state.current.trial !== undefined && state.current.began) startedMs.set(state.current.trial, bornMs)

  const ranMs = (uid: string) => clock.monotonicMs() - (startedMs.get(uid) ?? Number.POSITIVE_INFINITY)
  const heldPod = (uid: string) => state.held.find((one) => one.uid === uid)
  const forget = (some: readonly HeldPod[]) => {
    state.held = state.held.filter((one) => !some.includes(one))
    return write()
  }

  const holdUntil = (pod: Pod, untilMs: number, message: string): Hold | undefined => {
    const againInMs = untilMs - clock.monotonicMs()
    if (againInMs <= 0) return undefined
    const uid = pod.metadata.uid ?? ''
    const isNews = !logged.has(uid)
    logged.add(uid)
    if (isNews) log.warn('Pod waits, for the machine went down soon after its start', { pod: pathOf(pod), message })
    return { reason: 'BootLoop', message, againInMs, isNews }
  }

  const holdBack = (pod: Pod, found: HeldPod): Hold | undefined => {
    if (isExempt(pod)) {
      log.info('Pod that took the machine down is released', { pod: pathOf(pod), by: holdAnnotation })
      void forget([found])
      return undefined
    }
    if (found.pod !== pathOf(pod)) {
      state.held = state.held.map((one) => (one === found ? { ...one, pod: pathOf(pod) } : one))
      void write()
    }
    const leftMs = heldMs - uptimeMs()
    return holdUntil(pod, clock.monotonicMs() + leftMs, heldMessage(pathOf(pod), clock.wallMs() + leftMs))
  }

  const lookAtSuspect = async () => {
    const { trial, began, controlled: _controlled, ran = 0, ...rest } = state.current
    if (trial === undefined || !began) return
    if (ranMs(trial) >= harmMs) {
      state.current = { ...rest, trial }
      await write()
      return
    }
    const mark = ranMarks.findLast((seconds) => ranMs(trial) >= seconds * 1000) ?? 0
    if (mark <= ran) return
    state.current = { ...state.current, ran: mark }
    await write()
  }

  const gate: StartGate = {
    hold(pod) {
      const uid = pod.metadata.uid ?? ''
      if (startedMs.has(uid)) return undefined
      const found = heldPod(uid)
      if (found !== undefined) return holdBack(pod, found)
      const { trial, began, lasted } = state.current
      if (trial !== uid || began || lasted || verdict.trial === undefined || isExempt(pod)) return undefined
      const { waitMs } = verdict.trial
      waitUntilMs ??= clock.monotonicMs() + waitMs
      return holdUntil(pod, waitUntilMs, trialMessage(verdict.brokenOff, waitMs))
    },
    async starting(pod) {
      const uid = pod.metadata.uid ?? ''
      const isHeld = heldPod(uid) !== undefined
      const isWatched = verdict.watch && !state.current.lasted && !verdict.acquitted.has(uid) && !isExempt(pod)
      if (startedMs.has(uid) || (!isHeld && !isWatched)) return
      startedMs.set(uid, clock.monotonicMs())
      if (isHeld) return
      const isTrial = state.current.trial === uid
      const controlled = isTrial && verdict.trial?.controlled ? { controlled: true } : {}
      state.current = { ...state.current, ...(isTrial ? { began: true, ...controlled } : { last: uid }) }
      await write()
    },
    wanted(podUIDs) {
      const gone = state.held.filter(({ uid }) => !podUIDs.has(uid))
      if (gone.length === 0) return
      log.info('Pods that were held back are deleted', { pods: gone.map(({ pod }) => pod) })
      void forget(gone)
    },
  }

  const look = async () => {
    await lookAtSuspect()
    const harmless = state.held.filter(({ uid }) => ranMs(uid) >= clearedMs)
    if (harmless.length === 0) return
    await forget(harmless)
    log.info('Pods that were held back do no harm any more', { pods: harmless.map(({ pod }) => pod) })
  }

  return { gate, look }
}
