/** Syncs one pod: observes, plans and acts, until the plan is empty (SyncPod in pkg/kubelet/kubelet.go). */
import { isDeepStrictEqual } from 'node:util'
import { comesBack } from '../../../api/node/node-shutdown.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { PodIsolation } from '../admission/pod-isolation.ts'
import type { StartDelay, StartGate } from '../admission/start-gate.ts'
import type { OptionSources } from '../containers/container-start.ts'
import type { ExecuteStep } from '../containers/step-executors.ts'
import { readTerminationMessages } from '../containers/termination-message-reader.ts'
import type { ImageFacts } from '../images/image-decision.ts'
import type { PodImages } from '../images/pod-images.ts'
import { planEnding, planPod, planRemoval } from '../plan/pod-plan.ts'
import type { PodPlan, PodStep } from '../plan/pod-steps.ts'
import type { Prober } from '../probes/prober.ts'
import { endMessages, withEnds } from '../record/container-ends.ts'
import { withFailed } from '../record/ended-with-sandbox.ts'
import { containersOf, exitCodeOf, hasEnded, isRunning } from '../record/pod-containers.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { isFinal } from '../record/pod-phase.ts'
import {
  isLeaving,
  isOver,
  newRecord,
  onActiveSince,
  onCleared,
  onEnded,
  onEndsObserved,
  onObserved,
  onProbed,
  onStatusReset,
  onVolumesWritten,
  onWaitingRecorded,
  type PodRecord,
  vitalsOf,
  withoutImages,
} from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { restartPolicyOf } from '../record/restarts.ts'
import { elapsedMs, type TrustedTime } from '../record/trusted-time.ts'
import type { ContainerRuntime, RuntimeContainer } from '../runtime/runtime.ts'
import { begunAgain, endedStatus } from '../status/pod-endings.ts'
import { podStatus } from '../status/pod-status.ts'
import type { PodStatusManager } from '../status/pod-status-manager.ts'
import { waitingEvents } from '../status/waiting-events.ts'
import { refreshFiles } from '../volumes/container-mounts.ts'
import type { TokenManager } from '../volumes/token-manager.ts'
import type { VolumeStore } from '../volumes/volume-store.ts'
import { podPath } from '../wanted/desired-pods.ts'
import type { PodAddresses } from '../wanted/pod-addresses.ts'
import type { WantedPods } from '../wanted/pod-config.ts'
import { foundPod, networkSandbox } from './found-pod.ts'
import type { PodLogLinks } from './log-links.ts'
import type { PodUpdates } from './pod-updates.ts'
import type { Sync } from './pod-workers.ts'
import { withShownErrors } from './shown-errors.ts'

export type SyncPodNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'listContainers' | 'logTail'>
  readonly volumes: VolumeStore
  readonly records: PodRecords
  readonly statuses: PodStatusManager
  readonly images: Pick<PodImages, 'factsOf'>
  readonly execute: ExecuteStep
  readonly sources: () => OptionSources
  readonly tokens: Pick<TokenManager, 'of' | 'forget'>
  readonly prober: Pick<Prober, 'observe' | 'forget' | 'vitals' | 'unknownForMs'>
  readonly wanted: WantedPods
  readonly updates: Pick<PodUpdates, 'podEnded'>
  readonly hostIP: () => string | undefined
  /** Address of the other IP family. */
  readonly otherHostIP?: (() => string | undefined) | undefined
  readonly gate: StartGate
  readonly isolation: Pick<PodIsolation, 'observe' | 'hold'>
  readonly addresses: Pick<PodAddresses, 'observe'>
  readonly logLinks?: Pick<PodLogLinks, 'observe'>
  /** What the checkpoint has changed. */
  readonly save: () => void
  /** Resolves when the checkpoint has what changed before. */
  readonly saved: () => Promise<void>
  readonly date: TrustedTime
  readonly keptDead: number
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  readonly clock: Clock
  readonly log: Log
}

/** Rounds of observation and plan in one sync: more than any pod needs. */
const maxRounds = 12
/** A pod that does not settle is synced again after this time. */
const unsettledMs = 30_000

/** While the date is unknown a deadline is checked this often. */
const undatedMs = 60_000

/** The sync of a pod worker. Skips pods that a source that was not read yet may desire. */
export function syncPod(needs: SyncPodNeeds): Sync {
  const { records, wanted } = needs
  return async (uid, signal) =>
    records.isComplete && wanted.isDecided(uid) ? await syncDecided(uid, needs, signal) : undefined
}

