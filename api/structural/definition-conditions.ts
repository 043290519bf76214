/** The conditions of CustomResourceDefinitions (pkg/controller/status, establish and apiapproval of apiextensions-apiserver). */
import type { ObjectMeta } from '../meta.ts'
import { invalid, type Problem, required } from '../problem.ts'
import type { CustomResourceDefinition, DefinitionNames } from './custom-resource-definition.ts'

export type DefinitionStatus = NonNullable<CustomResourceDefinition['status']>
type Condition = NonNullable<DefinitionStatus['conditions']>[number]

/** The status with this condition; the same object where it has it. `now`: RFC 3339, for a status that changes. */
export function withDefinitionCondition(
  status: CustomResourceDefinition['status'],
  condition: Omit<Condition, 'lastTransitionTime'>,
  now: string,
): DefinitionStatus {
  const present = status?.conditions ?? []
  const before = present.find(({ type }) => type === condition.type)
  if (status !== undefined && before !== undefined && isSame(before, condition)) return status
  const stays = before !== undefined && before.status === condition.status
  const lastTransitionTime = stays ? (before.lastTransitionTime ?? now) : now
  const changed = { ...condition, lastTransitionTime }
  const conditions =
    before === undefined ? [...present, changed] : present.map((one) => (one === before ? changed : one))
  return { ...status, conditions }
}

function isSame(a: Condition, b: Omit<Condition, 'lastTransitionTime'>): boolean {
  return a.status === b.status && a.reason === b.reason && a.message === b.message
}

export function hasCondition({ status }: Pick<CustomResourceDefinition, 'status'>, type: string): boolean {
  return status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false
}

/**
 * The status of a definition whose names are compared with those that other definitions of its group have; the same object where nothing
 * changes. Objects are served once all names were accepted, and stay served if later names conflict. `canVerify`: its conversion webhook
 * can be verified with its caBundle, without which the kind is not served.
 */
export function namedStatus(
  { spec, status, metadata }: CustomResourceDefinition,
  others: readonly Pick<CustomResourceDefinition, 'status'>[],
  now: string,
  canVerify = true,
): DefinitionStatus {
  const accepted = status?.acceptedNames ?? { plural: '', kind: '' }
  const { names, conflict } = acceptedNames(
    spec.names,
    accepted,
    others.map((other) => other.status?.acceptedNames ?? {}),
  )
  const named =
    JSON.stringify(names) === JSON.stringify(accepted) ? (status ?? {}) : { ...status, acceptedNames: names }
  const namesAccepted = {
    type: 'NamesAccepted',
    ...(conflict ?? { status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }),
  }
  const withNames = withDefinitionCondition(named, namesAccepted, now)
  const isEstablished = hasCondition({ status: withNames }, 'Established')
  const established = {
    type: 'Established',
    ...(conflict !== undefined
      ? { status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
      : canVerify
        ? { status: 'True', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' }
        : { status: 'False', reason: 'InvalidCABundle', message: 'The conversion webhook CABundle is invalid' }),
  }
  const complete = isEstablished ? withNames : withDefinitionCondition(withNames, established, now)
  const approval = approvalCondition(metadata, spec.group)
  return approval === undefined ? complete : withDefinitionCondition(complete, approval, now)
}

type Conflict = { readonly status: 'False'; readonly reason: string; readonly message: string }

/** First come, first served: a name that another definition has stays its own. */
function acceptedNames(
  wanted: DefinitionNames,
  accepted: DefinitionNames,
  others: readonly Partial<DefinitionNames>[],
): { readonly names: DefinitionNames; readonly conflict: Conflict | undefined } {
  const resources = new Set(
    others.flatMap(({ plural, singular, shortNames = [] }) => [plural, singular, ...shortNames]),
  )
  const kinds = new Set(others.flatMap(({ kind, listKind }) => [kind, listKind]))
  let conflict: Conflict | undefined
  const taken = (used: ReadonlySet<string | undefined>, reason: string, name = '', own = '') => {
    if (name === own || !used.has(name)) return false
    conflict = { status: 'False', reason, message: `"${name}" is already in use` }
    return true
  }
  let names = accepted
  if (!taken(resources, 'PluralConflict', wanted.plural, accepted.plural)) names = { ...names, plural: wanted.plural }
  if (!taken(resources, 'SingularConflict', wanted.singular, accepted.singular))
    names = withField(names, 'singular', wanted)
  const fresh = (wanted.shortNames ?? []).filter((name) => !accepted.shortNames?.includes(name))
  if (!fresh.some((name) => taken(resources, 'ShortNamesConflict', name)))
    names = withField(names, 'shortNames', wanted)
  if (!taken(kinds, 'KindConflict', wanted.kind, accepted.kind)) names = { ...names, kind: wanted.kind }
  if (!taken(kinds, 'ListKindConflict', wanted.listKind, accepted.listKind))
    names = withField(names, 'listKind', wanted)
  return { names: withField(names, 'categories', wanted), conflict }
}

function withField(
  names: DefinitionNames,
  field: 'singular' | 'shortNames' | 'listKind' | 'categories',
  wanted: DefinitionNames,
): DefinitionNames {
  const { [field]: _, ...others } = names
  const value = wanted[field]
  return value === undefined ? others : { ...others, [field]: value }
}

const approvalAnnotation = 'api-approved.kubernetes.io'
const seeApproval = 'see https://github.com/kubernetes/enhancements/pull/1111'

type Approval = 'approved' | 'bypassed' | 'missing' | 'invalid'

/** undefined: the group is not one of the Kubernetes community, and needs no approval. */
function approvalOf({ annotations = {} }: ObjectMeta, group: string): Approval | undefined {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(group)) return undefined
  const value = Object.hasOwn(annotations, approvalAnnotation) ? (annotations[approvalAnnotation] ?? '') : ''
  if (value === '') return 'missing'
  if (value.startsWith('unapproved')) return 'bypassed'
  return URL.canParse(value) ? 'approved' : 'invalid'
}

/** A definition in a group of the Kubernetes community names its approval. */
export function approvalProblems(metadata: ObjectMeta, group: string): readonly Problem[] {
  const field = `metadata.annotations[${approvalAnnotation}]`
  const approval = approvalOf(metadata, group)
  if (approval === 'missing') {
    const message = `protected groups must have approval annotation "${approvalAnnotation}", ${seeApproval}`
    return [required(field, message)]
  }
  if (approval !== 'invalid') return []
  const value = metadata.annotations?.[approvalAnnotation]
  return [
    invalid(
      field,
      value,
      `protected groups must have approval annotation "${approvalAnnotation}" with either a URL or a reason starting with "unapproved", ${seeApproval}`,
    ),
  ]
}

function approvalCondition(metadata: ObjectMeta, group: string): Omit<Condition, 'lastTransitionTime'> | undefined {
  const type = 'KubernetesAPIApprovalPolicyConformant'
  const value = metadata.annotations?.[approvalAnnotation]
  switch (approvalOf(metadata, group)) {
    case undefined:
      return undefined
    case 'approved':
      return { type, status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${value}` }
    case 'bypassed':
      return { type, status: 'False', reason: 'UnapprovedAnnotation', message: `not approved: "${value}"` }
    case 'missing':
      return {
        type,
        status: 'False',
        reason: 'MissingAnnotation',
        message: `protected groups must have approval annotation "${approvalAnnotation}", ${seeApproval}`,
      }
    case 'invalid':
      return {
        type,
        status: 'False',
        reason: 'InvalidAnnotation',
        message: `${approvalAnnotation} is not a URL: "${value}"`,
      }
  }
}
