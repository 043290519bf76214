/**
 * Takes in what is desired of this node: from the checkpoint, the controller and the static pod files. Admits new pods and
 * syncs those that changed (syncLoopIteration in pkg/kubelet/kubelet.go).
 */
import type { Desired } from '../../../api/desired.ts'
import { comesBack, shutdownRefusal } from '../../../api/node/node-shutdown.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Log } from '../../../daemon/log.ts'
import type { LastDesired } from '../../node/registration/checkpoint-report.ts'
import type { PodAdmission } from '../admission/pod-admission.ts'
import type { StartGate } from '../admission/start-gate.ts'
import { notUnderstood, type PodEvent } from '../record/pod-events.ts'
import { isLeaving, onDesiredChanged, onEndRestored, onEndsRestored, onResumed } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import type { MirrorReporter } from '../static/mirror-reports.ts'
import type { PodStatusManager } from '../status/pod-status-manager.ts'
import { changedPods, isNewer, isSame, mirrorsIn, withKnown } from '../wanted/desired-pods.ts'
import type { PodAddresses } from '../wanted/pod-addresses.ts'
import type { CheckpointData, PodCheckpoint } from '../wanted/pod-checkpoint.ts'
import type { WantedPods } from '../wanted/pod-config.ts'
import type { PodWorkers } from './pod-workers.ts'

export type PodUpdatesNeeds = {
  readonly nodeName: string
  readonly records: PodRecords
  readonly wanted: WantedPods
  readonly addresses: Pick<PodAddresses, 'restore'>
  readonly workers: Pick<PodWorkers, 'add'>
  readonly statuses: Pick<PodStatusManager, 'resendGone'>
  readonly admission: Pick<PodAdmission, 'admitNew'>
  readonly reports: Pick<MirrorReporter, 'setStatic' | 'setMirrors'>
  readonly checkpoint: Pick<PodCheckpoint, 'load'>
  readonly gate: Pick<StartGate, 'wanted'>
  /** The checkpoint's content changed. */
  readonly save: () => void
  /** List the containers of this machine now. */
  readonly relist: () => void
  readonly recordEvent: (pod: Pick<Pod, 'metadata'>, event: PodEvent) => void
  readonly log: Log
}

export interface PodUpdates {
  /** Reads the checkpoint, then applies what the controller sent meanwhile. */
  load(): Promise<void>
  /** Resolves after `load`, with the latest desired state. */
  desired(): Promise<LastDesired | undefined>
  /** A message of the controller. Before `load`, the newest one is kept until then. */
  update(message: Desired): void
  /** The static pods of this machine; undefined: unknown. */
  updateStatic(pods: readonly Pod[] | undefined): void
  /** Admits new pods, then syncs these. */
  dispatch(uids: readonly string[]): void
  /** Syncs all pods. */
  dispatchAll(): void
  /** A pod has ended or is removed: a static pod of its name may start now. */
  podEnded(): void
}

const nothing: readonly never[] = []
const unknownPod = { spec: { containers: nothing } }

export function podUpdates(needs: PodUpdatesNeeds): PodUpdates {
  const { records, wanted, workers, reports, log } = needs
  /** Received before the checkpoint was read. */
  let early: Desired | undefined
  let loaded = false
  let resolveLoaded: () => void = () => undefined
  const loading = new Promise<void>((resolve) => {
    resolveLoaded = resolve
  })

  const dispatch = (uids: Iterable<string>) => {
    if (records.isComplete) needs.admission.admitNew()
    workers.add(wanted.oldestFirst(uids))
  }

  /** The checkpoint has what the controller has published last. */
  const confirm = (received: Desired) => {
    needs.relist()
    wanted.setDesired(withKnown(received, wanted.desired))
    updateGate(needs)
  }

  const update = (received: Desired) => {
    if (wanted.isWhole && !wanted.isConfirmed && isSame(wanted.desired, received)) return confirm(received)
    if (wanted.isWhole && !isNewer(wanted.desired, received)) {
      log.debug('Outdated desired state ignored', { epoch: received.epoch, version: received.version })
      return
    }
    recordUndecodable(needs, received, wanted.desired)
    const message = withKnown(received, wanted.desired)
    // A pod in an old copy of the checkpoint was not changed to that copy's specification.
    const unsure = wanted.isWhole ? nothing : wanted.all.keys()
    const changed = [...changedPods(wanted.desired, message), ...unsure, ...wanted.undecodable]
    // Containers of pods that are not desired can be removed from now on.
    if (!wanted.isConfirmed) needs.relist()
    reports.setMirrors(mirrorsIn(message))
    const turned = wanted.setDesired(message)
    const leaving = [...wanted.all].filter(([, pod]) => isLeaving(pod)).map(([uid]) => uid)
    needs.statuses.resendGone(leaving)
    for (const uid of changed) records.update(uid, onDesiredChanged)
    dispatch([...changed, ...leaving, ...turned])
    needs.save()
    updateGate(needs)
  }

  return {
    async load() {
      const found = await needs.checkpoint.load()
      loaded = true
      if (found !== undefined) restore(needs, found, !found.mayBeOld)
      if (early !== undefined) update(early)
      resolveLoaded()
    },
    async desired() {
      await loading
      const { desired, isWhole, undecodable } = wanted
      return desired && { desired, hasAllPods: isWhole && undecodable.size === 0 }
    },
    update(message) {
      if (loaded) update(message)
      else if (isNewer(early, message)) early = message
    },
    updateStatic(pods) {
      // Containers of static pods without a file can be removed from now on.
      if (wanted.staticPods === undefined) needs.relist()
      const turned = wanted.setStatic(pods)
      reports.setStatic(wanted.staticUIDs)
      dispatch(turned)
      updateGate(needs)
    },
    dispatch,
    dispatchAll: () => dispatch([...wanted.all.keys(), ...records.entries.keys()]),
    podEnded() {
      needs.save()
      const waits = (wanted.staticPods ?? nothing).some(({ metadata }) => !wanted.all.has(metadata.uid ?? ''))
      if (waits) dispatch(wanted.refresh())
    },
  }
}

