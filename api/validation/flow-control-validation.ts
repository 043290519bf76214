/** Validation of priority levels and flow schemas (pkg/apis/flowcontrol/validation/validation.go; messages as there). */
import type { FlowRule, FlowSchema, FlowSubject } from '../flow-control/flow-schema.ts'
import type {
  FlowControlStatus,
  LimitedPriorityLevel,
  PriorityLevelConfiguration,
} from '../flow-control/priority-level-configuration.ts'
import { dnsLabelProblem, dnsSubdomainProblem } from '../names.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from './metadata-validation.ts'

const most = { queues: 10_000_000, precedence: 10_000, hashBits: 60 } as const

/** The level has its defaults. */
export function priorityLevelProblems({ metadata, spec, status }: PriorityLevelConfiguration): readonly Problem[] {
  const { type = '', limited, exempt } = spec ?? {}
  const types = ['Exempt', 'Limited']
  const isMisnamed = (metadata.name === 'exempt') !== (type === 'Exempt')
  const because = "must be 'Exempt' if and only if `name` is 'exempt'"
  return [
    ...(isMisnamed ? [invalid('spec.type', type, because)] : []),
    ...(types.includes(type) ? [] : [notSupported('spec.type', type, types)]),
    ...(type === 'Exempt' && limited ? [forbidden('spec.limited', 'must be nil if the type is not Limited')] : []),
    ...(type === 'Exempt' && exempt ? shareProblems('spec.exempt', exempt) : []),
    ...(type === 'Limited' && exempt ? [forbidden('spec.exempt', 'must be nil if the type is Limited')] : []),
    ...(type === 'Limited' && limited === undefined
      ? [required('spec.limited', 'must not be empty when type is Limited')]
      : []),
    ...(type === 'Limited' && limited ? limitedProblems(limited) : []),
    ...flowControlStatusProblems(status),
  ]
}

