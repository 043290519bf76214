/** Questions about the access of a user (apiserver/pkg/cel/library/authz.go): `authorizer.group('').resource('pods').check('get')`. */
import { dnsLabelProblem, dnsSubdomainProblem } from '../../../api/names.ts'
import { type CelOutcome, Deferred, noSuchOverload, OpaqueValue, type Value } from '../values/value.ts'
import { type FunctionDefinition, type FunctionTable, fail } from './definition.ts'

/** What an expression asks. `account`: the service account that it asks about; undefined: the user of the request. */
export type AccessQuestion = { readonly verb: string; readonly account: AccountName | undefined } & (
  | { readonly path: string }
  | AskedResource
)

export type AskedResource = {
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** As the expression writes it; '': none. */
  readonly fieldSelector: string
}

export type AccountName = { readonly namespace: string; readonly name: string }
/** `error`: why there is no decision; '': there is one. */
export type AccessAnswer = { readonly allowed: boolean; readonly reason: string; readonly error: string }
export type AskAccess = (question: AccessQuestion) => Promise<AccessAnswer>

abstract class AccessValue extends OpaqueValue {
  equals(other: OpaqueValue): boolean {
    return other === this
  }
}

export class AuthorizerValue extends AccessValue {
  readonly typeName = 'kubernetes.authorization.Authorizer'
  readonly ask: AskAccess
  readonly account: AccountName | undefined

  constructor(ask: AskAccess, account?: AccountName) {
    super()
    this.ask = ask
    this.account = account
  }
}

class PathCheckValue extends AccessValue {
  readonly typeName = 'kubernetes.authorization.PathCheck'
  readonly authorizer: AuthorizerValue
  readonly path: string

  constructor(authorizer: AuthorizerValue, path: string) {
    super()
    this.authorizer = authorizer
    this.path = path
  }
}

class GroupCheckValue extends AccessValue {
  readonly typeName = 'kubernetes.authorization.GroupCheck'
  readonly authorizer: AuthorizerValue
  readonly group: string

  constructor(authorizer: AuthorizerValue, group: string) {
    super()
    this.authorizer = authorizer
    this.group = group
  }
}

export class ResourceCheckValue extends AccessValue {
  readonly typeName = 'kubernetes.authorization.ResourceCheck'
  readonly authorizer: AuthorizerValue
  readonly asked: AskedResource

  constructor(authorizer: AuthorizerValue, asked: AskedResource) {
    super()
    this.authorizer = authorizer
    this.asked = asked
  }
}

class DecisionValue extends AccessValue {
  readonly typeName = 'kubernetes.authorization.Decision'
  readonly answer: AccessAnswer

  constructor(answer: AccessAnswer) {
    super()
    this.answer = answer
  }
}

function pathCheck([authorizer, path]: readonly Value[]): CelOutcome {
  if (!(authorizer instanceof AuthorizerValue) || typeof path !== 'string') return noSuchOverload
  return path.trim() === '' ? fail('path must not be empty') : new PathCheckValue(authorizer, path)
}

function groupCheck([authorizer, group]: readonly Value[]): CelOutcome {
  if (!(authorizer instanceof AuthorizerValue) || typeof group !== 'string') return noSuchOverload
  return new GroupCheckValue(authorizer, group)
}

function ofAccount([authorizer, namespace, name]: readonly Value[]): CelOutcome {
  if (!(authorizer instanceof AuthorizerValue) || typeof namespace !== 'string' || typeof name !== 'string') {
    return noSuchOverload
  }
  if (dnsSubdomainProblem(name) !== undefined) return fail('Invalid service account name')
  if (dnsLabelProblem(namespace) !== undefined) return fail('Invalid service account namespace')
  return new AuthorizerValue(authorizer.ask, { namespace, name })
}

function resourceCheck([check, resource]: readonly Value[]): CelOutcome {
  if (!(check instanceof GroupCheckValue) || typeof resource !== 'string') return noSuchOverload
  if (resource.trim() === '') return fail('resource must not be empty')
  const whole = { subresource: '', namespace: '', name: '', fieldSelector: '' }
  return new ResourceCheckValue(check.authorizer, { group: check.group, resource, ...whole })
}

function checked([check, verb]: readonly Value[]): CelOutcome | Deferred {
  if (typeof verb !== 'string') return noSuchOverload
  if (!(check instanceof PathCheckValue) && !(check instanceof ResourceCheckValue)) return noSuchOverload
  const { ask, account } = check.authorizer
  const asked = check instanceof PathCheckValue ? { path: check.path } : check.asked
  return new Deferred(async () => new DecisionValue(await ask({ verb, account, ...asked })))
}

const resourceType = 'kubernetes.authorization.ResourceCheck'

const narrowed = (field: 'subresource' | 'namespace' | 'name' | 'fieldSelector'): FunctionDefinition => ({
  overloads: [`${resourceType}.(string): ${resourceType}`],
  call: ([check, value]) => {
    if (!(check instanceof ResourceCheckValue) || typeof value !== 'string') return noSuchOverload
    return new ResourceCheckValue(check.authorizer, { ...check.asked, [field]: value })
  },
})

const decisionPart = (type: string, part: (answer: AccessAnswer) => Value): FunctionDefinition => ({
  overloads: [`kubernetes.authorization.Decision.(): ${type}`],
  call: ([decision]) => (decision instanceof DecisionValue ? part(decision.answer) : noSuchOverload),
})

/** Two checks are the most that an expression can afford (apiserver/pkg/cel/library/cost.go). */
const checkCost = 350_000

export const accessFunctions: FunctionTable = {
  path: {
    overloads: ['kubernetes.authorization.Authorizer.(string): kubernetes.authorization.PathCheck'],
    call: pathCheck,
  },
  group: {
    overloads: ['kubernetes.authorization.Authorizer.(string): kubernetes.authorization.GroupCheck'],
    call: groupCheck,
  },
  serviceAccount: {
    overloads: ['kubernetes.authorization.Authorizer.(string, string): kubernetes.authorization.Authorizer'],
    call: ofAccount,
  },
  resource: {
    overloads: [`kubernetes.authorization.GroupCheck.(string): ${resourceType}`],
    call: resourceCheck,
  },
  subresource: narrowed('subresource'),
  namespace: narrowed('namespace'),
  name: narrowed('name'),
  fieldSelector: narrowed('fieldSelector'),
  // No rule of a role depends on labels.
  labelSelector: {
    overloads: [`${resourceType}.(string): ${resourceType}`],
    call: ([check, selector]) =>
      check instanceof ResourceCheckValue && typeof selector === 'string' ? check : noSuchOverload,
  },
  check: {
    overloads: [
      'kubernetes.authorization.PathCheck.(string): kubernetes.authorization.Decision',
      `${resourceType}.(string): kubernetes.authorization.Decision`,
    ],
    cost: () => checkCost,
    call: checked,
  },
  allowed: decisionPart('bool', ({ allowed }) => allowed),
  reason: decisionPart('string', ({ reason }) => reason),
  errored: decisionPart('bool', ({ error }) => error !== ''),
  error: decisionPart('string', ({ error }) => error),
}
