/** Validates the specification of a Job, and of the Jobs of a CronJob (pkg/apis/batch/validation/validation.go). */

import { dnsLabelProblem, dnsSubdomainProblem, qualifiedNameProblem } from '../names.ts'
import { duplicate, invalid, notSupported, type Problem, required } from '../problem.ts'
import { matchesLabels, requirementsOf } from '../selectors.ts'
import { problemsWith } from '../validation/metadata-validation.ts'
import { podTemplateProblems } from '../validation/pod-validation.ts'
import { selectorProblems } from '../validation/scheduling-validation.ts'
import { countProblems } from '../validation/workload-validation.ts'
import {
  isIndexedJob,
  type Job,
  type JobSpec,
  jobNames,
  type PodFailurePolicy,
  type PodFailurePolicyRule,
  type SuccessPolicy,
} from './job.ts'
import { checkIndexes } from './job-indexes.ts'

const mostParallelIndexed = 100_000
const mostFailedIndexes = 100_000
const highCompletions = 100_000
const mostParallelForHighCompletions = 10_000
const mostFailedForHighCompletions = 10_000
const mostRules = 20
const mostExitCodes = 255
const mostPatterns = 20
const longestManager = 63
const longestIndexes = 64 * 1024

const failureActions = ['Count', 'FailIndex', 'FailJob', 'Ignore']
const exitCodeOperators = ['In', 'NotIn']
const conditionStatuses = ['False', 'True', 'Unknown']
const replacementPolicies = ['Failed', 'TerminatingOrFailed']

/**
 * Problems of a Job with its defaults and its selector. `labelsRequired`: its template must have the labels with a
 * prefix.
 */
export function jobProblems(job: Job, labelsRequired: boolean): readonly Problem[] {
  const { metadata, spec } = job
  const { completions = 0 } = spec
  const hostname = `${metadata.name}-${completions - 1}`
  const isBadHostname = isIndexedJob(spec) && completions > 0 && dnsLabelProblem(hostname) !== undefined
  return [
    ...generatedSelectorProblems(job, labelsRequired),
    ...jobSpecProblems('spec', spec),
    ...selectionProblems(spec),
    ...(isBadHostname
      ? [invalid('metadata.name', metadata.name, `will not able to create pod with invalid DNS label: ${hostname}`)]
      : []),
  ]
}

/** What is generated must have been left out, or be right: the selector matches the pods of this Job alone. */
function generatedSelectorProblems({ metadata, spec }: Job, labelsRequired: boolean): readonly Problem[] {
  if (spec.manualSelector === true || spec.selector === undefined) return []
  const { uid = '', name = '' } = metadata
  const { controllerUidLabel, jobNameLabel, legacyControllerUidLabel, legacyJobNameLabel } = jobNames
  const expected: { readonly [label: string]: string } = {
    [legacyControllerUidLabel]: uid,
    [legacyJobNameLabel]: name,
    ...(labelsRequired && { [controllerUidLabel]: uid, [jobNameLabel]: name }),
  }
  const labels = spec.template.metadata?.labels ?? {}
  const wrong = Object.entries(expected).flatMap(([label, value]) => {
    const field = `spec.template.metadata.labels[${label}]`
    if (!Object.hasOwn(labels, label)) return [required(field, `must be '${value}'`)]
    return labels[label] === value ? [] : [invalid(field, labels, `must be '${value}'`)]
  })
  const selects = requirementsOf(spec.selector)
  const isOurs = selects?.ok !== true || matchesLabels(selects.value, expected)
  return [...wrong, ...(isOurs ? [] : [invalid('spec.selector', spec.selector, '`selector` not auto-generated')])]
}

function selectionProblems({ selector, template }: JobSpec): readonly Problem[] {
  if (selector === undefined) return [required('spec.selector')]
  const selects = requirementsOf(selector)
  const labels = template.metadata?.labels ?? {}
  const isMatching = selects?.ok !== true || matchesLabels(selects.value, labels)
  const because = '`selector` does not match template `labels`'
  return [
    ...selectorProblems('spec.selector', selector),
    ...(isMatching ? [] : [invalid('spec.template.metadata.labels', labels, because)]),
  ]
}