/**
 * The data for the next start of the agent; undefined while the desired state is incomplete. The rejection of a static pod is not
 * saved, so that the next agent admits it again, because no controller replaces it. A rejection by a shutdown is not saved
 * either.
 */
export function checkpointOf(
  { all, desired, isWhole, staticUIDs }: WantedPods,
  records: Pick<PodRecords, 'endings' | 'ends'>,
  addresses: Pick<PodAddresses, 'keep'>,
): CheckpointData | undefined {
  if (desired === undefined || !isWhole) return undefined
  const kept = Object.entries(records.endings()).filter(
    ([uid, { containerStatuses, reason }]) =>
      reason !== shutdownRefusal.reason && (containerStatuses || !staticUIDs.has(uid)),
  )
  const uids = new Set([...all.keys(), ...staticUIDs])
  return { desired, endings: Object.fromEntries(kept), addresses: addresses.keep(uids), ends: records.ends() }
}

/** `isWhole`: it is the newest checkpoint, not its copy. */
function restore(needs: PodUpdatesNeeds, found: CheckpointData, isWhole: boolean): void {
  const { desired, endings, addresses = {}, ends = {} } = found
  const { nodeName, records, wanted, log } = needs
  const foreign = desired.pods.find(({ spec }) => (spec.nodeName ?? nodeName) !== nodeName)
  if (foreign !== undefined) {
    log.warn('Checkpoint ignored: it has pods of another node', { node: foreign.spec.nodeName })
    return
  }
  recordUndecodable(needs, desired, undefined)
  needs.reports.setMirrors(mirrorsIn(desired))
  needs.addresses.restore(addresses)
  wanted.setDesired(desired, isWhole ? 'checkpoint' : 'copy')
  for (const [uid, status] of Object.entries(endings)) {
    const pod = wanted.all.get(uid) ?? wanted.staticPods?.find(({ metadata }) => metadata.uid === uid)
    // A shutdown ended it before this agent started, and the machine was booted since.
    const reduce = comesBack(pod ?? unknownPod, status) ? onResumed : onEndRestored
    records.of(uid)
    records.update(uid, (record) => reduce(record, status))
  }
  for (const [uid, containers] of Object.entries(ends)) {
    records.of(uid)
    records.update(uid, (record) => onEndsRestored(record, containers))
  }
  log.info('Desired pods restored from the checkpoint', { pods: wanted.all.size })
}

/** No record is dropped while the desired pods may be incomplete. */
function updateGate({ wanted, gate }: PodUpdatesNeeds): void {
  if (wanted.isConfirmed && wanted.staticPods !== undefined)
    gate.wanted(new Set([...wanted.all.keys(), ...wanted.staticUIDs, ...wanted.undecodable]))
}

/** Logs each object that could not be decoded once, and again for another reason. */
function recordUndecodable(
  { recordEvent, log }: PodUpdatesNeeds,
  { misread = nothing }: Desired,
  before: Desired | undefined,
): void {
  for (const { kind, namespace, name, uid, why } of misread) {
    if (before?.misread?.some((one) => one.uid === uid && one.why === why)) continue
    log.warn('Desired object could not be decoded; keeping the running version', { kind, namespace, name, why })
    if (kind === 'Pod') recordEvent({ metadata: { namespace, name, uid } }, notUnderstood(why))
  }
}
