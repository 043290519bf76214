/** Carries out what the sync of a pod has decided. */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import type { PodStep } from '../plan/pod-steps.ts'
import { isEvicted, isLeaving, onCleared, onEnded, onStatusReset } from '../record/pod-record.ts'
import { begunAgain } from '../status/pod-endings.ts'
import { type PodAction, startsContainers, stopsSandbox } from './next-action.ts'
import type { SyncPodNeeds } from './sync-needs.ts'

/** `againInMs`: when the pod is synced again though nothing changes. */
export type SettledPod = { readonly againInMs: number | undefined }

/** The end of a pod that could not be saved is tried again after this time. */
const unsavedMs = 10_000

/** undefined: the pod is observed again. */
export async function carryOut(
  { uid, pod, action }: { readonly uid: string; readonly pod: Pod | undefined; readonly action: PodAction },
  needs: SyncPodNeeds,
  signal: AbortSignal,
): Promise<SettledPod | undefined> {
  switch (action.action) {
    case 'observe':
      return undefined
    case 'forget':
      await forget(uid, action.wasDesired, needs, signal)
      return { againInMs: undefined }
    case 'beginAgain':
      await beginAgain(uid, pod, action.cut, needs)
      return undefined
    case 'endForDeadline':
      if (pod !== undefined) endForDeadline(uid, pod, needs)
      return undefined
    case 'steps': {
      if (pod !== undefined && startsContainers(action.steps)) await needs.gate.starting(pod)
      const steps = await withSavedEnds({ uid, pod, steps: action.steps }, needs)
      if (steps.length === 0) return { againInMs: unsavedMs }
      for (const step of steps) {
        if (!signal.aborted) await needs.execute(uid, pod ?? needs.records.of(uid).pod, step)
      }
      return undefined
    }
    case 'settle':
      await clear(uid, action.clears, needs, signal)
      return { againInMs: action.againInMs }
  }
}

/**
 * The steps that may be done now. With a sandbox that has stopped, a later agent could not distinguish completed containers from those that
 * the engine stopped: the sandbox of a pod whose end cannot be saved, because the disk is full, runs until it can.
 */
async function withSavedEnds(
  { uid, pod, steps }: { readonly uid: string; readonly pod: Pod | undefined; readonly steps: readonly PodStep[] },
  { records, saved }: SyncPodNeeds,
): Promise<readonly PodStep[]> {
  if (!steps.some(stopsSandbox) || (await saved())) return steps
  const isKept = pod !== undefined && !isLeaving(pod) && !isEvicted(pod, records.of(uid))
  return isKept ? steps.filter((step) => !stopsSandbox(step)) : steps
}

async function forget(uid: string, wasDesired: boolean, needs: SyncPodNeeds, signal: AbortSignal): Promise<void> {
  needs.prober.forget(uid)
  needs.tokens.forget(uid)
  needs.isolation.observe(uid, undefined)
  await needs.volumes.remove(uid, signal)
  needs.statuses.reportGone(uid, wasDesired)
  needs.updates.podEnded()
}

async function beginAgain(
  uid: string,
  pod: Pod | undefined,
  cut: readonly RuntimeContainer[],
  { execute, records, save }: SyncPodNeeds,
): Promise<void> {
  for (const target of cut) await execute(uid, pod, { step: 'remove', target })
  const names = cut.map(({ identity }) => identity.containerName)
  records.update(uid, (record) => onStatusReset(record, begunAgain(record.status ?? {}, names), names))
  save()
}

function endForDeadline(uid: string, pod: Pod, { records, recordEvent, updates }: SyncPodNeeds): void {
  const reason = 'DeadlineExceeded'
  const message = 'Pod was active on the node longer than the specified deadline'
  recordEvent(pod, { type: 'Normal', reason, message })
  records.update(uid, (record) => onEnded(record, { ...record.status, phase: 'Failed', reason, message }))
  updates.podEnded()
}

async function clear(
  uid: string,
  what: 'volumes' | 'mounts' | 'nothing',
  { tokens, volumes, records }: SyncPodNeeds,
  signal: AbortSignal,
): Promise<void> {
  if (what === 'nothing') return
  if (what === 'volumes') {
    tokens.forget(uid)
    await volumes.remove(uid, signal)
  } else {
    await volumes.unmountParts(uid)
  }
  records.update(uid, onCleared)
}
