/** A pod → the card of the dashboard, with why it waits in one sentence. */
import { secondsOf, sentence } from '../../../api/dashboard/card-words.ts'
import type { PodCard } from '../../../api/dashboard/dashboard-messages.ts'
import type { ContainerStatus, Pod } from '../../../api/pod.ts'
import { podTable } from '../../../broker-controller/apiserver/kinds/pod-table.ts'

/** The card of a pod. Its words are those of `kubectl get pods`. */
export function podCard(pod: Pod): PodCard {
  const { metadata, spec, status } = pod
  const [, ready, word] = podTable.cells(pod, 0)
  const restarts = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].reduce(
    (sum, { restartCount }) => sum + restartCount,
    0,
  )
  const why = whyPodWaits(pod)
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  const created = secondsOf(metadata.creationTimestamp)
  const isReady = status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  return {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    ...(spec.nodeName && { node: spec.nodeName }),
    status: String(word),
    phase: status?.phase ?? 'Pending',
    ready: String(ready),
    ...(isReady && { isReady }),
    ...(restarts > 0 && { restarts }),
    ...(created !== undefined && { created }),
    ...(why && { why }),
    ...(owner && { owner: `${owner.kind}/${owner.name}` }),
    version: metadata.resourceVersion ?? '',
  }
}

/** One sentence on what the pod waits for, or why it failed; undefined: it runs and is ready, or has succeeded. */
export function whyPodWaits({ metadata, status = {} }: Pod): string | undefined {
  const { phase = 'Pending', conditions = [], reason, message } = status
  if (phase === 'Succeeded') return undefined
  if (metadata.deletionTimestamp !== undefined) return whyDeletionWaits(metadata.finalizers ?? [])
  if (phase === 'Failed') return sentence(message || reason || endOf(status.containerStatuses) || 'A container failed')
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False') return sentence(scheduled.message || 'No node fits the pod')
  const stuck = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].find(isStuck)
  if (stuck !== undefined) return waitingSentence(stuck)
  const ready = conditions.find(({ type }) => type === 'Ready')
  if (ready?.status === 'True') return undefined
  if (phase === 'Pending') return sentence(message || 'The node prepares the pod')
  return sentence(ready?.message || 'A container is not ready yet')
}

function whyDeletionWaits([finalizer]: readonly string[]): string {
  if (finalizer !== undefined) return `Deletion waits for the finalizer ${finalizer}.`
  return 'The pod is being stopped; its containers have their grace period.'
}

function isStuck({ state }: ContainerStatus): boolean {
  const waiting = state?.waiting?.reason
  return waiting !== undefined && waiting !== 'PodInitializing' && waiting !== 'ContainerCreating'
}

function waitingSentence({ name, state, lastState }: ContainerStatus): string {
  const { reason = '', message = '' } = state?.waiting ?? {}
  const last = lastState?.terminated
  if (reason === 'CrashLoopBackOff' && last !== undefined) {
    const how = last.reason === 'OOMKilled' ? 'ran out of memory' : `ended with exit code ${last.exitCode}`
    return `Container ${name} ${how} and is started again after a pause.`
  }
  return sentence(`Container ${name}: ${message || reason}`)
}

function endOf(statuses: readonly ContainerStatus[] | undefined): string | undefined {
  const failed = statuses?.find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0)
  const ended = failed?.state?.terminated
  return (
    failed &&
    ended &&
    `Container ${failed.name} ended with exit code ${ended.exitCode}${ended.reason === 'OOMKilled' ? ': out of memory' : ''}`
  )
}
