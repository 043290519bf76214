/** Validates what an update may change of a Job and of its status (pkg/apis/batch/validation/validation.go). */
import type { PodTemplateSpec } from '../pod.ts'
import { duplicate, invalid, type Problem, required } from '../problem.ts'
import {
  finishedConditionOf,
  hasJobCondition,
  isIndexedJob,
  type Job,
  type JobConditionType,
  type JobSpec,
  type JobStatus,
  jobNames,
} from './job.ts'
import { checkIndexes, overlapProblem } from './job-indexes.ts'
import { invalidWhole, jobProblems, nonNegativeProblems } from './job-validation.ts'

type Equal = (one: unknown, other: unknown) => boolean

/** `equal` compares values as JSON. Both have their defaults. */
export function jobChangeProblems(old: Job, now: Job, equal: Equal): readonly Problem[] {
  const labels = old.spec.template.metadata?.labels ?? {}
  const hadLabels = [jobNames.jobNameLabel, jobNames.controllerUidLabel].every((label) => Object.hasOwn(labels, label))
  const fixed = [
    'selector',
    'template',
    'completionMode',
    'podFailurePolicy',
    'backoffLimitPerIndex',
    'managedBy',
    'successPolicy',
  ] as const
  const before = { ...old.spec, template: comparedTemplate(old, now.spec) }
  return [
    ...jobProblems(now, hadLabels),
    ...completionChangeProblems(old.spec, now.spec),
    ...fixed.flatMap((field) => {
      const isSame = equal(before[field] ?? null, now.spec[field] ?? null)
      return isSame ? [] : [invalid(`spec.${field}`, now.spec[field], 'field is immutable')]
    }),
  ]
}

function completionChangeProblems(old: JobSpec, now: JobSpec): readonly Problem[] {
  if (old.completions === now.completions) return []
  if (!isIndexedJob(now)) return [invalid('spec.completions', now.completions, 'field is immutable')]
  if (now.completions === undefined || now.completions === now.parallelism) return []
  return [invalid('spec.completions', now.completions, 'can only be modified in tandem with spec.parallelism')]
}

/**
 * The template that the new one must equal. Where its pods run, labels, annotations and gates may change while a Job is
 * suspended and has never started: queues decide about these (KEP-2926).
 */
function comparedTemplate({ spec, status }: Job, now: JobSpec): PodTemplateSpec {
  const { template: old } = spec
  if (spec.suspend !== true || status?.startTime !== undefined) return old
  const { template } = now
  const { nodeSelector: _, tolerations: __, schedulingGates: ___, affinity, ...rest } = old.spec
  const { nodeSelector, tolerations, schedulingGates, affinity: wanted } = template.spec
  const { labels: ____, annotations: _____, ...metadata } = old.metadata ?? {}
  const { nodeAffinity: ______, ...others } = affinity ?? {}
  const keepsAffinity = wanted !== undefined || Object.keys(others).length > 0
  const kept = { ...others, ...(wanted?.nodeAffinity !== undefined && { nodeAffinity: wanted.nodeAffinity }) }
  const { labels, annotations } = template.metadata ?? {}
  const hasMetadata = old.metadata !== undefined || template.metadata !== undefined
  return {
    ...(hasMetadata && {
      metadata: { ...metadata, ...(labels && { labels }), ...(annotations && { annotations }) },
    }),
    spec: {
      ...rest,
      ...(keepsAffinity && { affinity: kept }),
      ...(nodeSelector && { nodeSelector }),
      ...(tolerations && { tolerations }),
      ...(schedulingGates && { schedulingGates }),
    },
  }
}

/**
 * Problems of a new status. A field that was wrong before and did not change is accepted, so that a status that a
 * change of the specification made wrong can be fixed in steps (getStatusValidationOptions in
 * pkg/registry/batch/job/strategy.go).
 */
export function jobStatusProblems(old: Job, now: Job, equal: Equal): readonly Problem[] {
  const [before, status] = [old.status ?? {}, now.status ?? {}]
  const differs = (field: keyof JobStatus) => !equal(before[field] ?? null, status[field] ?? null)
  const turned = (type: JobConditionType) => hasJobCondition(old, type) !== hasJobCondition(now, type)
  const facts: StatusFacts = { old, now, before, status, differs, turned }
  return [
    ...(['active', 'succeeded', 'failed', 'ready', 'terminating'] as const).flatMap((field) =>
      nonNegativeProblems(`status.${field}`, status[field]),
    ),
    ...uncountedProblems(status),
    ...conditionProblems(facts),
    ...timeProblems(facts),
    ...finishedProblems(facts),
    ...indexProblems(facts),
    ...(differs('ready') || differs('active') ? readyProblems(status) : []),
    ...transitionProblems(facts),
  ]
}

