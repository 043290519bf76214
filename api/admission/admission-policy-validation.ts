/**
 * What is wrong with an admission policy or a binding (pkg/apis/admissionregistration/validation/validation.go). What is wrong with
 * expressions is found elsewhere: they are compiled.
 */

import { dns1035LabelProblem, dnsSubdomainProblem, pathSegmentProblem, qualifiedNameProblem } from '../names.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from '../validation/metadata-validation.ts'
import { repeatedPlaces } from '../validation/repeated.ts'
import { selectorProblems } from '../validation/scheduling-validation.ts'
import { conditionProblems, webhookRuleProblems } from '../validation/webhook-validation.ts'
import type { MatchResources, NamedRule } from './match-resources.ts'
import type {
  AdmissionPolicySpec,
  AdmissionPolicyStatus,
  ParamKind,
  PolicyValidation,
  ValidatingAdmissionPolicy,
} from './validating-admission-policy.ts'
import type { ParamRef, ValidatingAdmissionPolicyBinding } from './validating-admission-policy-binding.ts'

const failurePolicies = ['Fail', 'Ignore']
const matchPolicies = ['Equivalent', 'Exact']
const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge']
const mostAuditAnnotations = 20

/** Problems of a policy with its defaults. `hasNewConditions`: its conditions are checked, too. */
export function admissionPolicyProblems(
  { metadata, spec = {} }: ValidatingAdmissionPolicy,
  hasNewConditions = true,
): readonly Problem[] {
  const { failurePolicy, paramKind, matchConstraints, matchConditions = [] } = spec
  return [
    ...wordProblems('spec.failurePolicy', failurePolicy, failurePolicies),
    ...(paramKind === undefined ? [] : paramKindProblems('spec.paramKind', paramKind)),
    ...(matchConstraints === undefined
      ? [required('spec.matchConstraints')]
      : [
          ...matchProblems('spec.matchConstraints', matchConstraints),
          ...((matchConstraints.resourceRules ?? []).length === 0
            ? [required('spec.matchConstraints.resourceRules')]
            : []),
        ]),
    ...(hasNewConditions ? conditionProblems('spec.matchConditions', matchConditions) : []),
    ...variableProblems(spec),
    ...judgementProblems(spec, metadata.name ?? ''),
  ]
}

/** Whether neither the conditions nor what they may name was changed. */
export function samePolicyConditions(one: AdmissionPolicySpec, other: AdmissionPolicySpec): boolean {
  const textOf = ({ paramKind, matchConditions = [] }: AdmissionPolicySpec) =>
    JSON.stringify([
      paramKind?.apiVersion,
      paramKind?.kind,
      matchConditions.map(({ name, expression }) => [name, expression]),
    ])
  return textOf(one) === textOf(other)
}

function wordProblems(field: string, value: string | undefined, words: readonly string[]): readonly Problem[] {
  if (value === undefined) return [required(field)]
  return words.includes(value) ? [] : [notSupported(field, value, words)]
}

function paramKindProblems(field: string, { apiVersion = '', kind = '' }: ParamKind): readonly Problem[] {
  const parts = apiVersion.split('/')
  const [version = '', group = ''] = parts.toReversed()
  const wrong = (value: string, problem: string | undefined) =>
    problem === undefined ? [] : [invalid(`${field}.apiVersion`, value, problem)]
  const kindProblem = dns1035LabelProblem(kind.toLowerCase())
  return [
    ...(apiVersion === ''
      ? [required(`${field}.apiVersion`)]
      : parts.length > 2
        ? [invalid(`${field}.apiVersion`, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)]
        : [
            ...(group === '' ? [] : wrong(group, dnsSubdomainProblem(group))),
            ...(version === ''
              ? wrong(apiVersion, 'version must be specified')
              : wrong(version, dns1035LabelProblem(version))),
          ]),
    ...(kind === ''
      ? [required(`${field}.kind`)]
      : kindProblem === undefined
        ? []
        : [invalid(`${field}.kind`, kind, `may have mixed case, but should otherwise match: ${kindProblem}`)]),
  ]
}