async function syncDecided(uid: string, needs: SyncPodNeeds, signal: AbortSignal): Promise<number | undefined> {
  const { runtime, records, clock, log } = needs
  records.of(uid)
  records.update(uid, withoutImages)
  for (let round = 0; round < maxRounds && !signal.aborted; round++) {
    const present = await runtime.listContainers(uid)
    await needs.logLinks?.observe(uid, present)
    const pod = needs.wanted.all.get(uid)
    const listed = withShownErrors(pod, present, needs.sources)
    if (listed.length === 0 && (pod === undefined || isLeaving(pod))) {
      needs.prober.forget(uid)
      needs.tokens.forget(uid)
      needs.isolation.observe(uid, undefined)
      await needs.volumes.remove(uid, signal)
      needs.statuses.reportGone(uid, pod !== undefined)
      needs.updates.podEnded()
      return undefined
    }
    const moment = { nowMs: clock.monotonicMs(), nowWallMs: clock.wallMs() }
    const known = records.update(uid, (record) => onObserved(record, pod, listed, moment)) ?? records.of(uid)
    observeAddress(uid, pod, known, listed, needs)
    const cut = pod === undefined || isOver(pod, known) ? [] : cutShort(pod, known, listed)
    if (cut.length > 0) {
      for (const target of cut) await needs.execute(uid, pod, { step: 'remove', target })
      const names = cut.map(({ identity }) => identity.containerName)
      records.update(uid, (record) => onStatusReset(record, begunAgain(record.status ?? {}, names), names))
      needs.save()
      continue
    }
    const containers = withFailed(listed, known.endedWithSandbox)
    observeProbes(uid, pod, containers, needs)
    if (pod !== undefined) await readTerminationMessages(needs, pod, containers)
    const unknownMs = needs.prober.unknownForMs(uid)
    const runs = containers.some(isRunning)
    if (round === 0 && runs && pod !== undefined && !isOver(pod, known)) await refreshVolumes(uid, pod, needs)
    // A decision ended the pod during the reads, or was cancelled: the values above are outdated.
    if (records.of(uid).ended !== known.ended) continue
    const hold = pod === undefined || runs || isLeaving(pod) || isOver(pod, known) ? undefined : needs.gate.hold(pod)
    if (pod !== undefined && hold?.isNew) {
      needs.recordEvent(pod, { type: 'Warning', reason: hold.reason, message: hold.message })
    }
    const plan =
      hold && pod
        ? heldPlan(pod, hold)
        : await isolatedPlan(uid, planFor(pod, records.of(uid), containers, needs), needs)
    if (pod !== undefined) {
      recordWaiting(uid, pod, plan, needs)
      if (unknownMs === 0) reportStatus(uid, pod, containers, plan, needs)
    }
    const leftMs = pod === undefined ? undefined : leftToLive(uid, pod, needs, runs)
    if (pod !== undefined && leftMs !== undefined && leftMs <= 0) {
      endForDeadline(uid, pod, needs)
      continue
    }
    if (plan.steps.length === 0) {
      // A pod that has ended does not need its volumes, and those in memory use memory.
      if (!runs && pod !== undefined && isOver(pod, known)) {
        if (!comesBack(pod, known.ended)) {
          needs.tokens.forget(uid)
          await needs.volumes.remove(uid, signal)
        } else if (!known.cleared) {
          // A mount of a network file system that remains would be one more that the machine waits for when it stops.
          await needs.volumes.unmountParts(uid)
        }
        records.update(uid, onCleared)
      }
      return earliest(plan.againInMs, leftMs, unknownMs || undefined)
    }
    if (pod !== undefined && plan.steps.some(({ step }) => step === 'startContainer')) await needs.gate.starting(pod)
    // With a sandbox that has stopped, a later agent could not distinguish completed containers from those that the engine stopped.
    if (plan.steps.some(stopsSandbox)) await needs.saved()
    for (const step of plan.steps) {
      if (!signal.aborted) await needs.execute(uid, pod ?? known.pod, step)
    }
  }
  if (!signal.aborted) log.warn('Pod does not settle', { podUID: uid, rounds: maxRounds })
  return unsettledMs
}

function stopsSandbox(step: PodStep): boolean {
  return step.step === 'stop' && step.target.identity.kind === 'sandbox'
}

/**
 * Containers that a shutdown of the machine stopped exited with 0 although their work is not done: they run again. Failed
 * containers, and those that are restarted in any case, are not affected.
 */
