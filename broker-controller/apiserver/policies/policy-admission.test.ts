import { test } from 'tap'
import { withMatchDefaults } from '../../../api/admission/match-resources.ts'
import type { AdmissionPolicySpec } from '../../../api/admission/validating-admission-policy.ts'
import type { PolicyBindingSpec } from '../../../api/admission/validating-admission-policy-binding.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Authorizer } from '../handlers/authorizer.ts'
import type { Operation, ReviewedWrite, WebhookGate } from '../handlers/webhook-gate.ts'
import { policiesBeforeWebhooks } from './admission-gate.ts'
import { policyAdmission } from './policy-admission.ts'

const apiVersion = 'admissionregistration.k8s.io/v1'
const deployments = [
  { operations: ['CREATE', 'UPDATE'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] },
]

type Bound = PolicyBindingSpec & { readonly name?: string }

/** Admission by one policy with these bindings. */
async function anAdmission(
  spec: AdmissionPolicySpec,
  bindings: readonly Bound[] = [{}],
  objects: readonly AnyObject[] = [],
  access: Pick<Authorizer, 'decide'> = { decide: async () => ({ allowed: true, reason: '' }) },
) {
  const store = memoryStore({ clock })
  const labels = { team: 'red' }
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels } })
  const { matchConstraints = { resourceRules: deployments } } = spec
  await store.create('validatingadmissionpolicies', {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'p' },
    spec: { failurePolicy: 'Fail', ...spec, matchConstraints: withMatchDefaults(matchConstraints) },
  })
  for (const { name = 'b', matchResources, ...more } of bindings) {
    await store.create('validatingadmissionpolicybindings', {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: {
        policyName: 'p',
        validationActions: ['Deny'],
        ...more,
        ...(matchResources && { matchResources: withMatchDefaults(matchResources) }),
      },
    })
  }
  for (const object of objects) await store.create('configmaps', object as never)
  const registry = metricsRegistry()
  return { store, registry, gate: policyAdmission({ store, kinds: builtInKinds, access, clock, registry }) }
}

const deployment = (replicas = 1, more: object = {}): AnyObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default', ...more },
  spec: { replicas },
})

function aWrite(more: Partial<ReviewedWrite> = {}, resourceId = 'deployments') {
  const resource = builtInKinds.get(resourceId)
  if (resource === undefined) throw new Error(resourceId)
  const trail = { warnings: [] as string[], annotations: new Map<string, string>() }
  const namespace = resource.namespaced ? 'default' : ''
  const write: ReviewedWrite = {
    operation: 'CREATE',
    route: { kind: 'resource', verb: 'create', resource, namespace, name: '', subresource: '' },
    identity: { user: 'ada', groups: [] },
    name: 'web',
    object: deployment(),
    old: undefined,
    query: new URLSearchParams(),
    dryRun: false,
    signal: new AbortController().signal,
    startedMs: clock.monotonicMs(),
    trail: {
      warn: (text) => void trail.warnings.push(text),
      annotate: (key, value) => void trail.annotations.set(key, value),
    },
    ...more,
  }
  return { write, trail }
}

type Refusal = { readonly code: number; readonly reason: string; readonly message: string }

/** The refusal of a write by one policy; undefined: it is admitted. */
async function refused(
  spec: AdmissionPolicySpec,
  bindings?: readonly Bound[],
  write: Partial<ReviewedWrite> = {},
  objects: readonly AnyObject[] = [],
): Promise<string | undefined> {
  const { gate } = await anAdmission(spec, bindings, objects)
  return gate.validate(aWrite(write).write).then(
    () => undefined,
    ({ message }: Refusal) => message.replace(/^deployments\.apps "web" is forbidden: /, ''),
  )
}

const validation = (expression: string, more: object = {}): AdmissionPolicySpec => ({
  validations: [{ expression, ...more }],
})
const denial = (message: string, binding = 'b') =>
  `ValidatingAdmissionPolicy 'p' with binding '${binding}' denied request: ${message}`

test('a policy denies what one of its validations does not hold for, as kube-apiserver words it', async (t) => {
  const { gate } = await anAdmission(validation('object.spec.replicas > 1'))
  await t.rejects(gate.validate(aWrite().write), {
    code: 422,
    reason: 'Invalid',
    message: `deployments.apps "web" is forbidden: ${denial('failed expression: object.spec.replicas > 1')}`,
    details: {
      ...{ name: 'web', group: 'apps', kind: 'deployments' },
      causes: [{ reason: '', message: denial('failed expression: object.spec.replicas > 1') }],
    },
  })
  await t.resolves(gate.validate(aWrite({ object: deployment(2) }).write))
  const other = { ...deployment(1), kind: 'ReplicaSet' }
  await t.resolves(gate.validate(aWrite({ object: other }, 'replicasets').write), 'a kind that no rule names')
})

