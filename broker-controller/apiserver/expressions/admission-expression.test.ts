import { test } from 'tap'
import { admissionExpression, type WantedResult } from './admission-expression.ts'
import { composedType, conditionVariables, type DeclaredVariables } from './admission-variables.ts'

const problem = (source: string, declared: DeclaredVariables = conditionVariables, wanted: WantedResult = 'bool') => {
  const made = admissionExpression(source, declared, wanted)
  return 'problem' in made ? made.problem : ''
}

test('an expression names only the variables of its place, and their fields', async (t) => {
  for (const source of [
    'object.spec.anything > 1',
    'oldObject == null',
    "request.userInfo.extra['a'][0] == 'b'",
    'namespaceObject.status.conditions.all(one, one.status == "True")',
    "authorizer.group('apps').resource('deployments').check('get').allowed()",
    "authorizer.requestResource.namespace('a').labelSelector('a=b').fieldSelector('c=d').check('list').allowed()",
    'type(authorizer.requestResource) == kubernetes.authorization.ResourceCheck',
  ]) {
    t.equal(problem(source), '', source)
  }
  t.match(problem('request.object.spec == null'), /undefined field 'object'/)
  t.match(problem('namespaceObject.metadata.managedFields == null'), /undefined field 'managedFields'/)
  t.match(problem('params == null'), /undeclared reference to 'params'/)
  t.match(problem('variables.x == 1'), /undeclared reference to 'variables'/)
  t.match(problem('authorizer.allowed()'), /found no matching overload for 'allowed'/)
  const plain = { hasParams: true, hasAuthorizer: false }
  t.equal(problem('params.limit > 1', plain), '')
  t.match(problem("authorizer.path('/').check('get').allowed()", plain), /undeclared reference to 'authorizer'/)
})

test('the result of an expression has the type of its place', async (t) => {
  t.equal(problem('object.x'), 'must evaluate to bool but got dyn')
  t.equal(problem('[1]', conditionVariables, 'string'), 'must evaluate to string but got list(int)')
  t.equal(problem('1', conditionVariables, 'text'), 'must evaluate to one of [string null_type] but got int')
  t.equal(problem('null', conditionVariables, 'text'), '')
  t.equal(problem('"a"', conditionVariables, 'text'), '')
  t.equal(problem('object.x', conditionVariables, 'any'), '')
  t.match(problem('[] bad expression'), /^compilation failed: ERROR: <input>:1:4: Syntax error/)
})

test('a variable of a policy has the type of its expression, or any where it is not a plain one', async (t) => {
  const typeOf = (source: string, composed = new Map()) => {
    const made = admissionExpression(source, { ...conditionVariables, composed }, 'any')
    if ('problem' in made) throw new Error(made.problem)
    return composedType(made.type)
  }
  const composed = new Map([
    ['count', typeOf('object.items.size()')],
    ['names', typeOf('["a"]')],
    ['limit', typeOf('quantity("1Gi")')],
  ])
  const declared = { ...conditionVariables, composed }
  t.equal(problem('variables.count > 1 && variables.names[0] == "a" && variables.limit.anything', declared), '')
  t.match(
    problem('variables.count > "1"', declared),
    /found no matching overload for '_>_' applied to '\(int, string\)'/,
  )
  t.match(problem('variables.later == 1', declared), /undefined field 'later'/)
})
