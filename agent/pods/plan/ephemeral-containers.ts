/** Ephemeral containers: each is started once, beside the others, and never restarted (KEP-277). */
import type { EphemeralContainer, Pod } from '../../../api/pod.ts'
import { isRunning, type PodContainers } from '../record/pod-containers.ts'
import { type Choice, choose } from './container-choice.ts'
import type { PodFacts, PodStep } from './pod-steps.ts'

/** They are never waited for, and no sandbox is created for them alone. */
export function chooseEphemeral(pod: Pod, found: PodContainers, facts: PodFacts): readonly Choice[] {
  return (pod.spec.ephemeralContainers ?? []).map((container) => chooseOne(pod, container, found, facts))
}

function chooseOne(pod: Pod, container: EphemeralContainer, found: PodContainers, facts: PodFacts): Choice {
  const { name, targetContainerName: target = '' } = container
  const isNew = found.histories.get(name) === undefined
  // It ran, and was removed since.
  if (isNew && facts.record.restartCounts.has(name)) return {}
  const choice = choose(pod, container, found, facts, 'Never')
  const { start } = choice
  if (target === '' || start === undefined) return choice
  const running = found.histories.get(target)?.find(isRunning)
  if (running === undefined) {
    const message = `unable to find target container "${target}": it does not run`
    const { tidy = [] } = choice
    return { tidy, waiting: [name, { reason: 'CreateContainerConfigError', message }], start: () => [] }
  }
  return { ...choice, start: (sandbox) => start(sandbox).map((step) => withProcessesOf(step, running.id)) }
}

function withProcessesOf(step: PodStep, id: string): PodStep {
  return step.step === 'startContainer' ? { ...step, processesOf: id } : step
}