test('a reason decides about the code of the answer', async (t) => {
  for (const [reason, code] of [
    ['Forbidden', 403],
    ['Invalid', 422],
    ['RequestEntityTooLarge', 413],
  ] as const) {
    const { gate } = await anAdmission(validation('false', { reason }))
    await t.rejects(gate.validate(aWrite().write), { code, reason })
  }
})

test('the message is what its expression gives, or the text, or the expression that failed', async (t) => {
  const message = 'wants more'
  const expression = 'object.spec.replicas > 1'
  const texts = async (more: object) => refused(validation(expression, more))
  t.equal(await texts({ message: ' wants more ' }), denial(message))
  t.equal(await texts({ message, messageExpression: "'got ' + string(object.spec.replicas)" }), denial('got 1'))
  for (const messageExpression of ["'got ' + object.spec.replicas", "' '", "'a\\nb'", 'string(object.none)']) {
    t.equal(await texts({ message, messageExpression }), denial(message), messageExpression)
    t.equal(await texts({ messageExpression }), denial(`failed expression: ${expression}`), messageExpression)
  }
  t.equal(await texts({ messageExpression: `'${'a'.repeat(5_200)}'` }), denial(`failed expression: ${expression}`))
})

test('a policy without a binding, and a binding without a policy, do nothing', async (t) => {
  t.equal(await refused(validation('false'), []), undefined)
  t.equal(await refused(validation('false'), [{ policyName: 'other' }]), undefined)
})

test('an expression that has no value denies the write, unless failures are ignored', async (t) => {
  const spec = validation('object.none > 1')
  t.equal(await refused(spec), denial("expression 'object.none > 1' resulted in error: no such key: none"))
  t.equal(await refused({ ...spec, failurePolicy: 'Ignore' }), undefined)
  const stored = validation('] bad')
  t.match(await refused(stored), /denied request: compilation error: compilation failed: ERROR/)
  t.equal(await refused({ ...stored, failurePolicy: 'Ignore' }), undefined)
})

test('variables are evaluated when an expression first reads them, and may build on earlier ones', async (t) => {
  const variables = [
    { name: 'replicas', expression: 'object.spec.replicas' },
    { name: 'isOdd', expression: 'variables.replicas % 2 == 1' },
    { name: 'broken', expression: 'object.none' },
  ]
  const spec: AdmissionPolicySpec = {
    variables,
    validations: [{ expression: 'variables.replicas > 1' }, { expression: 'variables.isOdd' }],
  }
  const given = (replicas: number) => refused(spec, undefined, { object: deployment(replicas) })
  t.equal(await given(1), denial('failed expression: variables.replicas > 1'))
  t.equal(await given(2), denial('failed expression: variables.isOdd'))
  t.equal(await given(3), undefined)
  t.equal(await refused({ variables, ...validation('has(variables.broken)') }), undefined, 'it is not read')
  t.equal(await refused({ variables, ...validation('variables.broken == 1 || true') }), undefined)
  t.equal(
    await refused({ variables, ...validation('variables.broken == 1') }),
    denial(
      'expression \'variables.broken == 1\' resulted in error: composited variable "broken" fails to evaluate: no such key: none',
    ),
  )
  t.equal(await refused({ variables, ...validation('variables.?isOdd.orValue(false)') }), undefined)
})

test('a variable is evaluated once for all validations', async (t) => {
  let asked = 0
  const access = {
    async decide() {
      asked += 1
      return { allowed: true, reason: '' }
    },
  }
  // A check costs 350,000 of 1,000,000: three expressions that each did it again would still be allowed, but cost more than they may.
  const check = "authorizer.path('/x').check('get').allowed() && authorizer.path('/y').check('get').allowed()"
  const spec: AdmissionPolicySpec = {
    variables: [{ name: 'mayRead', expression: check }],
    validations: Array.from({ length: 20 }, () => ({ expression: 'variables.mayRead' })),
  }
  const { gate } = await anAdmission(spec, [{}], [], access)
  await t.resolves(gate.validate(aWrite().write))
  t.equal(asked, 2)
})