function matchProblems(field: string, match: MatchResources): readonly Problem[] {
  const { matchPolicy, namespaceSelector, objectSelector, resourceRules = [], excludeResourceRules = [] } = match
  return [
    ...wordProblems(`${field}.matchPolicy`, matchPolicy, matchPolicies),
    ...selectorProblems(`${field}.namespaceSelector`, namespaceSelector),
    ...selectorProblems(`${field}.objectSelector`, objectSelector),
    ...resourceRules.flatMap((rule, index) => namedRuleProblems(`${field}.resourceRules[${index}]`, rule)),
    ...excludeResourceRules.flatMap((rule, index) =>
      namedRuleProblems(`${field}.excludeResourceRules[${index}]`, rule),
    ),
  ]
}

function namedRuleProblems(field: string, rule: NamedRule): readonly Problem[] {
  const { resourceNames = [] } = rule
  const places = repeatedPlaces(resourceNames)
  return [
    ...resourceNames.flatMap((name, index) => [
      ...problemsWith(`${field}.resourceNames[${index}]`, name, pathSegmentProblem),
      ...(places.has(index) ? [duplicate(`${field}.resourceNames[${index}]`, name)] : []),
    ]),
    ...webhookRuleProblems(field, rule),
  ]
}

const identifier = /^[_a-zA-Z][_a-zA-Z0-9]*$/
const reserved: ReadonlySet<string> = new Set([
  ...['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import'],
  ...['let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while'],
])

function variableProblems({ variables = [] }: AdmissionPolicySpec): readonly Problem[] {
  return variables.flatMap(({ name, expression }, index) => {
    const field = `spec.variables[${index}]`
    const isName = identifier.test(name) && !reserved.has(name)
    return [
      ...(name.trim() === ''
        ? [required(`${field}.name`, 'name is not specified')]
        : isName
          ? []
          : [invalid(`${field}.name`, name, 'name is not a valid CEL identifier')]),
      ...(expression.trim() === '' ? [required(`${field}.expression`, 'expression is not specified')] : []),
    ]
  })
}

function judgementProblems(spec: AdmissionPolicySpec, name: string): readonly Problem[] {
  const { validations = [], auditAnnotations = [] } = spec
  const none = 'validations or auditAnnotations must contain at least one item'
  if (validations.length + auditAnnotations.length === 0) {
    return [required('spec.validations', none), required('spec.auditAnnotations', none)]
  }
  const places = repeatedPlaces(auditAnnotations.map(({ key }) => key))
  return [
    ...validations.flatMap((validation, index) => validationProblems(`spec.validations[${index}]`, validation)),
    ...(auditAnnotations.length > mostAuditAnnotations
      ? [
          invalid(
            'spec.auditAnnotations',
            auditAnnotations,
            `must not have more than ${mostAuditAnnotations} auditAnnotations`,
          ),
        ]
      : auditAnnotations.flatMap(({ key, valueExpression }, index) => {
          const field = `spec.auditAnnotations[${index}]`
          return [
            ...problemsWith(`${field}.key`, `${name}/${key}`, qualifiedNameProblem),
            ...annotationProblems(`${field}.valueExpression`, valueExpression.trim()),
            ...(places.has(index) ? [duplicate(`${field}.key`, key)] : []),
          ]
        })),
  ]
}

const longestValueExpression = 5 * 1024

function annotationProblems(field: string, expression: string): readonly Problem[] {
  if (expression === '') return [required(field, 'valueExpression is not specified')]
  if (expression.length <= longestValueExpression) return []
  return [required(field, `must not exceed ${longestValueExpression} bytes in length`)]
}

