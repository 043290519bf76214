/**
 * Checks the expressions of a policy against the types of the kinds that it is about (apiserver/pkg/admission/plugin/policy/validating/
 * typechecking.go). Its result is advice: the policy judges as it is written.
 */
import type { MatchResources, NamedRule } from '../../../api/admission/match-resources.ts'
import type { AdmissionPolicySpec, ExpressionWarning } from '../../../api/admission/validating-admission-policy.ts'
import { clipped } from '../../../api/problem.ts'
import { type CelType, dynType } from '../../cel/checking/types.ts'
import { expressionType } from '../expressions/admission-expression.ts'
import { composedType, type DeclaredVariables } from '../expressions/admission-variables.ts'
import type { KindRegistry, KindStrategy } from '../handlers/strategy.ts'
import { kindType } from './kind-types.ts'

export type KnownKinds = Pick<KindRegistry, 'at' | 'ofKind'>

/** maxTypesToCheck, which Kubernetes counts for each rule. */
const mostKinds = 10
/** Characters of one warning, and of all: each quotes the line of each problem for each kind. */
const longestWarning = 4_096
const mostCharacters = 65_536

/** In pieces, each of them an expression for a kind, or the type of a kind. */
export function* typeWarnings(
  spec: AdmissionPolicySpec,
  kinds: KnownKinds,
): Generator<undefined, readonly ExpressionWarning[]> {
  const checked = yield* checkedKinds(spec, kinds)
  const found: ExpressionWarning[] = []
  let characters = 0
  for (const { fieldRef, source } of checkedExpressions(spec)) {
    const problems: string[] = []
    for (const { name, declared } of checked) {
      const type = expressionType(source, declared)
      if ('problem' in type) problems.push(`${name}: ${type.problem}\n`)
      yield
    }
    if (problems.length === 0) continue
    const warning = clipped(problems.join('\n'), longestWarning)
    found.push({ fieldRef, warning })
    characters += warning.length
    if (characters > mostCharacters) break
  }
  return found
}

type CheckedKind = { readonly name: string; readonly declared: DeclaredVariables }

/** With the variables of the policy. Kubernetes checks these for their types only: what is wrong with them is refused when they are written. */
function* checkedKinds(spec: AdmissionPolicySpec, kinds: KnownKinds): Generator<undefined, readonly CheckedKind[]> {
  const { paramKind, variables = [], matchConstraints = {} } = spec
  const paramsKind = paramKind && kinds.ofKind(paramKind.apiVersion ?? '', paramKind.kind ?? '')
  const params = paramsKind && kindType(paramsKind)
  const checked: CheckedKind[] = []
  for (const kind of kindsToCheck(matchConstraints, kinds)) {
    const composed = new Map<string, CelType>()
    const object = kindType(kind)
    const declared = { hasParams: paramKind !== undefined, hasAuthorizer: true, composed, object, params }
    yield
    for (const { name, expression } of variables) {
      const type = expressionType(expression, declared)
      composed.set(name, 'problem' in type ? dynType : composedType(type))
      yield
    }
    checked.push({ name: `${kind.group}/${kind.version}, Kind=${kind.kind}`, declared })
  }
  return checked
}

function checkedExpressions({ validations = [] }: AdmissionPolicySpec) {
  return validations.flatMap(({ expression, messageExpression = '' }, index) => {
    const field = `spec.validations[${index}]`
    return [
      { fieldRef: `${field}.expression`, source: expression },
      ...(messageExpression === '' ? [] : [{ fieldRef: `${field}.messageExpression`, source: messageExpression }]),
    ]
  })
}

/** The kinds that the rules name one by one, in the order of group, version and kind. */
export function kindsToCheck({ resourceRules = [] }: MatchResources, kinds: KnownKinds): readonly KindStrategy[] {
  const found = new Set<KindStrategy>()
  for (const rule of resourceRules) {
    for (const kind of kindsOfRule(rule, kinds)) {
      found.add(kind)
      if (found.size === mostKinds) return inOrder([...found])
    }
  }
  return inOrder([...found])
}

function* kindsOfRule({ apiGroups = [], apiVersions = [], resources = [] }: NamedRule, kinds: KnownKinds) {
  if ([...apiGroups, ...apiVersions].some((name) => name.includes('*'))) return
  const plain = resources.filter((name) => !/[*/]/.test(name)).sort()
  for (const group of [...apiGroups].sort()) {
    for (const version of [...apiVersions].sort()) {
      for (const resource of plain) {
        const kind = kinds.at(group, version, resource)
        if (kind !== undefined) yield kind
      }
    }
  }
}

function inOrder(kinds: readonly KindStrategy[]): readonly KindStrategy[] {
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  return [...kinds].sort(
    (a, b) => compare(a.group, b.group) || compare(a.version, b.version) || compare(a.kind, b.kind),
  )
}