test('the namespace, the request and the authorizer can be named', async (t) => {
  for (const expression of [
    "namespaceObject.metadata.labels.team == 'red' && namespaceObject.metadata.name == 'default'",
    "request.operation == 'CREATE' && request.kind.kind == 'Deployment' && request.userInfo.username == 'ada'",
    "authorizer.requestResource.check('create').allowed()",
    'oldObject == null',
  ]) {
    t.equal(await refused(validation(expression)), undefined, expression)
  }
})

test('rules, names, exclusions and selectors choose what is judged', async (t) => {
  const no = validation('false')
  const [rule] = deployments
  const judges = async (matchConstraints: object, write: Partial<ReviewedWrite> = {}) =>
    (await refused({ ...no, matchConstraints }, undefined, write)) !== undefined
  const named = (...resourceNames: string[]) => [{ ...rule, resourceNames }]
  t.equal(await judges({ resourceRules: named('web') }), true)
  t.equal(await judges({ resourceRules: named('other') }), false)
  t.equal(await judges({ resourceRules: deployments, excludeResourceRules: named('web') }), false)
  t.equal(await judges({ resourceRules: deployments, excludeResourceRules: named('other') }), true)
  const team = (value: string) => ({ matchLabels: { team: value } })
  t.equal(await judges({ resourceRules: deployments, namespaceSelector: team('red') }), true)
  t.equal(await judges({ resourceRules: deployments, namespaceSelector: team('blue') }), false)
  t.equal(await judges({ resourceRules: deployments, objectSelector: team('red') }), false)
  const labelled = deployment(1, { labels: { team: 'red' } })
  t.equal(await judges({ resourceRules: deployments, objectSelector: team('red') }, { object: labelled }), true)
  t.equal(await judges({ resourceRules: deployments, objectSelector: team('red') }, { old: labelled }), true)
  t.equal(await judges({ resourceRules: deployments }, { operation: 'DELETE', object: undefined }), false)
})

test('a binding narrows the writes of its policy', async (t) => {
  const bound = (value: string): Bound => ({
    name: value,
    matchResources: { namespaceSelector: { matchLabels: { team: value } } },
  })
  t.equal(await refused(validation('false'), [bound('blue')]), undefined)
  t.equal(await refused(validation('false'), [bound('blue'), bound('red')]), denial('failed expression: false', 'red'))
})

test('a rule for another version of the same objects judges them in that version, unless it is exact', async (t) => {
  const autoscaler: AnyObject = {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'h', namespace: 'default' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
      maxReplicas: 3,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
      ],
    },
  }
  const match = (matchPolicy: string) => ({
    matchPolicy,
    resourceRules: [
      { operations: ['*'], apiGroups: ['autoscaling'], apiVersions: ['v1'], resources: ['horizontalpodautoscalers'] },
    ],
  })
  const expression = "object.spec.targetCPUUtilizationPercentage < 50 || request.kind.version != 'v1'"
  const judged = async (matchPolicy: string) => {
    const { gate } = await anAdmission({ ...validation(expression), matchConstraints: match(matchPolicy) })
    const { write } = aWrite({ object: autoscaler, name: 'h' }, 'horizontalpodautoscalers')
    return gate.validate(write).then(
      () => 'admitted',
      ({ code }: Refusal) => code,
    )
  }
  t.equal(await judged('Equivalent'), 422)
  t.equal(await judged('Exact'), 'admitted')
})

test('conditions of a policy skip it, or fail by its failure policy', async (t) => {
  const conditioned = (expression: string, more: AdmissionPolicySpec = {}): AdmissionPolicySpec => ({
    ...validation('false'),
    variables: [{ name: 'name', expression: 'object.metadata.name' }],
    matchConditions: [{ name: 'c', expression }],
    ...more,
  })
  t.equal(await refused(conditioned("variables.name == 'skip-me'")), undefined)
  t.equal(await refused(conditioned("variables.name != 'skip-me'")), denial('failed expression: false'))
  t.match(
    await refused(conditioned('object.none == 1')),
    /denied request: expression 'object\.none == 1' resulted in error/,
  )
  t.equal(await refused(conditioned('object.none == 1', { failurePolicy: 'Ignore' })), undefined)
})

const limit = (name: string, most: number, labels = {}): AnyObject =>
  ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default', labels },
    data: { most: String(most) },
  }) as unknown as AnyObject

