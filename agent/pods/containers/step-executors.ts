/** Executes the steps of a plan and puts their results into the pod's record. */
import type { Pod } from '../../../api/pod.ts'
import { storyOf } from '../../../daemon/log.ts'
import { type ContainerRuntime, isUnreachable, type RuntimeContainer, RuntimeError } from '../../runtime/runtime.ts'
import type { PodImages } from '../images/pod-images.ts'
import { sandboxOptions } from '../options/container-options.ts'
import { asksForHostResolver } from '../options/pod-dns.ts'
import { runtimeHandler } from '../options/runtime-handler.ts'
import type { PodStep, StepName, StepOf } from '../plan/pod-steps.ts'
import { onNotRemoved, onRemoved, onSandboxFailed, onSandboxStarted } from '../record/pod-record.ts'
import { podPath } from '../wanted/desired-pods.ts'
import type { PodAddresses } from '../wanted/pod-addresses.ts'
import { type ContainerStartNeeds, startContainer } from './container-start.ts'
import { type ContainerStopNeeds, containerStop } from './container-stop.ts'

export type StepNeeds = ContainerStartNeeds &
  ContainerStopNeeds & {
    readonly runtime: ContainerRuntime
    readonly images: PodImages
    readonly addresses: Pick<PodAddresses, 'of'>
    readonly networkDecided?: (() => Promise<void>) | undefined
  }

/** `pod`: undefined when its specification is unknown. Rejects only when the engine does not answer. */
export type ExecuteStep = (uid: string, pod: Pod | undefined, step: PodStep) => Promise<void>

type Executor<S extends StepName> = (uid: string, pod: Pod | undefined, step: StepOf<S>) => Promise<void>
/** A mapped type: a step without an executor does not compile. */
type Executors = { readonly [S in StepName]: Executor<S> }

export function stepExecutors(needs: StepNeeds): ExecuteStep {
  const { images } = needs
  const stopping = containerStop(needs)
  const executors: Executors = {
    lookForImage: (uid, _pod, { image }) => images.lookFor(uid, image),
    pullImage: ofDesired(async (uid, pod, { image, container }) => images.pull(uid, pod, image, container.name)),
    runSandbox: ofDesired((uid, pod, step) => runSandbox(needs, uid, pod, step)),
    startContainer: ofDesired((uid, pod, step) => startContainer(needs, uid, pod, step)),
    stop: async (uid, pod, step) => stopping.stop(uid, pod, step),
    preStop: async (uid, pod, step) => stopping.preStop(uid, pod, step),
    remove: (uid, _pod, { target }) => remove(needs, uid, target),
  }
  return (uid, pod, step) => execute(executors, uid, pod, step)
}

function execute<S extends StepName>(
  executors: { readonly [Name in S]: Executor<Name> },
  uid: string,
  pod: Pod | undefined,
  step: StepOf<S>,
): Promise<void> {
  const executor: Executor<S> = executors[step.step]
  return executor(uid, pod, step)
}

/** A step that needs the specification of its pod. */
function ofDesired<S extends StepName>(
  execute: (uid: string, pod: Pod, step: StepOf<S>) => Promise<void>,
): Executor<S> {
  return async (uid, pod, step) => (pod === undefined ? undefined : await execute(uid, pod, step))
}

async function runSandbox(needs: StepNeeds, uid: string, pod: Pod, step: StepOf<'runSandbox'>): Promise<void> {
  const { records, runtime, clock, log } = needs
  if (step.lost && records.get(uid)?.sandboxFailures === 0) {
    needs.recordEvent(pod, { type: 'Normal', reason: 'SandboxChanged', message: sandboxChanged })
  }
  try {
    await needs.networkDecided?.()
    const { podCIDR, clusterDomain, runtimeClasses } = needs.sources()
    const resolver = asksForHostResolver(pod.spec, clusterDomain) ? await needs.hostResolver() : undefined
    const found = runtimeHandler(pod, runtimeClasses)
    if (!found.ok) throw new RuntimeError('Failed', found.message)
    const { handler } = found
    await runtime.runSandbox(
      sandboxOptions(pod, step.attempt, { resolver, podCIDR, clusterDomain, handler, ...needs.addresses.of(uid) }),
    )
    records.update(uid, onSandboxStarted)
  } catch (error) {
    if (isUnreachable(error)) throw error
    const message = `Failed to create pod sandbox: ${storyOf(error)}`
    const nowMs = clock.monotonicMs()
    const failed = records.update(uid, (record) => onSandboxFailed(record, message, nowMs))
    const retryInMs = (failed?.sandboxRetryAtMs ?? nowMs) - nowMs
    needs.recordEvent(pod, { type: 'Warning', reason: 'FailedCreatePodSandBox', message })
    log.warn('Sandbox not started', { pod: podPath(pod), retryInMs, error })
  }
}

/** SyncPod's message (pkg/kubelet/kuberuntime/kuberuntime_manager.go). */
const sandboxChanged = 'Pod sandbox changed, it will be killed and re-created.'

async function remove(
  { records, runtime, clock, log }: StepNeeds,
  uid: string,
  { id, identity }: RuntimeContainer,
): Promise<void> {
  try {
    await runtime.removeContainer(id)
    records.update(uid, (record) => onRemoved(record, id))
  } catch (error) {
    if (isUnreachable(error)) throw error
    records.update(uid, (record) => onNotRemoved(record, id, clock.monotonicMs()))
    log.warn('Container not removed', { podUID: uid, container: identity.containerName, id: id.slice(0, 12), error })
  }
}