/** The schema has its defaults. */
export function flowSchemaProblems({ metadata, spec = {}, status }: FlowSchema): readonly Problem[] {
  const { matchingPrecedence: precedence = 0, distinguisherMethod: method, rules = [] } = spec
  const level = spec.priorityLevelConfiguration?.name ?? ''
  const at = 'spec.matchingPrecedence'
  const methods = ['ByNamespace', 'ByUser']
  const levelField = 'spec.priorityLevelConfiguration.name'
  return [
    ...(precedence <= 0 ? [invalid(at, precedence, 'must be a positive value')] : []),
    ...(precedence > most.precedence ? [invalid(at, precedence, `must not be greater than ${most.precedence}`)] : []),
    ...(precedence === 1 && metadata.name !== 'exempt'
      ? [invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")]
      : []),
    ...(method === undefined || methods.includes(method.type)
      ? []
      : [notSupported('spec.distinguisherMethod.type', method, methods)]),
    ...(level === ''
      ? [required(levelField, 'must reference a priority level')]
      : problemsWith(levelField, level, dnsSubdomainProblem)),
    ...rules.flatMap((rule, index) => flowRuleProblems(`spec.rules[${index}]`, rule)),
    ...flowControlStatusProblems(status),
  ]
}

export function flowControlStatusProblems(status: FlowControlStatus | undefined): readonly Problem[] {
  return (status?.conditions ?? []).flatMap(({ type }, index) =>
    type === '' ? [required(`status.conditions[${index}].type`)] : [],
  )
}

type Shares = { readonly nominalConcurrencyShares?: number; readonly lendablePercent?: number }

function shareProblems(field: string, { nominalConcurrencyShares: shares = 0, lendablePercent = 0 }: Shares) {
  const isShare = lendablePercent >= 0 && lendablePercent <= 100
  return [
    ...(shares < 0 ? [invalid(`${field}.nominalConcurrencyShares`, shares, 'must be a non-negative integer')] : []),
    ...(isShare ? [] : [invalid(`${field}.lendablePercent`, lendablePercent, 'must be between 0 and 100, inclusive')]),
  ]
}

function limitedProblems(limited: LimitedPriorityLevel): readonly Problem[] {
  const { limitResponse, borrowingLimitPercent: borrowing = 0 } = limited
  const { type = '', queuing } = limitResponse ?? {}
  const field = 'spec.limited'
  const at = `${field}.limitResponse`
  const types = ['Queue', 'Reject']
  return [
    ...shareProblems(field, limited),
    ...(types.includes(type) ? [] : [notSupported(`${at}.type`, type, types)]),
    ...(type === 'Reject' && queuing
      ? [forbidden(`${at}.queuing`, 'must be nil if limited.limitResponse.type is not Limited')]
      : []),
    ...(type === 'Queue' && queuing === undefined
      ? [required(`${at}.queuing`, 'must not be empty if limited.limitResponse.type is Limited')]
      : []),
    ...(type === 'Queue' && queuing ? queuingProblems(`${at}.queuing`, queuing) : []),
    ...(borrowing < 0
      ? [invalid(`${field}.borrowingLimitPercent`, borrowing, 'if specified, must be a non-negative integer')]
      : []),
  ]
}

type Queuing = { readonly queues?: number; readonly handSize?: number; readonly queueLengthLimit?: number }

function queuingProblems(field: string, { queues = 0, handSize = 0, queueLengthLimit = 0 }: Queuing) {
  const entropy = `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${most.hashBits}`
  const handProblem =
    handSize <= 0
      ? 'must be positive'
      : handSize > queues
        ? `should not be greater than queues (${queues})`
        : needsMoreBits(queues, handSize) && entropy
  return [
    ...(queueLengthLimit <= 0 ? [invalid(`${field}.queueLengthLimit`, queueLengthLimit, 'must be positive')] : []),
    ...(queues <= 0 ? [invalid(`${field}.queues`, queues, 'must be positive')] : []),
    ...(queues > most.queues ? [invalid(`${field}.queues`, queues, `must not be greater than ${most.queues}`)] : []),
    ...(handProblem ? [invalid(`${field}.handSize`, handSize, handProblem)] : []),
  ]
}

/** Does a choice of this many queues need a longer hash? (shufflesharding.RequiredEntropyBits) */
function needsMoreBits(queues: number, handSize: number): boolean {
  let bits = 0
  for (let card = 0; card < handSize && bits <= most.hashBits; card++) bits += Math.log2(queues - card)
  return Math.ceil(bits) > most.hashBits
}

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch']

function flowRuleProblems(field: string, rule: FlowRule): readonly Problem[] {
  const { subjects = [], resourceRules = [], nonResourceRules = [] } = rule
  const none = 'at least one of resourceRules and nonResourceRules has to be non-empty'
  return [
    ...(subjects.length === 0 ? [required(`${field}.subjects`, 'subjects must contain at least one value')] : []),
    ...subjects.flatMap((subject, index) => subjectProblems(`${field}.subjects[${index}]`, subject)),
    ...(resourceRules.length + nonResourceRules.length === 0 ? [required(field, none)] : []),
    ...resourceRules.flatMap(({ namespaces = [], clusterScope, ...one }, index) => {
      const at = `${field}.resourceRules[${index}]`
      const scoped = 'resource rules that are not cluster scoped must supply at least one namespace'
      return [
        ...verbProblems(at, one.verbs),
        ...listProblems(
          `${at}.apiGroups`,
          one.apiGroups,
          'resource rules must supply at least one api group',
          'api groups',
        ),
        ...listProblems(
          `${at}.resources`,
          one.resources,
          'resource rules must supply at least one resource',
          'resources',
        ),
        ...(clusterScope && namespaces.length === 0
          ? []
          : listProblems(`${at}.namespaces`, namespaces, scoped, 'namespaces')),
        ...namespaces.flatMap((name, place) =>
          name === '*' ? [] : problemsWith(`${at}.namespaces[${place}]`, name, dnsLabelProblem),
        ),
      ]
    }),
    ...nonResourceRules.flatMap(({ nonResourceURLs = [], ...one }, index) => {
      const at = `${field}.nonResourceRules[${index}]`
      const urls = `${at}.nonResourceURLs`
      return [
        ...verbProblems(at, one.verbs),
        ...listProblems(urls, nonResourceURLs, 'nonResourceURLs must contain at least one value', 'non-resource URLs'),
        ...nonResourceURLs.flatMap((path, place) =>
          path === '*' ? [] : problemsWith(`${urls}[${place}]`, path, urlPathProblem),
        ),
      ]
    }),
  ]
}

function verbProblems(at: string, given: readonly string[] = []): readonly Problem[] {
  const field = `${at}.verbs`
  const problems = listProblems(field, given, 'verbs must contain at least one value', 'verbs')
  const isKnown = given.every((verb) => verb === '*' || verbs.includes(verb))
  return isKnown ? problems : [...problems, notSupported(field, given, verbs)]
}

function listProblems(field: string, given: readonly string[] = [], empty: string, others: string) {
  if (given.length === 0) return [required(field, empty)]
  const isMixed = given.length > 1 && given.includes('*')
  return isMixed ? [invalid(field, given, `if '*' is present, must not specify other ${others}`)] : []
}

const subjectFields = { ServiceAccount: 'serviceAccount', User: 'user', Group: 'group' } as const

function subjectProblems(field: string, subject: FlowSubject): readonly Problem[] {
  const { kind, serviceAccount } = subject
  if (kind !== 'ServiceAccount' && kind !== 'User' && kind !== 'Group') {
    return [notSupported(`${field}.kind`, kind, ['Group', 'ServiceAccount', 'User'])]
  }
  const own = subjectFields[kind]
  const strange = Object.entries(subjectFields).filter(([_, name]) => name !== own && subject[name] !== undefined)
  const given = subject[own]
  return [
    ...(given === undefined ? [required(`${field}.${own}`, `${own} is required when subject kind is '${kind}'`)] : []),
    ...(given?.name === '' ? [required(`${field}.${own}.name`)] : []),
    ...(kind === 'ServiceAccount' && serviceAccount?.namespace === ''
      ? [required(`${field}.serviceAccount.namespace`, 'must specify namespace for service account')]
      : []),
    ...strange.map(([other, name]) =>
      forbidden(`${field}.${name}`, `${name} is forbidden when subject kind is not '${other}'`),
    ),
  ]
}

function urlPathProblem(path: string): string | undefined {
  if (path === '') return 'must not be empty'
  if (!path.startsWith('/')) return 'must start with slash'
  if (path.includes(' ')) return 'must not contain white-space'
  if (path.includes('//')) return 'must not contain double slash'
  const star = path.indexOf('*')
  const isSuffix = star < 0 || (star === path.length - 1 && path.endsWith('/*'))
  return isSuffix ? undefined : 'wildcard can only do suffix matching'
}
