/**
 * Loop: makes a VolumeAttachment for each node with a pod that uses a volume of a CSI driver, and deletes it when the node has unmounted the
 * volume (pkg/controller/volume/attachdetach). The external-attacher of the driver attaches and detaches.
 */
import { isApiError } from '../../../../api/api-error.ts'
import { type Reconciled, runController } from '../../../../daemon/controller.ts'
import { type Loop, runLoops } from '../../../../daemon/run.ts'
import { workQueue } from '../../../../daemon/work-queue.ts'
import { attachmentName } from '../../../store/attachment-name.ts'
import type { RestoreHold } from '../../../store/checkpoints/restore-hold.ts'
import type { EventRecorder } from '../../../store/event-recorder.ts'
import type { InformerNeeds } from '../../../store/informer.ts'
import { removeObject } from '../../../store/object-removal.ts'
import { podReference } from '../../../store/references.ts'
import type { StoredPod } from '../../../store/store.ts'
import type { ClaimPods } from '../claim-pods.ts'
import { attachedMessage, attachTimeout, multiAttachMessage, notAttachedMessage } from './attach-messages.ts'
import { type AttachMemory, type AttachStep, attachOutcome, attachPlan } from './attach-plan.ts'
import { type AttachView, attachSources, isShared, type StoredAttachment } from './attach-sources.ts'

export type AttachDetachNeeds = InformerNeeds & { readonly events: EventRecorder; readonly hold?: RestoreHold }

const name = 'attach-detach'
/** Another writer was faster. */
const conflictMs = 20
const visitsAtOnce = 10

/** What this process remembers of one volume, by node. */
type Memory = {
  readonly unwantedSinceMs: Map<string, number>
  readonly outcomes: Map<string, AttachMemory>
  /** Nodes whose pods have the Event that another node has it. */
  readonly refused: Set<string>
}

export function attachDetach(needs: AttachDetachNeeds, pods: ClaimPods): Loop {
  const { log, hold } = needs
  const queue = workQueue(needs.clock)
  const sources = attachSources(needs, pods, queue.add)
  const memories = new Map<string, Memory>()
  const held = new Set<string>()
  hold?.onRelease(() => {
    for (const key of held) queue.add(key)
    held.clear()
  })

  const visit = async (key: string): Promise<Reconciled> => {
    sources.catchUp()
    const view = sources.view(key)
    if (view === undefined || (view.attachments.length === 0 && !view.isAttachable)) {
      memories.delete(key)
      return undefined
    }
    const memory = memories.get(key) ?? { unwantedSinceMs: new Map(), outcomes: new Map(), refused: new Set() }
    memories.set(key, memory)
    const nowMs = needs.clock.monotonicMs()
    const wanted = wantedNodes(view)
    remember(memory, view, wanted, nowMs)
    const plan = attachPlan({
      isShared: view.volumes.every(isShared),
      ...{ wanted, unwantedSinceMs: memory.unwantedSinceMs, nowMs },
      present: view.attachments.map(({ metadata, spec }) => ({
        node: spec.nodeName,
        isDeleting: metadata.deletionTimestamp !== undefined,
      })),
      node: (node) => sources.node(node, key),
    })
    for (const step of plan.steps) {
      // A restored store does not have all pods yet: the volume may be in use.
      if (step.kind === 'detach' && hold?.holds('statefulsets') === true) held.add(key)
      else await carryOut(needs, view, step, memory)
    }
    const lateMs = await reportOutcomes(needs, view, memory, wanted)
    if (view.attachments.length === 0 && wanted.size === 0) memories.delete(key)
    return requeuedAt([plan.nextMs, lateMs], nowMs)
  }
  const reconcile = async (key: string): Promise<Reconciled> => {
    try {
      return await visit(key)
    } catch (error) {
      const isLate = ['Conflict', 'NotFound', 'AlreadyExists'] as const
      if (isLate.some((reason) => isApiError(error, reason))) return { requeueAfterMs: conflictMs }
      throw error
    }
  }
  const work = async (signal: AbortSignal) => {
    await sources.listed
    if (!signal.aborted) await runController({ name, reconcile }, queue, log, signal, visitsAtOnce)
  }
  return { name, run: (signal) => runLoops([...sources.loops, { name: 'work', run: work }], signal, log) }
}

function wantedNodes({ isAttachable, users }: AttachView): ReadonlySet<string> {
  return new Set(isAttachable ? users.keys() : [])
}