type StatusFacts = {
  readonly old: Job
  readonly now: Job
  readonly before: JobStatus
  readonly status: JobStatus
  readonly differs: (field: keyof JobStatus) => boolean
  readonly turned: (type: JobConditionType) => boolean
}

const conditions = 'status.conditions'

function uncountedProblems({ uncountedTerminatedPods = {} }: JobStatus): readonly Problem[] {
  const seen = new Set<string>()
  return (['succeeded', 'failed'] as const).flatMap((list) =>
    (uncountedTerminatedPods[list] ?? []).flatMap((uid, index) => {
      const field = `status.uncountedTerminatedPods.${list}[${index}]`
      if (uid === '') return [invalid(field, uid, 'must not be empty')]
      if (seen.has(uid)) return [duplicate(field, uid)]
      seen.add(uid)
      return []
    }),
  )
}

function conditionProblems({ now, turned, differs }: StatusFacts): readonly Problem[] {
  const is = (type: JobConditionType) => hasJobCondition(now, type)
  const [complete, failed, target, met] = [is('Complete'), is('Failed'), is('FailureTarget'), is('SuccessCriteriaMet')]
  const checks: readonly (readonly [boolean, string])[] = [
    [
      (turned('Complete') || turned('Failed')) && complete && failed,
      'cannot set Complete=True and Failed=true conditions',
    ],
    [
      (turned('Complete') || turned('FailureTarget')) && complete && target,
      'cannot set Complete=True and FailureTarget=true conditions',
    ],
    [
      (turned('Failed') || differs('failedIndexes')) && failed && !target,
      'cannot set Failed=True condition without the FailureTarget=true condition',
    ],
    [
      (turned('Complete') || turned('SuccessCriteriaMet')) && complete && !met,
      'cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    ],
    [met && failed, 'cannot set SuccessCriteriaMet=True and Failed=true conditions'],
    [met && target, 'cannot set SuccessCriteriaMet=True and FailureTarget=true conditions'],
    [
      now.spec.successPolicy !== undefined && !met && complete,
      'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True',
    ],
  ]
  return checks.flatMap(([isWrong, because]) => (isWrong ? [invalidWhole(conditions, because)] : []))
}

function timeProblems({ now, status, differs, turned }: StatusFacts): readonly Problem[] {
  const { startTime, completionTime } = status
  const isComplete = hasJobCondition(now, 'Complete')
  const problems: Problem[] = []
  const at = 'status.completionTime'
  if (turned('Complete') || differs('completionTime')) {
    if (completionTime !== undefined && !isComplete) {
      const because = 'cannot set completionTime when there is no Complete=True condition'
      problems.push(invalid(at, completionTime, because))
    }
    if (completionTime === undefined && isComplete) {
      problems.push(required(at, 'completionTime is required for Complete jobs'))
    }
  }
  const areTimesNew = differs('startTime') || differs('completionTime')
  if (areTimesNew && startTime !== undefined && completionTime !== undefined && completionTime < startTime) {
    problems.push(invalid(at, completionTime, 'completionTime cannot be set before startTime'))
  }
  return problems
}

function finishedProblems({ old, now, status, differs }: StatusFacts): readonly Problem[] {
  if (finishedConditionOf(now) === undefined) return []
  const isNew = finishedConditionOf(old) === undefined
  const { active = 0, terminating = 0, startTime, uncountedTerminatedPods = {} } = status
  const { succeeded = [], failed = [] } = uncountedTerminatedPods
  const neverRan = now.spec.suspend === true && now.spec.completions === 0
  const problems: Problem[] = []
  if ((isNew || differs('active')) && active > 0) {
    problems.push(invalid('status.active', active, 'active>0 is invalid for finished job'))
  }
  if ((isNew || differs('startTime')) && !neverRan && startTime === undefined) {
    problems.push(required('status.startTime', 'startTime is required for finished job'))
  }
  if ((isNew || differs('uncountedTerminatedPods')) && succeeded.length + failed.length > 0) {
    const because = 'uncountedTerminatedPods needs to be empty for finished job'
    problems.push(invalid('status.uncountedTerminatedPods', uncountedTerminatedPods, because))
  }
  if ((isNew || differs('terminating')) && terminating > 0) {
    problems.push(invalid('status.terminating', terminating, 'terminating>0 is invalid for finished job'))
  }
  return problems
}

function parsedIndexProblems(
  field: 'completedIndexes' | 'failedIndexes',
  indexes: string,
  completions: number,
): readonly Problem[] {
  const checked = checkIndexes(indexes, completions)
  if (!('problem' in checked)) return []
  return [invalid(`status.${field}`, indexes, `error parsing ${field}: ${checked.problem}`)]
}

function indexProblems({ now: { spec }, status, differs }: StatusFacts): readonly Problem[] {
  const { completedIndexes = '', failedIndexes } = status
  const { completions, backoffLimitPerIndex } = spec
  const [completed, failed] = ['status.completedIndexes', 'status.failedIndexes']
  const problems: Problem[] = []
  const [isCompletedNew, isFailedNew] = [differs('completedIndexes'), differs('failedIndexes')]
  if (isCompletedNew && completions !== undefined) {
    problems.push(...parsedIndexProblems('completedIndexes', completedIndexes, completions))
  }
  if (isFailedNew && completions !== undefined && backoffLimitPerIndex !== undefined && failedIndexes !== undefined) {
    problems.push(...parsedIndexProblems('failedIndexes', failedIndexes, completions))
  }
  if (isCompletedNew && completedIndexes !== '' && !isIndexedJob(spec)) {
    const because = 'cannot set non-empty completedIndexes when non-indexed completion mode'
    problems.push(invalid(completed, completedIndexes, because))
  }
  if (isFailedNew && backoffLimitPerIndex === undefined && failedIndexes !== undefined) {
    const because = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null'
    problems.push(invalid(failed, failedIndexes, because))
  }
  if ((isFailedNew || isCompletedNew) && completions !== undefined && failedIndexes !== undefined) {
    const overlap = overlapProblem(completedIndexes, failedIndexes, completions)
    if (overlap !== undefined) problems.push(invalid(failed, failedIndexes, overlap))
  }
  return problems
}

function readyProblems({ ready = 0, active = 0 }: JobStatus): readonly Problem[] {
  return ready > active ? [invalid('status.ready', ready, 'cannot set more ready pods than active')] : []
}

/** What may not be taken back (ValidateJobStatusUpdate). */
function transitionProblems(facts: StatusFacts): readonly Problem[] {
  return [
    ...terminalConditionProblems(facts),
    ...counterProblems(facts),
    ...keptTimeProblems(facts),
    ...successCriteriaProblems(facts),
  ]
}

function terminalConditionProblems({ old, now }: StatusFacts): readonly Problem[] {
  const terminal = ['Failed', 'Complete', 'FailureTarget'] as const
  return terminal
    .filter((type) => hasJobCondition(old, type) && !hasJobCondition(now, type))
    .map((type) => invalidWhole(conditions, `cannot disable the terminal ${type}=True condition`))
}

function counterProblems({ now, before, status }: StatusFacts): readonly Problem[] {
  const problems: Problem[] = []
  const { failed = 0, succeeded = 0 } = status
  if (failed < (before.failed ?? 0)) {
    problems.push(invalid('status.failed', failed, 'cannot decrease the failed counter'))
  }
  // A Job with as many completions as parallel pods can be scaled down.
  const isElastic = isIndexedJob(now.spec) && now.spec.completions === now.spec.parallelism
  if (!isElastic && succeeded < (before.succeeded ?? 0)) {
    problems.push(invalid('status.succeeded', succeeded, 'cannot decrease the succeeded counter'))
  }
  return problems
}

function keptTimeProblems({ old, now, before, status, differs }: StatusFacts): readonly Problem[] {
  const problems: Problem[] = []
  const { completionTime } = status
  if (completionTime !== undefined && before.completionTime !== undefined && differs('completionTime')) {
    problems.push(invalid('status.completionTime', completionTime, 'completionTime cannot be mutated'))
  }
  const suspension = (job: Job) => job.status?.conditions?.find(({ type }) => type === 'Suspended')?.status
  const isResuming = suspension(old) === 'True' && suspension(now) === 'False'
  if (before.startTime !== undefined && differs('startTime') && !isResuming && now.spec.suspend !== true) {
    problems.push(required('status.startTime', 'startTime cannot be removed for unsuspended job'))
  }
  return problems
}

function successCriteriaProblems({ old, now }: StatusFacts): readonly Problem[] {
  const problems: Problem[] = []
  const [wasMet, isMet] = [hasJobCondition(old, 'SuccessCriteriaMet'), hasJobCondition(now, 'SuccessCriteriaMet')]
  if (wasMet && !isMet) {
    problems.push(invalidWhole(conditions, 'cannot disable the SuccessCriteriaMet=True condition'))
  }
  if (hasJobCondition(old, 'Complete') && !wasMet && isMet) {
    const because = 'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions'
    problems.push(invalidWhole(conditions, because))
  }
  return problems
}