/** Problems of a specification with its defaults at the path `at`. The caller checks its selector. */
export function jobSpecProblems(at: string, spec: JobSpec): readonly Problem[] {
  const counts = [
    'parallelism',
    'completions',
    'backoffLimit',
    'ttlSecondsAfterFinished',
    'backoffLimitPerIndex',
    'maxFailedIndexes',
  ] as const
  const { maxFailedIndexes, backoffLimitPerIndex, managedBy, podFailurePolicy, successPolicy } = spec
  return [
    ...counts.flatMap((field) => countProblems(`${at}.${field}`, spec[field])),
    ...nonNegativeProblems(`${at}.activeDeadlineSeconds`, spec.activeDeadlineSeconds),
    ...(maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined
      ? [required(`${at}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified')]
      : []),
    ...(managedBy === undefined ? [] : managerProblems(`${at}.managedBy`, managedBy)),
    ...completionProblems(at, spec),
    ...(podFailurePolicy === undefined ? [] : failurePolicyProblems(`${at}.podFailurePolicy`, podFailurePolicy, spec)),
    ...(successPolicy === undefined ? [] : successPolicyProblems(`${at}.successPolicy`, successPolicy, spec)),
    ...replacementProblems(`${at}.podReplacementPolicy`, spec),
    ...podTemplateProblems(`${at}.template`, spec.template),
    ...restartProblems(`${at}.template.spec.restartPolicy`, spec),
  ]
}

export function nonNegativeProblems(field: string, value: number | undefined): readonly Problem[] {
  return value !== undefined && value < 0 ? [invalid(field, value, 'must be greater than or equal to 0')] : []
}

/** IsDomainPrefixedPath (apimachinery, pkg/util/validation). */
function managerProblems(field: string, manager: string): readonly Problem[] {
  if (manager === '') return [required(field)]
  const slash = manager.indexOf('/')
  const [host, path] = [manager.slice(0, Math.max(0, slash)), manager.slice(slash + 1)]
  if (slash === -1 || host === '' || path === '') {
    return [invalid(field, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')]
  }
  const form = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
  return [
    ...problemsWith(field, host, dnsSubdomainProblem),
    ...(RegExp(`^${form}$`).test(path)
      ? []
      : [invalid(field, path, `Invalid path (regex used for validation is '${form}')`)]),
    ...(manager.length > longestManager ? [tooLong(field, longestManager)] : []),
  ]
}

function completionProblems(at: string, spec: JobSpec): readonly Problem[] {
  const { completionMode = 'NonIndexed', backoffLimitPerIndex, maxFailedIndexes } = spec
  if (completionMode === 'Indexed') return indexedProblems(at, spec)
  if (completionMode !== 'NonIndexed') {
    return [notSupported(`${at}.completionMode`, completionMode, ['NonIndexed', 'Indexed'])]
  }
  const because = 'requires indexed completion mode'
  return [
    ...(backoffLimitPerIndex === undefined
      ? []
      : [invalid(`${at}.backoffLimitPerIndex`, backoffLimitPerIndex, because)]),
    ...(maxFailedIndexes === undefined ? [] : [invalid(`${at}.maxFailedIndexes`, maxFailedIndexes, because)]),
  ]
}

function indexedProblems(at: string, spec: JobSpec): readonly Problem[] {
  const { completions, parallelism = 0, maxFailedIndexes, backoffLimitPerIndex } = spec
  const [parallel, failed] = [`${at}.parallelism`, `${at}.maxFailedIndexes`]
  const problems: Problem[] = []
  if (completions === undefined) {
    problems.push(required(`${at}.completions`, 'when completion mode is Indexed'))
  }
  if (parallelism > mostParallelIndexed) {
    const because = `must be less than or equal to ${mostParallelIndexed} when completion mode is Indexed`
    problems.push(invalid(parallel, parallelism, because))
  }
  if (completions !== undefined && maxFailedIndexes !== undefined && maxFailedIndexes > completions) {
    problems.push(invalid(failed, maxFailedIndexes, 'must be less than or equal to completions'))
  }
  if (maxFailedIndexes !== undefined && maxFailedIndexes > mostFailedIndexes) {
    problems.push(invalid(failed, maxFailedIndexes, `must be less than or equal to ${mostFailedIndexes}`))
  }
  if (completions === undefined || completions <= highCompletions || backoffLimitPerIndex === undefined) return problems
  const situation = `when completions are above ${highCompletions} and used with backoff limit per index`
  if (maxFailedIndexes === undefined) {
    problems.push(required(failed, `must be specified when completions is above ${highCompletions}`))
  }
  if (parallelism > mostParallelForHighCompletions) {
    const because = `must be less than or equal to ${mostParallelForHighCompletions} ${situation}`
    problems.push(invalid(parallel, parallelism, because))
  }
  if (maxFailedIndexes !== undefined && maxFailedIndexes > mostFailedForHighCompletions) {
    const because = `must be less than or equal to ${mostFailedForHighCompletions} ${situation}`
    problems.push(invalid(failed, maxFailedIndexes, because))
  }
  return problems
}

function failurePolicyProblems(at: string, { rules = [] }: PodFailurePolicy, spec: JobSpec): readonly Problem[] {
  const { containers, initContainers = [] } = spec.template.spec
  const names = new Set([...containers, ...initContainers].map(({ name }) => name))
  return [
    ...(rules.length > mostRules ? [tooMany(`${at}.rules`, rules.length, mostRules)] : []),
    ...rules.flatMap((rule, index) => failureRuleProblems(`${at}.rules[${index}]`, rule, { spec, names })),
  ]
}

function failureRuleProblems(
  at: string,
  { action = '', onExitCodes, onPodConditions = [] }: PodFailurePolicyRule,
  { spec, names }: { readonly spec: JobSpec; readonly names: ReadonlySet<string> },
): readonly Problem[] {
  const isIndexAction = action === 'FailIndex' && spec.backoffLimitPerIndex === undefined
  const hasConditions = onPodConditions.length > 0
  return [
    ...wordProblems(`${at}.action`, action, failureActions),
    ...(isIndexAction ? [invalid(`${at}.action`, action, 'requires the backoffLimitPerIndex to be set')] : []),
    ...(onExitCodes === undefined ? [] : exitCodeProblems(`${at}.onExitCodes`, onExitCodes, names)),
    ...(hasConditions ? patternProblems(`${at}.onPodConditions`, onPodConditions) : []),
    ...(onExitCodes !== undefined && hasConditions
      ? [invalidWhole(at, 'specifying both OnExitCodes and OnPodConditions is not supported')]
      : []),
    ...(onExitCodes === undefined && !hasConditions
      ? [invalidWhole(at, 'specifying one of OnExitCodes and OnPodConditions is required')]
      : []),
  ]
}

function patternProblems(
  at: string,
  patterns: NonNullable<PodFailurePolicyRule['onPodConditions']>,
): readonly Problem[] {
  return [
    ...(patterns.length > mostPatterns ? [tooMany(at, patterns.length, mostPatterns)] : []),
    ...patterns.flatMap(({ type = '', status = '' }, index) => [
      ...problemsWith(`${at}[${index}].type`, type, qualifiedNameProblem),
      ...wordProblems(`${at}[${index}].status`, status, conditionStatuses),
    ]),
  ]
}

function exitCodeProblems(
  at: string,
  { operator = '', containerName, values = [] }: NonNullable<PodFailurePolicyRule['onExitCodes']>,
  names: ReadonlySet<string>,
): readonly Problem[] {
  const field = `${at}.values`
  const seen = new Set<number>()
  const each = values.flatMap((value, index) => {
    const isRepeated = seen.has(value)
    seen.add(value)
    return [
      ...(operator === 'In' && value === 0
        ? [invalid(`${field}[${index}]`, value, 'must not be 0 for the In operator')]
        : []),
      ...(isRepeated ? [duplicate(`${field}[${index}]`, value)] : []),
    ]
  })
  const isOrdered = values.every((value, index) => index === 0 || (values[index - 1] ?? value) <= value)
  const because = 'must be one of the container or initContainer names in the pod template'
  return [
    ...wordProblems(`${at}.operator`, operator, exitCodeOperators),
    ...(containerName === undefined || names.has(containerName)
      ? []
      : [invalid(`${at}.containerName`, containerName, because)]),
    ...(values.length === 0 ? [invalid(field, values, 'at least one value is required')] : []),
    ...(values.length > mostExitCodes ? [tooMany(field, values.length, mostExitCodes)] : []),
    ...each,
    ...(isOrdered ? [] : [invalid(field, values, 'must be ordered')]),
  ]
}

function successPolicyProblems(at: string, policy: SuccessPolicy, spec: JobSpec): readonly Problem[] {
  if (!isIndexedJob(spec)) return [invalid(at, policy, 'requires indexed completion mode')]
  const { rules = [] } = policy
  const because = 'at least one rules must be specified when the successPolicy is specified'
  return [
    ...(rules.length === 0 ? [required(`${at}.rules`, because)] : []),
    ...(rules.length > mostRules ? [tooMany(`${at}.rules`, rules.length, mostRules)] : []),
    ...rules.flatMap((rule, index) => successRuleProblems(`${at}.rules[${index}]`, rule, spec.completions ?? 0)),
  ]
}

function successRuleProblems(
  at: string,
  { succeededCount, succeededIndexes }: NonNullable<SuccessPolicy['rules']>[number],
  completions: number,
): readonly Problem[] {
  const problems: Problem[] = []
  if (succeededCount === undefined && succeededIndexes === undefined) {
    problems.push(required(at, 'at least one of succeededCount or succeededIndexes must be specified'))
  }
  let total = 0
  if (succeededIndexes !== undefined) {
    const field = `${at}.succeededIndexes`
    if (succeededIndexes.length > longestIndexes) problems.push(tooLong(field, longestIndexes))
    const checked = checkIndexes(succeededIndexes, completions)
    if ('problem' in checked) {
      problems.push(invalid(field, succeededIndexes, `error parsing succeededIndexes: ${checked.problem}`))
    } else total = checked.total
  }
  if (succeededCount === undefined) return problems
  const field = `${at}.succeededCount`
  const most = 'must be less than or equal to'
  problems.push(...nonNegativeProblems(field, succeededCount))
  if (succeededCount > completions) {
    problems.push(invalid(field, succeededCount, `${most} ${completions} (the number of specified completions)`))
  }
  if (succeededIndexes !== undefined && succeededCount > total) {
    const because = `${most} ${total} (the number of indexes in the specified succeededIndexes field)`
    problems.push(invalid(field, succeededCount, because))
  }
  return problems
}

function replacementProblems(field: string, { podReplacementPolicy, podFailurePolicy }: JobSpec): readonly Problem[] {
  const allowed = podFailurePolicy === undefined ? replacementPolicies : ['Failed']
  if (podReplacementPolicy === undefined || allowed.includes(podReplacementPolicy)) return []
  return [notSupported(field, podReplacementPolicy, allowed)]
}

function restartProblems(field: string, { template, podFailurePolicy }: JobSpec): readonly Problem[] {
  const { restartPolicy = 'Always' } = template.spec
  if (restartPolicy === 'Always') return [required(field, 'valid values: "OnFailure", "Never"')]
  if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never') {
    return [notSupported(field, restartPolicy, ['OnFailure', 'Never'])]
  }
  if (podFailurePolicy === undefined || restartPolicy === 'Never') return []
  return [invalid(field, restartPolicy, 'only "Never" is supported when podFailurePolicy is specified')]
}

/** A word that must be given. */
function wordProblems(field: string, word: string, words: readonly string[]): readonly Problem[] {
  if (word === '') return [required(field, `valid values: [${words.map((one) => JSON.stringify(one)).join(' ')}]`)]
  return words.includes(word) ? [] : [notSupported(field, word, words)]
}

/** A problem of a field whose value is not shown (field.OmitValueType). */
export function invalidWhole(field: string, detail: string): Problem {
  return { field, reason: 'FieldValueInvalid', message: `Invalid value: ${detail}` }
}

function tooMany(field: string, count: number, most: number): Problem {
  return { field, reason: 'FieldValueInvalid', message: `Too many: ${count}: must have at most ${most} items` }
}

function tooLong(field: string, bytes: number): Problem {
  return { field, reason: 'FieldValueTooLong', message: `Too long: may not be more than ${bytes} bytes` }
}