function requeuedAt(times: readonly (number | undefined)[], nowMs: number): Reconciled {
  const due = times.filter((one) => one !== undefined)
  return due.length === 0 ? undefined : { requeueAfterMs: Math.max(0, Math.min(...due) - nowMs) }
}

function remember(memory: Memory, { attachments }: AttachView, wanted: ReadonlySet<string>, nowMs: number): void {
  const { unwantedSinceMs, outcomes, refused } = memory
  const present = new Set(attachments.map(({ spec }) => spec.nodeName))
  for (const node of present) {
    if (wanted.has(node)) unwantedSinceMs.delete(node)
    else if (!unwantedSinceMs.has(node)) unwantedSinceMs.set(node, nowMs)
  }
  for (const node of [...unwantedSinceMs.keys()]) if (!present.has(node)) unwantedSinceMs.delete(node)
  for (const node of [...outcomes.keys()]) if (!present.has(node)) outcomes.delete(node)
  for (const node of [...refused]) if (!wanted.has(node) || present.has(node)) refused.delete(node)
}

async function carryOut(needs: AttachDetachNeeds, view: AttachView, step: AttachStep, memory: Memory): Promise<void> {
  const { store, clock, log } = needs
  const { driver, handle, users, attachments } = view
  const { node } = step
  const there = users.get(node) ?? { volume: '', pods: [] }
  if (step.kind === 'attach') {
    await store.create('volumeattachments', {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment' },
      metadata: { name: attachmentName({ driver, handle, node }) },
      spec: { attacher: driver, nodeName: node, source: { persistentVolumeName: there.volume } },
      status: { attached: false },
    })
    memory.outcomes.set(node, { askedMs: clock.monotonicMs(), last: '' })
  } else if (step.kind === 'detach') {
    if (step.isForced) log.warn('Volume detached from a node that may still have it mounted', { driver, handle, node })
    const found = attachments.find(({ spec }) => spec.nodeName === node)
    if (found !== undefined) await removeObject({ store, clock }, 'volumeattachments', found)
  } else if (!memory.refused.has(node)) {
    memory.refused.add(node)
    const others = step.others.flatMap((other) => users.get(other)?.pods ?? [])
    for (const pod of there.pods) {
      const message = multiAttachMessage(there.volume, named(pod), others.map(named))
      await record(needs, [pod], { type: 'Warning', reason: 'FailedAttachVolume', message })
    }
  }
}

/** Gives the time at which one may be late. */
async function reportOutcomes(
  needs: AttachDetachNeeds,
  view: AttachView,
  memory: Memory,
  wanted: ReadonlySet<string>,
): Promise<number | undefined> {
  const due: number[] = []
  for (const attachment of view.attachments) {
    const node = attachment.spec.nodeName
    if (attachment.metadata.deletionTimestamp !== undefined || !wanted.has(node)) continue
    const outcome = attachOutcome(memory.outcomes.get(node), stateOf(attachment), needs.clock.monotonicMs())
    memory.outcomes.set(node, outcome.memory)
    if (outcome.nextMs !== undefined) due.push(outcome.nextMs)
    const there = view.users.get(node)
    if (outcome.happened === undefined || there === undefined) continue
    await record(needs, there.pods, outcomeEvent(view, there.volume, attachment, outcome.happened))
  }
  return due.length === 0 ? undefined : Math.min(...due)
}

function outcomeEvent(
  view: AttachView,
  volume: string,
  { status }: StoredAttachment,
  happened: 'attached' | 'failed' | 'late',
): PodEvent {
  if (happened === 'attached') {
    return { type: 'Normal', reason: 'SuccessfulAttachVolume', message: attachedMessage(volume) }
  }
  const why = happened === 'late' ? attachTimeout(view) : status?.attachError?.message
  return { type: 'Warning', reason: 'FailedAttachVolume', message: notAttachedMessage(volume, why ?? '') }
}

function stateOf({ status }: StoredAttachment) {
  const { attached = false, attachError: error } = status ?? {}
  return { attached, ...(error !== undefined && { error }) }
}

function named({ metadata }: StoredPod) {
  return { namespace: metadata.namespace ?? '', name: metadata.name }
}

type PodEvent = { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string }

async function record({ events, log }: AttachDetachNeeds, pods: readonly StoredPod[], event: PodEvent): Promise<void> {
  for (const pod of pods) {
    await events
      .record({ object: podReference(pod), component: 'attachdetach-controller', ...event })
      .catch((error: unknown) =>
        log.warn('Event not recorded', { reason: event.reason, pod: pod.metadata.name, error }),
      )
  }
}
