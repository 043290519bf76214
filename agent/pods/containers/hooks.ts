/** Runs the lifecycle hooks of a container. */
import type { Container, Pod } from '../../../api/pod.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { ContainerRuntime } from '../../runtime/runtime.ts'
import { type NetworkProbes, type ProbeAnswer, portProblem, targetOf } from '../probes/targets.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { podPath } from '../wanted/desired-pods.ts'

export type Hook = NonNullable<NonNullable<Container['lifecycle']>['postStart']>

export type HookNeeds = {
  readonly runtime: Pick<ContainerRuntime, 'exec'>
  readonly network: NetworkProbes
  readonly clock: Clock
}

export type HookCall = {
  readonly hook: Hook
  readonly container: Container
  readonly id: string
  readonly podIP: string | undefined
  readonly timeoutMs: number
  /** Aborts when the result is no longer needed. */
  readonly signal: AbortSignal
}

/** Ends within the hook's timeout and never rejects. */
export async function runHook({ runtime, network, clock }: HookNeeds, call: HookCall): Promise<ProbeAnswer> {
  const { hook, container, id, podIP, timeoutMs, signal } = call
  if (hook.sleep !== undefined) {
    await clock.sleep(Math.min(hook.sleep.seconds * 1000, timeoutMs), signal)
    return { result: 'success', message: '' }
  }
  if (hook.tcpSocket !== undefined) {
    return { result: 'failure', message: 'invalid handler: tcpSocket is for probes; a hook has exec, httpGet or sleep' }
  }
  const target = targetOf(hook, container, podIP)
  if (target === undefined) {
    return { result: 'failure', message: portProblem(hook, container) ?? 'the pod has no address yet' }
  }
  if (target.kind !== 'exec') {
    return await network.ask(target.kind === 'http' ? { ...target, isHook: true } : target, timeoutMs, signal)
  }
  const patience = alarm(clock)
  const calledOff = patience.sleep(timeoutMs, signal).then(() => undefined)
  try {
    const ended = await Promise.race([runtime.exec(id, target.command, timeoutMs), calledOff])
    if (ended?.exitCode === 0) return { result: 'success', message: '' }
    const how = ended?.exitCode === undefined ? 'took too long' : `exited with ${ended.exitCode}`
    return { result: 'failure', message: `command '${target.command.join(' ')}' ${how}: ${ended?.output ?? ''}` }
  } catch (error) {
    return { result: 'failure', message: storyOf(error) }
  } finally {
    patience.ring()
  }
}

/**
 * Reports a failed hook as an Event and in the log. The Event has no details: they may contain a Secret
 * (pkg/kubelet/kuberuntime/kuberuntime_container.go, startContainer).
 */
export function hookFailed(
  { recordEvent, log }: { readonly recordEvent: (pod: Pod, event: PodEvent) => void; readonly log: Log },
  pod: Pod,
  { name }: Container,
  hook: 'PostStartHook' | 'PreStopHook',
  message: string,
): void {
  const fields = { reason: `Failed${hook}`, message: `${hook} failed`, containerName: name }
  recordEvent(pod, { type: 'Warning', ...fields })
  log.warn('Hook failed', { pod: podPath(pod), container: name, hook, why: message })
}

export function containerNamed({ spec }: Pod, name: string): Container | undefined {
  return [...(spec.initContainers ?? []), ...spec.containers].find((container) => container.name === name)
}