test('parameters are read by name or by labels, and each object of them judges', async (t) => {
  const spec: AdmissionPolicySpec = {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    validations: [
      {
        expression: 'params == null || object.spec.replicas <= int(params.data.most)',
        messageExpression: "'more than ' + params.metadata.name + ' allows'",
      },
    ],
  }
  const objects = [limit('small', 2, { size: 'small' }), limit('large', 10)]
  const write = { object: deployment(5) }
  const judged = (paramRef: object | undefined) =>
    refused(
      spec,
      [paramRef === undefined ? {} : { paramRef: { parameterNotFoundAction: 'Deny', ...paramRef } }],
      write,
      objects,
    )
  t.equal(await judged({ name: 'large' }), undefined)
  t.equal(await judged({ name: 'small' }), denial('more than small allows'))
  t.equal(await judged({ name: 'small', namespace: 'default' }), denial('more than small allows'))
  t.equal(await judged({ selector: {} }), denial('more than small allows'))
  t.equal(await judged({ selector: { matchLabels: { size: 'small' } } }), denial('more than small allows'))
  const none = 'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction'
  t.equal(await judged({ name: 'none' }), denial(none))
  t.equal(await judged({ name: 'small', namespace: 'other' }), denial(none))
  t.equal(await judged({ selector: { matchLabels: { size: 'none' } } }), denial(none))
  t.equal(await judged({ name: 'none', parameterNotFoundAction: 'Allow' }), undefined)
  t.equal(await judged(undefined), undefined, 'without a reference there are no parameters')
})

test('parameters that cannot be there are a failure of the policy or of its binding', async (t) => {
  const spec = (apiVersion: string, kind: string): AdmissionPolicySpec => ({
    ...validation('true'),
    paramKind: { apiVersion, kind },
  })
  const paramRef = { name: 'a', parameterNotFoundAction: 'Allow' }
  const why =
    "failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'"
  const unknown = spec('rules.example.com/v1', 'Limit')
  t.equal(await refused(unknown, [{ paramRef }]), `ValidatingAdmissionPolicy 'p' denied request: ${why}`)
  t.equal(await refused({ ...unknown, failurePolicy: 'Ignore' }, [{ paramRef }]), undefined)
  t.equal(
    await refused(spec('v1', 'Namespace'), [{ paramRef: { ...paramRef, namespace: 'x' } }]),
    denial('failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`'),
  )
  const all = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }]
  const { gate } = await anAdmission({ ...spec('v1', 'ConfigMap'), matchConstraints: { resourceRules: all } }, [
    { paramRef },
  ])
  const namespace: AnyObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'new' } }
  await t.rejects(gate.validate(aWrite({ object: namespace, name: 'new' }, 'namespaces').write), {
    message: /cannot use namespaced paramRef in policy binding that matches cluster-scoped resources$/,
  })
})

test('a binding may warn and write to the audit log instead of a denial', async (t) => {
  const { gate, registry } = await anAdmission(validation('false', { message: 'too\tfew\rreplicas' }), [
    { validationActions: ['Warn', 'Audit'] },
  ])
  const { write, trail } = aWrite()
  await gate.validate(write)
  t.same(trail.warnings, ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': too\tfew replicas"])
  const [[key, value = ''] = []] = [...trail.annotations]
  t.equal(key, 'validation.policy.admission.k8s.io/validation_failure')
  t.same(JSON.parse(value), [
    {
      ...{ message: 'too\tfew\rreplicas', policy: 'p', binding: 'b', expressionIndex: 0 },
      validationActions: ['Warn', 'Audit'],
    },
  ])
  for (const action of ['warn', 'audit']) {
    const labels = `policy="p",policy_binding="b",error_type="invalid_error",enforcement_action="${action}"`
    t.match(registry.text(), `apiserver_validating_admission_policy_check_total{${labels}} 1`)
  }
})

test('audit annotations have the values of all bindings, and one that has no value denies the write', async (t) => {
  const annotated = (valueExpression: string, more: AdmissionPolicySpec = {}): AdmissionPolicySpec => ({
    auditAnnotations: [{ key: 'replicas', valueExpression }],
    ...more,
  })
  const written = async (spec: AdmissionPolicySpec, bindings: readonly Bound[]) => {
    const { gate } = await anAdmission(spec, bindings, [limit('a', 1), limit('c', 2)])
    const { write, trail } = aWrite()
    await gate.validate(write)
    return Object.fromEntries(trail.annotations)
  }
  t.same(await written(annotated("' is ' + string(object.spec.replicas)"), [{}]), { 'p/replicas': 'is 1' })
  const ofParams = annotated('params.data.most', { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } })
  const paramRef = { selector: {}, parameterNotFoundAction: 'Deny' }
  t.same(await written(annotated('null'), [{}]), {}, 'null is not an annotation')
  t.same(await written(annotated("''"), [{}]), {})
  const many = { ...ofParams, auditAnnotations: [{ key: 'most', valueExpression: 'string(params.data.most)' }] }
  t.same(await written(many, [{ paramRef }, { name: 'again', paramRef }]), { 'p/most': '1, 2' })
  t.match(await refused(annotated('string(object.none)')), /denied request: expression .* no such key: none$/)
  t.equal(await refused(annotated('string(object.none)', { failurePolicy: 'Ignore' })), undefined)
})