function cutShort(
  { spec }: Pod,
  { interruptedAt }: PodRecord,
  containers: readonly RuntimeContainer[],
): readonly RuntimeContainer[] {
  if (interruptedAt === undefined || restartPolicyOf(spec.restartPolicy) !== 'OnFailure') return []
  const sinceMs = Date.parse(interruptedAt)
  return containers.filter(
    (one) =>
      one.identity.kind === 'container' &&
      hasEnded(one) &&
      exitCodeOf(one) === 0 &&
      // `interruptedAt` is in whole seconds: the container may have started within that second.
      Date.parse(one.startedAt ?? one.createdAt) < sinceMs + 1_000 &&
      Date.parse(one.finishedAt ?? one.createdAt) >= sinceMs,
  )
}

function heldPlan(pod: Pod, { reason, message, againInMs }: StartDelay): PodPlan {
  return { steps: [], waiting: new Map(containersOf(pod).map(({ name }) => [name, { reason, message }])), againInMs }
}

/** No container starts before the rules of the pod's address are there. */
async function isolatedPlan(uid: string, plan: PodPlan, { isolation, sources }: SyncPodNeeds): Promise<PodPlan> {
  const starting = plan.steps.flatMap((step) => (step.step === 'startContainer' ? [step.container.name] : []))
  if (starting.length === 0) return plan
  const hold = await isolation.hold(uid, { isRouted: sources().clusterDomain !== undefined })
  if (hold === undefined) return plan
  const { reason, message, againInMs } = hold
  return {
    steps: plan.steps.filter(({ step }) => step !== 'startContainer'),
    waiting: new Map([...plan.waiting, ...starting.map((name) => [name, { reason, message }] as const)]),
    againInMs: earliest(plan.againInMs, againInMs),
  }
}

function observeAddress(
  uid: string,
  pod: Pod | undefined,
  { podIP: ip, podIPv6: ipv6, pod: last, path }: PodRecord,
  containers: readonly RuntimeContainer[],
  needs: SyncPodNeeds,
): void {
  const known = pod ?? last
  const named = { pod: known, path: known ? podPath(known) : (path ?? '') }
  needs.isolation.observe(uid, foundPod(named, { ip, ipv6, sandbox: networkSandbox(containers) }))
  const isRouted = needs.sources().clusterDomain !== undefined
  if (isRouted && needs.addresses.observe(uid, { ip, ipv6 })) needs.save()
}

function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.flatMap((time) => time ?? [])
  return known.length === 0 ? undefined : Math.min(...known)
}

/**
 * Time until its deadline, on the monotonic clock: from its first container, or from dates where it started before this agent. It
 * did not start before it was created, whatever the clock showed.
 */
function leftToLive(uid: string, pod: Pod, needs: SyncPodNeeds, runs: boolean): number | undefined {
  const { records, clock } = needs
  const { activeDeadlineSeconds } = pod.spec
  const known = records.of(uid)
  const startTime = known.status?.startTime
  if (activeDeadlineSeconds === undefined || startTime === undefined || isOver(pod, known) || isLeaving(pod)) {
    return undefined
  }
  const nowMs = clock.monotonicMs()
  const { creationTimestamp = '' } = pod.metadata
  const sinceTime = [startTime, creationTimestamp].sort().at(-1) ?? startTime
  const agoMs = elapsedMs(sinceTime, needs.date, runs)
  // Until the date is known the time counts from the first observation.
  const activeSinceMs = known.activeSinceMs ?? nowMs - (agoMs ?? 0)
  if (known.activeSinceMs === undefined || (known.dateUnknown && agoMs !== undefined)) {
    records.update(uid, (record) => onActiveSince(record, nowMs - (agoMs ?? 0), agoMs === undefined))
  }
  const leftMs = activeSinceMs + activeDeadlineSeconds * 1000 - nowMs
  return agoMs === undefined ? Math.min(leftMs, undatedMs) : leftMs
}

function endForDeadline(uid: string, pod: Pod, { records, recordEvent, updates }: SyncPodNeeds): void {
  const reason = 'DeadlineExceeded'
  const message = 'Pod was active on the node longer than the specified deadline'
  recordEvent(pod, { type: 'Normal', reason, message })
  records.update(uid, (record) => onEnded(record, { ...record.status, phase: 'Failed', reason, message }))
  updates.podEnded()
}