function validationProblems(field: string, validation: PolicyValidation): readonly Problem[] {
  const { expression, message = '', messageExpression = '', reason } = validation
  const isBlank = (text: string) => text !== '' && text.trim() === ''
  return [
    ...(expression.trim() === '' ? [required(`${field}.expression`, 'expression is not specified')] : []),
    ...(isBlank(messageExpression)
      ? [invalid(`${field}.messageExpression`, messageExpression, 'must be non-empty if specified')]
      : []),
    ...(isBlank(message)
      ? [invalid(`${field}.message`, message, 'message must be non-empty if specified')]
      : /[\n\r]/.test(message.trim())
        ? [invalid(`${field}.message`, message, 'message must not contain line breaks')]
        : []),
    ...(reason === undefined || reasons.includes(reason) ? [] : [notSupported(`${field}.reason`, reason, reasons)]),
  ]
}

/** Problems of a status that a client writes. */
export function admissionPolicyStatusProblems(status: AdmissionPolicyStatus = {}): readonly Problem[] {
  const { typeChecking, conditions = [] } = status
  const warnings = typeChecking?.expressionWarnings ?? []
  const places = repeatedPlaces(conditions.map(({ type }) => type))
  return [
    ...warnings.flatMap(({ fieldRef, warning }, index) => {
      const field = `status.typeChecking.expressionWarnings[${index}]`
      return [
        ...(warning === '' ? [required(`${field}.warning`)] : []),
        ...(fieldRef.trim() === '' ? [required(`${field}.fieldRef`)] : []),
      ]
    }),
    ...conditions.flatMap(({ type, status: value, reason }, index) => {
      const field = `status.conditions[${index}]`
      return [
        ...(type === '' ? [required(`${field}.type`)] : problemsWith(`${field}.type`, type, qualifiedNameProblem)),
        ...(places.has(index) ? [duplicate(`${field}.type`, type)] : []),
        ...(['True', 'False', 'Unknown'].includes(value)
          ? []
          : [notSupported(`${field}.status`, value, ['False', 'True', 'Unknown'])]),
        ...(reason === '' ? [required(`${field}.reason`, 'cannot be empty')] : []),
      ]
    }),
  ]
}

const actions = ['Audit', 'Deny', 'Warn']

/** Problems of a binding with its defaults. */
export function policyBindingProblems({ spec = {} }: ValidatingAdmissionPolicyBinding): readonly Problem[] {
  const { policyName = '', paramRef, matchResources, validationActions = [] } = spec
  return [
    ...(policyName === ''
      ? [required('spec.policyName')]
      : problemsWith('spec.policyName', policyName, dnsSubdomainProblem)),
    ...(paramRef === undefined ? [] : paramRefProblems('spec.paramRef', paramRef)),
    ...(matchResources === undefined ? [] : matchProblems('spec.matchResources', matchResources)),
    ...actionProblems('spec.validationActions', validationActions),
  ]
}

const exclusive = 'name and selector are mutually exclusive'

function paramRefProblems(field: string, paramRef: ParamRef): readonly Problem[] {
  const { name = '', selector, parameterNotFoundAction } = paramRef
  const hasBoth = name !== '' && selector !== undefined
  return [
    ...(name === '' ? [] : problemsWith(`${field}.name`, name, pathSegmentProblem)),
    ...(hasBoth ? [forbidden(`${field}.name`, exclusive)] : []),
    ...selectorProblems(`${field}.selector`, selector),
    ...(hasBoth ? [forbidden(`${field}.selector`, exclusive)] : []),
    ...(name === '' && selector === undefined ? [required(field, 'one of name or selector must be specified')] : []),
    ...wordProblems(`${field}.parameterNotFoundAction`, parameterNotFoundAction || undefined, ['Deny', 'Allow']),
  ]
}

function actionProblems(field: string, given: readonly string[]): readonly Problem[] {
  const places = repeatedPlaces(given)
  const both =
    'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers ' +
    'serves no purpose)'
  return [
    ...given.flatMap((action, index) => [
      ...(actions.includes(action) ? [] : [notSupported(`${field}[${index}]`, action, actions)]),
      ...(places.has(index) ? [duplicate(`${field}[${index}]`, action)] : []),
    ]),
    ...(given.includes('Deny') && given.includes('Warn') ? [invalid(field, given, both)] : []),
    ...(given.length === 0 ? [required(field, 'at least one validation action is required')] : []),
  ]
}