test('the validations of a policy share a budget, and all policies of a write another one', async (t) => {
  const items = Array.from({ length: 300 }, (_, index) => index)
  const object = { ...deployment(), spec: { items } }
  const costly = 'object.spec.items.all(a, object.spec.items.all(b, a + b >= 0))'
  const validations = (count: number) => ({
    validations: Array.from({ length: count }, () => ({ expression: costly })),
  })
  const out = 'validation failed due to running out of cost budget, no further validation rules will be run'
  t.equal(await refused(validations(2), undefined, { object }), undefined)
  t.equal(await refused(validations(20), undefined, { object }), denial(out))
  const bindings = Array.from({ length: 20 }, (_, index) => ({ name: `b${index + 10}` }))
  const together = async (failurePolicy: string) => {
    const { store } = await anAdmission({ ...validations(1), failurePolicy }, bindings)
    const access = { decide: async () => ({ allowed: true, reason: '' }) }
    const gate = policyAdmission({
      ...{ store, kinds: builtInKinds, access, clock },
      registry: metricsRegistry(),
      requestSteps: 3_000_000,
    })
    return gate.validate(aWrite({ object }).write).then(
      () => 'admitted',
      ({ message }: Refusal) => message,
    )
  }
  t.match(await together('Fail'), /with binding 'b1[1-9]' denied request: validation failed due to running out of cost/)
  t.equal(await together('Ignore'), 'admitted')
})

test('a write that policies judge for longer than a minute ends with a timeout', async (t) => {
  const { gate } = await anAdmission({ ...validation('true'), failurePolicy: 'Ignore' })
  const startedMs = clock.monotonicMs() - 61_000
  await t.rejects(gate.validate(aWrite({ startedMs }).write), { code: 504, reason: 'Timeout' })
})

test('policies judge webhook configurations, and neither policies nor bindings', async (t) => {
  const resourceRules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }]
  const { gate } = await anAdmission({ ...validation('false'), matchConstraints: { resourceRules } })
  const concerns = (kind: string, operation: Operation = 'DELETE') =>
    gate.concerns(aWrite({}, kind).write.route, operation)
  t.equal(await concerns('validatingwebhookconfigurations'), true)
  t.equal(await concerns('validatingadmissionpolicies'), false)
  t.equal(await concerns('validatingadmissionpolicybindings'), false)
})

test('policies judge after mutating webhooks and before validating ones', async (t) => {
  const calls: string[] = []
  const webhooks: WebhookGate = {
    nowMs: () => 0,
    concerns: async () => true,
    async mutate(write) {
      calls.push('mutate')
      return write.object
    },
    async validate() {
      calls.push('validate')
    },
  }
  const { gate } = await anAdmission(validation('object.spec.replicas > 1'))
  const both = policiesBeforeWebhooks(gate, webhooks)
  const { write } = aWrite()
  t.equal(await both.mutate(write), write.object)
  await t.rejects(both.validate(write), { code: 422 })
  await both.validate(aWrite({ object: deployment(2) }).write)
  t.same(calls, ['mutate', 'validate'], 'what a policy denies is not sent to webhooks')
})

test('a policy that was changed is compiled again', async (t) => {
  const { store, gate } = await anAdmission(validation('false'))
  await t.rejects(gate.validate(aWrite().write))
  const policy = await store.get('validatingadmissionpolicies', { namespace: '', name: 'p' })
  if (policy === undefined) throw new Error('p')
  await store.update('validatingadmissionpolicies', { ...policy, spec: { ...policy.spec, ...validation('true') } })
  await t.resolves(gate.validate(aWrite().write))
})