function observeProbes(
  uid: string,
  pod: Pod | undefined,
  containers: readonly RuntimeContainer[],
  { prober, records, hostIP }: SyncPodNeeds,
): void {
  if (pod === undefined || isOver(pod, records.of(uid))) {
    prober.forget(uid)
    records.update(uid, (record) => onProbed(record, newRecord.probes))
    return
  }
  const ownIP = containers.find(({ ip }) => ip !== undefined)?.ip
  const podIP = pod.spec.hostNetwork ? hostIP() : ownIP
  prober.observe(uid, { pod, containers, podIP, leaving: isLeaving(pod) })
  records.update(uid, (record) => onProbed(record, prober.vitals(uid)))
}

/** Writes the files of its volumes again if the pod, its ConfigMaps, Secrets or tokens changed. */
async function refreshVolumes(uid: string, pod: Pod, needs: SyncPodNeeds): Promise<void> {
  const sources = needs.sources()
  const tokens = await needs.tokens.of(pod)
  const from = [pod, sources.configMaps, sources.secrets, tokens]
  if (from.every((value, index) => value === needs.records.get(uid)?.volumesFrom[index])) return
  try {
    await refreshFiles(pod, { ...sources, podIP: undefined, tokens }, needs.volumes)
    needs.records.update(uid, (record) => onVolumesWritten(record, from))
  } catch (error) {
    needs.log.warn('Cannot update the files of a volume', { pod: podPath(pod), error })
  }
}

function recordWaiting(uid: string, pod: Pod, plan: PodPlan, { records, recordEvent }: SyncPodNeeds): void {
  const { events, recorded } = waitingEvents(pod, plan, records.of(uid).waitingRecorded)
  if (events.length === 0) return
  records.update(uid, (record) => onWaitingRecorded(record, recorded))
  for (const one of events) recordEvent(pod, one)
}

function planFor(
  pod: Pod | undefined,
  known: PodRecord,
  containers: readonly RuntimeContainer[],
  needs: Pick<SyncPodNeeds, 'images' | 'clock' | 'keptDead' | 'wanted'>,
): PodPlan {
  const { graceSeconds } = known
  const images = pod === undefined ? new Map<string, ImageFacts>() : needs.images.factsOf(pod, known)
  const facts = {
    mayBeOld: !needs.wanted.isWhole,
    containers,
    images,
    record: known,
    nowMs: needs.clock.monotonicMs(),
    keptDead: needs.keptDead,
  }
  // The node had no room for the evicted pod: its data on the disk is removed too.
  const isEvicted = pod !== undefined && isOver(pod, known) && (known.ended ?? pod.status)?.reason === 'Evicted'
  if (pod === undefined || isLeaving(pod) || isEvicted) return planRemoval(pod ?? known.pod, facts, graceSeconds)
  return isOver(pod, known) ? planEnding(pod, facts, graceSeconds) : planPod(pod, facts)
}

function reportStatus(
  uid: string,
  pod: Pod,
  containers: readonly RuntimeContainer[],
  { waiting }: PodPlan,
  { records, statuses, sources, hostIP, otherHostIP, clock, date, updates, save }: SyncPodNeeds,
): void {
  const known = records.of(uid)
  const over = isOver(pod, known)
  if (over && containers.length === 0) {
    // Without containers the decision's status is final. A status that the control plane has set is not reported back.
    if (known.ended !== undefined) statuses.report(uid, pod, known.ended)
    return
  }
  const last = known.ended ?? known.status ?? (over ? pod.status : undefined)
  const found = podStatus(pod, {
    containers: withEnds(pod, known.ends, containers),
    waiting,
    vitals: vitalsOf(known),
    messages: new Map([...endMessages(known.ends), ...known.terminationMessages]),
    last,
    hostIP: hostIP(),
    otherHostIP: otherHostIP?.(),
    isOffNetwork: sources().isOffNetwork,
    nowWallMs: date.nowMs() ?? clock.wallMs(),
  })
  const status = over ? endedStatus(found, last ?? {}) : found
  statuses.report(uid, pod, status)
  if (!isFinal(status.phase)) {
    const isGoing = over || isLeaving(pod)
    const { ends } = known
    if (!isGoing && records.update(uid, (record) => onEndsObserved(record, pod, containers))?.ends !== ends) save()
    return
  }
  if (isDeepStrictEqual(status, known.ended)) return
  records.update(uid, (record) => onEnded(record, status))
  updates.podEnded()
}
