import { test } from 'tap'
import type { AdmissionPolicySpec } from '../../../../api/admission/validating-admission-policy.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, type Document, type Got, patchTypes } from '../../../testing/api-in-memory.ts'

const group = '/apis/admissionregistration.k8s.io/v1'
const apiVersion = 'admissionregistration.k8s.io/v1'
const rule = { operations: ['CREATE', 'UPDATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }

const policy = (spec: AdmissionPolicySpec = {}, name = 'mine') => ({
  apiVersion: 'admissionregistration.k8s.io/v1' as const,
  kind: 'ValidatingAdmissionPolicy' as const,
  metadata: { name },
  spec: { matchConstraints: { resourceRules: [rule] }, validations: [{ expression: 'true' }], ...spec },
})
const binding = (spec: object = {}, name = 'mine') => ({
  apiVersion: 'admissionregistration.k8s.io/v1' as const,
  kind: 'ValidatingAdmissionPolicyBinding' as const,
  metadata: { name },
  spec: { policyName: 'mine', validationActions: ['Deny'], ...spec },
})

test('a policy and a binding get their defaults', async (t) => {
  const selectors = { namespaceSelector: {}, objectSelector: {}, matchPolicy: 'Equivalent' }
  const scoped = [{ ...rule, scope: '*' }]
  t.match(create('validatingadmissionpolicies', policy()), {
    spec: { failurePolicy: 'Fail', matchConstraints: { ...selectors, resourceRules: scoped } },
    status: {},
  })
  t.match(create('validatingadmissionpolicybindings', binding({ matchResources: { resourceRules: [rule] } })), {
    spec: { matchResources: { ...selectors, resourceRules: scoped } },
  })
  t.notOk('matchResources' in (create('validatingadmissionpolicybindings', binding()).spec as object))
})

test('a policy that cannot work is refused with the field', async (t) => {
  const cases: readonly (readonly [spec: AdmissionPolicySpec, ...problems: readonly string[]])[] = [
    [{ failurePolicy: 'No' }, 'spec.failurePolicy: Unsupported value: "No": supported values: "Fail", "Ignore"'],
    [{ paramKind: {} }, 'spec.paramKind.apiVersion: Required value', 'spec.paramKind.kind: Required value'],
    [
      { paramKind: { apiVersion: 'a/b/c', kind: 'K' } },
      'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
    ],
    [
      { paramKind: { apiVersion: 'a/', kind: 'K' } },
      'spec.paramKind.apiVersion: Invalid value: "a/": version must be specified',
    ],
    [{ matchConstraints: {} }, 'spec.matchConstraints.resourceRules: Required value'],
    [
      { matchConstraints: { resourceRules: [{ ...rule, resourceNames: ['a', 'a', '..'] }] } },
      'spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
      'spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "..": must not be \'..\'',
    ],
    [
      { matchConstraints: { resourceRules: [rule], excludeResourceRules: [{ ...rule, operations: [] }] } },
      'spec.matchConstraints.excludeResourceRules[0].operations: Required value',
    ],
    [{ matchConditions: [{ name: 'c', expression: '' }] }, 'spec.matchConditions[0].expression: Required value'],
    [
      { variables: [{ name: 'in', expression: ' ' }] },
      'spec.variables[0].name: Invalid value: "in": name is not a valid CEL identifier',
      'spec.variables[0].expression: Required value: expression is not specified',
    ],
    [
      { validations: [] },
      'spec.validations: Required value: validations or auditAnnotations must contain at least one item',
      'spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item',
    ],
    [
      { validations: [{ expression: ' ' }] },
      'spec.validations[0].expression: Required value: expression is not specified',
    ],
    [
      { validations: [{ expression: 'true', message: 'a\nb', messageExpression: ' ', reason: 'Gone' }] },
      'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
      'spec.validations[0].message: Invalid value: "a\\nb": message must not contain line breaks',
      'spec.validations[0].reason: Unsupported value: "Gone": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
    ],
    [
      { auditAnnotations: [{ key: 'a', valueExpression: '' }] },
      'spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified',
    ],
  ]
  for (const [spec, ...problems] of cases) {
    t.same(
      causes(() => create('validatingadmissionpolicies', policy(spec))),
      problems,
    )
  }
  const { matchConstraints: _, ...without } = policy().spec
  t.same(
    causes(() => create('validatingadmissionpolicies', { ...policy(), spec: without })),
    ['spec.matchConstraints: Required value'],
  )
  const keys = Array.from({ length: 21 }, (_unused, index) => ({ key: `k${index}`, valueExpression: 'null' }))
  t.match(
    causes(() => create('validatingadmissionpolicies', policy({ auditAnnotations: keys }))),
    [/^spec\.auditAnnotations: Invalid value: .*must not have more than 20 auditAnnotations$/],
  )
})

test('a binding that cannot work is refused with the field', async (t) => {
  const wrong = (spec: object) => causes(() => create('validatingadmissionpolicybindings', binding(spec)))
  t.same(wrong({ policyName: '' }), ['spec.policyName: Required value'])
  t.same(wrong({ validationActions: [] }), [
    'spec.validationActions: Required value: at least one validation action is required',
  ])
  t.match(wrong({ validationActions: ['Deny', 'Warn'] }), [/must not contain both Deny and Warn/])
  t.match(wrong({ validationActions: ['Deny', 'Deny', 'No'] }), [
    /validationActions\[1\]: Duplicate value: "Deny"/,
    /validationActions\[2\]: Unsupported value: "No": supported values: "Audit", "Deny", "Warn"/,
  ])
  const paramRef = (more: object) => wrong({ paramRef: { parameterNotFoundAction: 'Deny', ...more } })
  t.same(paramRef({ name: 'a' }), [])
  t.same(paramRef({}), ['spec.paramRef: Required value: one of name or selector must be specified'])
  t.same(paramRef({ name: 'a', selector: {} }), [
    'spec.paramRef.name: Forbidden: name and selector are mutually exclusive',
    'spec.paramRef.selector: Forbidden: name and selector are mutually exclusive',
  ])
  t.same(wrong({ paramRef: { name: 'a' } }), ['spec.paramRef.parameterNotFoundAction: Required value'])
})

test('conditions that were accepted stay as they are, until they or the kind of parameters change', async (t) => {
  const old = policy({ matchConditions: [{ name: 'a b', expression: 'true' }] })
  t.same(
    causes(() =>
      update('validatingadmissionpolicies', old, { ...old, spec: { ...old.spec, failurePolicy: 'Ignore' } }),
    ),
    [],
  )
  t.match(
    causes(() =>
      update('validatingadmissionpolicies', old, {
        ...old,
        spec: { ...old.spec, paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } },
      }),
    ),
    [/^spec\.matchConditions\[0\]\.name: Invalid value: "a b"/],
  )
})

const messageOf = ({ body }: Got) => body['message']

test('expressions are compiled with the types of what they name', async (t) => {
  const { ask } = await anApi(t)
  const refused = async (spec: AdmissionPolicySpec) => {
    const got = await ask('POST', `${group}/validatingadmissionpolicies?dryRun=All`, { body: policy(spec) })
    return got.code === 201 ? '' : messageOf(got)
  }
  t.equal(await refused({ validations: [{ expression: 'object.spec.replicas > 1' }] }), '')
  t.match(
    await refused({ validations: [{ expression: '[] bad expression' }] }),
    /spec\.validations\[0\]\.expression: Invalid value: "\[\] bad expression": compilation failed/,
  )
  t.match(await refused({ validations: [{ expression: 'object.x' }] }), /must evaluate to bool but got dyn/)
  t.match(await refused({ validations: [{ expression: 'params.x == 1' }] }), /undeclared reference to 'params'/)
  const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' }
  t.equal(await refused({ paramKind, validations: [{ expression: 'params.x == 1' }] }), '')
  const variables = [{ name: 'count', expression: 'size(object.items)' }]
  t.equal(await refused({ variables, validations: [{ expression: 'variables.count > 1' }] }), '')
  t.match(await refused({ variables, validations: [{ expression: 'variables.other > 1' }] }), /undefined field 'other'/)
  t.match(
    await refused({ variables: [{ name: 'a', expression: 'variables.b' }, ...variables] }),
    /spec\.variables\[0\]\.expression: .*undefined field 'b'/,
  )
  const message = (messageExpression: string) => refused({ validations: [{ expression: 'true', messageExpression }] })
  t.match(await message('1'), /messageExpression: Invalid value: "1": must evaluate to string but got int/)
  t.match(await message("authorizer.path('/').check('get').reason()"), /undeclared reference to 'authorizer'/)
  t.match(
    await refused({ auditAnnotations: [{ key: 'a', valueExpression: '1' }] }),
    /valueExpression: Invalid value: "1": must evaluate to one of \[string null_type\] but got int/,
  )
  t.match(await refused({ matchConditions: [{ name: 'c', expression: '1' }] }), /must evaluate to bool but got int/)
  t.match(
    await refused({ validations: [{ expression: `true || "${'a'.repeat(9_000)}" == ""` }] }),
    /may not be more than 8192 characters/,
  )
  const long = { expression: `true || "${'a'.repeat(8_000)}" == ""` }
  t.match(
    await refused({ validations: Array.from({ length: 30 }, () => long) }),
    /spec: Forbidden: the expressions have more than 200000 characters together/,
  )
})

test('policies and bindings are created, listed, changed and deleted, and a client may write the status', async (t) => {
  const { ask } = await anApi(t)
  const at = `${group}/validatingadmissionpolicies`
  const made = await ask('POST', at, { body: { ...policy(), status: { observedGeneration: 5 } } })
  t.match(made, { code: 201, body: { metadata: { generation: 1 }, status: {} } })
  t.same(made.body['status'], {}, 'a client does not set the status of a new policy')
  const status = { observedGeneration: 1, conditions: [aCondition] }
  const wrote = await ask('PATCH', `${at}/mine/status`, { body: { status }, type: patchTypes.merge })
  t.match(wrote, { code: 200, body: { status } })
  const wrong = { status: { conditions: [{ ...aCondition, status: 'Maybe', reason: '' }] } }
  const refused = await ask('PATCH', `${at}/mine/status`, { body: wrong, type: patchTypes.merge })
  t.match(messageOf(refused), /status\.conditions\[0\]\.status: Unsupported value: "Maybe"/)
  const failurePolicy = { body: { spec: { failurePolicy: 'Ignore' } }, type: patchTypes.strategic }
  t.match(await ask('PATCH', `${at}/mine`, failurePolicy), { code: 200, body: { metadata: { generation: 2 }, status } })
  const table = await ask('GET', at, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  t.match((table.body['rows'] as Document[])[0]?.['cells'], ['mine', 1, '<unset>'])
  t.match(await ask('DELETE', at), { code: 200 })
  t.same((await ask('GET', at)).body['items'], [])

  const bindings = `${group}/validatingadmissionpolicybindings`
  const paramRef = { selector: { matchLabels: { a: 'b' } }, parameterNotFoundAction: 'Deny' }
  t.match(await ask('POST', bindings, { body: binding({ paramRef }) }), { code: 201 })
  const shown = await ask('GET', bindings, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  t.match((shown.body['rows'] as Document[])[0]?.['cells'], ['mine', 'mine', /^&LabelSelector\{MatchLabels:.*a: b,/])
  t.equal((await ask('GET', `${bindings}/mine/status`)).code, 404, 'a binding has no status')
})

const aCondition = {
  ...{ type: 'Ready', status: 'True', reason: 'Fine', message: '' },
  lastTransitionTime: '2026-01-02T03:04:05Z',
}

test('a policy judges from the moment that it has a binding, until it has none', async (t) => {
  const { ask } = await anApi(t)
  const validations = [{ expression: "object.data.replicas > '1'", message: 'more' }]
  await ask('POST', `${group}/validatingadmissionpolicies`, { body: policy({ validations }) })
  const configs = '/api/v1/namespaces/default/configmaps'
  const config = (name: string, replicas: string) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { replicas } },
  })
  t.equal((await ask('POST', configs, { body: config('before', '1') })).code, 201)
  await ask('POST', `${group}/validatingadmissionpolicybindings`, { body: binding() })
  t.match(await ask('POST', configs, { body: config('small', '1') }), {
    code: 422,
    body: {
      reason: 'Invalid',
      message:
        "configmaps \"small\" is forbidden: ValidatingAdmissionPolicy 'mine' with binding 'mine' denied request: more",
    },
  })
  t.equal((await ask('POST', configs, { body: config('large', '2') })).code, 201)
  const smaller = { body: { data: { replicas: '1' } }, type: patchTypes.merge }
  t.equal((await ask('PATCH', `${configs}/large`, smaller)).code, 422)
  t.equal((await ask('DELETE', `${configs}/large`)).code, 200, 'no rule names deletions')
  await ask('DELETE', `${group}/validatingadmissionpolicybindings/mine`)
  t.equal((await ask('POST', configs, { body: config('small', '1') })).code, 201)
})

test('an author must be able to read the parameters that a policy or a binding names', async (t) => {
  const { ask, store } = await anApi(t)
  const ada = { user: 'ada', groups: ['system:authenticated'] }
  const rules = [{ apiGroups: [apiVersion.split('/', 1)[0] ?? ''], resources: ['*'], verbs: ['*'] }]
  const allow = async (name: string, given: object[]) => {
    const roles = 'rbac.authorization.k8s.io/v1'
    await store.create('clusterroles', { apiVersion: roles, kind: 'ClusterRole', metadata: { name }, rules: given })
    await store.create('clusterrolebindings', {
      ...{ apiVersion: roles, kind: 'ClusterRoleBinding', metadata: { name } },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'User', name: 'ada' }],
    })
  }
  await allow('policies', rules)
  const paramKind = { apiVersion: 'v1', kind: 'Secret' }
  const paramRef = { name: 'a', namespace: 'default', parameterNotFoundAction: 'Deny' }
  const writes = async () => [
    await ask('POST', `${group}/validatingadmissionpolicies`, { body: policy({ paramKind }), as: ada }),
    await ask('POST', `${group}/validatingadmissionpolicybindings`, { body: binding({ paramRef }), as: ada }),
  ]
  const [hidden, hiddenRef] = await writes()
  t.match(hidden, { code: 422 })
  t.match(
    hidden && messageOf(hidden),
    /spec\.paramKind: Forbidden: user ada must have "get" permission on all objects of the referenced paramKind \(kind=Secret, apiVersion=v1\)/,
  )
  t.match(hiddenRef && messageOf(hiddenRef), /spec\.paramRef: Forbidden: unable to get policy mine/)
  await ask('POST', `${group}/validatingadmissionpolicies`, { body: policy({ paramKind }) })
  const ofPolicy = await ask('POST', `${group}/validatingadmissionpolicybindings`, {
    body: binding({ paramRef }),
    as: ada,
  })
  t.match(messageOf(ofPolicy), /user ada does not have "get" permission on the object referenced by paramRef/)
  await ask('DELETE', `${group}/validatingadmissionpolicies/mine`)
  await allow('secrets', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }])
  t.same(
    (await writes()).map(({ code }) => code),
    [201, 201],
  )
})
