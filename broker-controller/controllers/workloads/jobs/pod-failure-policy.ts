/** What the failure of a pod means to its Job (pkg/controller/job/pod_failure_policy.go). */
import type { PodFailurePolicy, PodFailurePolicyRule } from '../../../../api/batch/job.ts'
import type { ContainerStatus, Pod } from '../../../../api/pod.ts'

export type FailureVerdict = {
  /** Action of the matching rule; undefined: no rule matches, and the failure counts. */
  readonly action?: 'FailJob' | 'FailIndex' | 'Ignore' | 'Count'
  /** Towards the limits of the Job and of the index. */
  readonly counts: boolean
  /** Why the Job fails; only of FailJob. */
  readonly message?: string
}

/** By the first rule that matches. */
export function failureVerdict(policy: PodFailurePolicy | undefined, pod: Pod): FailureVerdict {
  for (const [index, rule] of (policy?.rules ?? []).entries()) {
    const cause = causeOf(rule, pod)
    if (cause === undefined) continue
    switch (rule.action) {
      case 'Ignore':
        return { action: 'Ignore', counts: false }
      case 'FailIndex':
        return { action: 'FailIndex', counts: true }
      case 'Count':
        return { action: 'Count', counts: true }
      case 'FailJob':
        return { action: 'FailJob', counts: true, message: `${cause} matching FailJob rule at index ${index}` }
    }
  }
  return { counts: true }
}

/** The beginning of the sentence about it; undefined when the rule does not match. */
function causeOf({ onExitCodes, onPodConditions }: PodFailurePolicyRule, pod: Pod): string | undefined {
  const { metadata, status } = pod
  const name = `${metadata.namespace}/${metadata.name}`
  if (onExitCodes !== undefined) {
    const matches = (container: ContainerStatus) => matchesExitCode(onExitCodes, container)
    const found = status?.containerStatuses?.find(matches) ?? status?.initContainerStatuses?.find(matches)
    return found && `Container ${found.name} for pod ${name} failed with exit code ${exitCodeOf(found)}`
  }
  const condition = status?.conditions?.find((one) =>
    onPodConditions?.some(({ type, status: wanted }) => one.type === type && one.status === wanted),
  )
  return condition && `Pod ${name} has condition ${condition.type}`
}

function matchesExitCode(
  { containerName, operator, values = [] }: NonNullable<PodFailurePolicyRule['onExitCodes']>,
  container: ContainerStatus,
): boolean {
  const code = exitCodeOf(container)
  if (code === 0 || (containerName !== undefined && containerName !== container.name)) return false
  return operator === 'In' ? values.includes(code) : operator === 'NotIn' && !values.includes(code)
}

/** 0 while it runs: there is no code to match yet. */
function exitCodeOf({ state }: ContainerStatus): number {
  return state?.terminated?.exitCode ?? 0
}
