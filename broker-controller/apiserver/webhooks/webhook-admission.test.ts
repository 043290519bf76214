import { test } from 'tap'
import { type Webhook, withWebhookDefaults } from '../../../api/admission/webhook.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Attributes, Authorizer } from '../handlers/authorizer.ts'
import type { Operation, ReviewedWrite } from '../handlers/webhook-gate.ts'
import { reviewVersion } from './admission-review.ts'
import { webhookAdmission } from './webhook-admission.ts'
import type { WebhookCall } from './webhook-call.ts'

type Review = {
  readonly uid: string
  readonly object: AnyObject | null
  readonly oldObject: AnyObject | null
  readonly resource: { readonly version: string }
}
/** Thrown, or the response of the review. */
type Hook = (
  review: Review,
) => Error | { readonly [field: string]: unknown } | Promise<{ readonly [field: string]: unknown }>

const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }]
const allow: Hook = () => ({ allowed: true })
const patch = (...operations: unknown[]) => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
})
const label = (name: string, value: string) => ({ op: 'add', path: `/metadata/labels/${name}`, value })

/** Admission with these webhooks, each of which is called by its name. */
async function anAdmission(
  mutating: readonly Hooked[],
  validating: readonly Hooked[] = [],
  access: Pick<Authorizer, 'decide'> = { decide: async () => ({ allowed: true, reason: '' }) },
) {
  const store = memoryStore({ clock })
  const registry = metricsRegistry()
  const hooks = new Map([...mutating, ...validating].map(({ name, hook }) => [`https://${name}/`, hook]))
  const calls: string[] = []
  const warned: unknown[] = []
  const caller = {
    async call({ client: { url = '' }, body }: WebhookCall) {
      const { request } = JSON.parse(body) as { request: Review }
      calls.push(url.slice('https://'.length, -1))
      const answer = (await hooks.get(url)?.(request)) ?? new Error('no such webhook')
      if (answer instanceof Error) throw answer
      return { apiVersion: reviewVersion, kind: 'AdmissionReview', response: { uid: request.uid, ...answer } }
    },
  }
  const webhooksOf = (all: readonly Hooked[], isMutating: boolean) =>
    all.map(({ hook: _, ...webhook }) =>
      withWebhookDefaults(
        {
          rules,
          clientConfig: { url: `https://${webhook.name}/` },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          ...webhook,
        },
        isMutating,
      ),
    )
  const apiVersion = 'admissionregistration.k8s.io/v1'
  await store.create('mutatingwebhookconfigurations', {
    apiVersion,
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'm' },
    webhooks: webhooksOf(mutating, true),
  })
  await store.create('validatingwebhookconfigurations', {
    apiVersion,
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'v' },
    webhooks: webhooksOf(validating, false),
  })
  const labels = { team: 'red' }
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', labels } })
  const limited = { warn: (key: string, text: string, facts?: unknown) => void warned.push([key, text, facts]) }
  return {
    gate: webhookAdmission({ store, kinds: builtInKinds, access, caller, clock, registry, limited }),
    calls,
    warned,
    registry,
  }
}
type Hooked = Partial<Webhook> & { readonly name: string; readonly hook: Hook }

const config: AnyObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'default', labels: {} },
}

function aWrite(more: Partial<ReviewedWrite> = {}, resourceId = 'configmaps') {
  const resource = builtInKinds.get(resourceId)
  if (resource === undefined) throw new Error(resourceId)
  const trail = { warnings: [] as string[], annotations: new Map<string, string>() }
  const write: ReviewedWrite = {
    operation: 'CREATE',
    route: {
      kind: 'resource',
      verb: 'create',
      resource,
      namespace: resource.namespaced ? 'default' : '',
      name: '',
      subresource: '',
    },
    identity: { user: 'ada', groups: [] },
    name: 'c',
    object: config,
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

test('only operations that a rule names concern webhooks, and never their own configurations', async (t) => {
  const only = [{ ...rules[0], operations: ['DELETE'] }]
  const { gate } = await anAdmission([{ name: 'm', hook: allow, rules: only }])
  const concerns = (operation: Operation, kind = 'configmaps') => gate.concerns(aWrite({}, kind).write.route, operation)
  t.equal(await concerns('DELETE'), true)
  t.equal(await concerns('CREATE'), false)
  t.equal(await concerns('DELETE', 'mutatingwebhookconfigurations'), false)
  t.equal(await concerns('DELETE', 'validatingwebhookconfigurations'), false)
  const validating = await anAdmission([], [{ name: 'v', hook: allow, rules: only }])
  t.equal(await validating.gate.concerns(aWrite().write.route, 'DELETE'), true)
})

test('mutating webhooks are called in order, each with what the one before made', async (t) => {
  const seen: unknown[] = []
  const hooked = (name: string, hook: Hook): Hooked => ({
    name,
    hook(review) {
      seen.push(review.object?.metadata.labels)
      return hook(review)
    },
  })
  const { gate } = await anAdmission([
    hooked('a', () => patch(label('a', '1'))),
    hooked('b', allow),
    hooked('c', () => patch(label('c', '2'))),
  ])
  const { write } = aWrite()
  t.match(await gate.mutate(write), { metadata: { labels: { a: '1', c: '2' } } })
  t.same(seen, [{}, { a: '1' }, { a: '1' }])
  t.same(config.metadata.labels, {}, 'the given object is not changed')
})

test('the same object is given back where no webhook changes it, or none is chosen', async (t) => {
  for (const mutating of [[], [{ name: 'a', hook: allow }]]) {
    const { gate } = await anAdmission(mutating)
    t.equal(await gate.mutate(aWrite().write), config)
  }
})

test('a webhook is called once more if it wants to, and a later one changed the object', async (t) => {
  const again = { reinvocationPolicy: 'IfNeeded' }
  let changes = 0
  const changing: Hook = () => patch(label('x', String(changes++)))
  const order = async (...mutating: Hooked[]) => {
    const { gate, calls } = await anAdmission(mutating)
    await gate.mutate(aWrite().write)
    return calls.join('')
  }
  t.equal(await order({ name: 'a', hook: allow, ...again }, { name: 'b', hook: changing }), 'aba')
  t.equal(await order({ name: 'a', hook: allow }, { name: 'b', hook: changing }), 'ab', 'it does not want to')
  t.equal(await order({ name: 'a', hook: changing, ...again }, { name: 'b', hook: allow }), 'ab', 'its own change')
  const both = await order({ name: 'a', hook: changing, ...again }, { name: 'b', hook: changing, ...again })
  t.equal(both, 'abab', 'at most once more')
})

test('a patch that changes nothing has no webhook called once more', async (t) => {
  const same: Hook = () => patch({ op: 'add', path: '/metadata/labels', value: {} })
  const { gate, calls } = await anAdmission([
    { name: 'a', hook: allow, reinvocationPolicy: 'IfNeeded' },
    { name: 'b', hook: same },
  ])
  t.equal(await gate.mutate(aWrite().write), config)
  t.same(calls, ['a', 'b'])
})

test('a webhook for another version sees and changes the object in it, and the write stays in its own', async (t) => {
  const seen: Review[] = []
  const versionRules = (version: string) => [
    { operations: ['*'], apiGroups: ['autoscaling'], apiVersions: [version], resources: ['horizontalpodautoscalers'] },
  ]
  const hooked = (name: string, version: string, answer: Hook): Hooked => ({
    name,
    rules: versionRules(version),
    hook(review) {
      seen.push(review)
      return answer(review)
    },
  })
  const cpu = (averageUtilization: number) => [
    { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } },
  ]
  const { gate } = await anAdmission(
    [
      hooked('a', 'v2', () => patch({ op: 'replace', path: '/spec/maxReplicas', value: 7 })),
      hooked('b', 'v1', () => patch({ op: 'replace', path: '/spec/targetCPUUtilizationPercentage', value: 60 })),
    ],
    [hooked('v', 'v1', allow)],
  )
  const autoscaler = (utilization: number): AnyObject => ({
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'h', namespace: 'default' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
      maxReplicas: 3,
      metrics: cpu(utilization),
    },
  })
  const { write } = aWrite(
    { operation: 'UPDATE', object: autoscaler(50), old: autoscaler(40) },
    'horizontalpodautoscalers',
  )
  const result = await gate.mutate(write)
  t.match(result, { apiVersion: 'autoscaling/v2', spec: { maxReplicas: 7, metrics: cpu(60) } })
  t.match(seen, [
    { resource: { version: 'v2' }, object: { apiVersion: 'autoscaling/v2', spec: { maxReplicas: 3 } } },
    {
      resource: { version: 'v1' },
      object: { apiVersion: 'autoscaling/v1', spec: { maxReplicas: 7, targetCPUUtilizationPercentage: 50 } },
      oldObject: { apiVersion: 'autoscaling/v1', spec: { targetCPUUtilizationPercentage: 40 } },
    },
  ])
  await gate.validate(write)
  t.match(seen.at(-1), { resource: { version: 'v1' }, object: { apiVersion: 'autoscaling/v1' } })
})

test('selectors choose by the labels of the namespace and of the object, old or new', async (t) => {
  const chosen = async (webhook: Partial<Webhook>, write: Partial<ReviewedWrite> = {}) => {
    const { gate, calls } = await anAdmission(
      [{ name: 'm', hook: allow, ...webhook }],
      [{ name: 'v', hook: allow, ...webhook }],
    )
    const reviewed = aWrite(write).write
    await gate.mutate(reviewed)
    await gate.validate(reviewed)
    return calls.join('')
  }
  const team = (value: string) => ({ matchLabels: { team: value } })
  t.equal(await chosen({ namespaceSelector: team('red') }), 'mv')
  t.equal(await chosen({ namespaceSelector: team('blue') }), '')
  t.equal(await chosen({ objectSelector: team('red') }), '')
  const old = { ...config, metadata: { ...config.metadata, labels: { team: 'red' } } }
  t.equal(await chosen({ objectSelector: team('red') }, { old }), 'mv')
})

test('a patch that does not apply, and one of a deletion, are errors of the server', async (t) => {
  const { gate } = await anAdmission([{ name: 'm.example', hook: () => patch({ op: 'remove', path: '/nope' }) }])
  await t.rejects(gate.mutate(aWrite().write), {
    code: 500,
    message: /^Internal error occurred: admission webhook "m\.example" returned a patch that does not apply: /,
  })
  await t.rejects(gate.mutate(aWrite({ operation: 'DELETE', object: undefined, old: config }).write), {
    code: 500,
    message: /attempted to modify the object, which is not supported for this operation$/,
  })
})

test('a denial has the code of the webhook, and its text', async (t) => {
  const denial = async (status: unknown) => {
    const { gate } = await anAdmission([], [{ name: 'v.example', hook: () => ({ allowed: false, status }) }])
    return gate.validate(aWrite().write).then(
      () => undefined,
      ({ code, message }: { code: number; message: string }) => ({ code, message }),
    )
  }
  const denied = 'admission webhook "v.example" denied the request'
  t.same(await denial({ code: 403, message: 'no' }), { code: 403, message: `${denied}: no` })
  t.same(await denial({ code: 422, reason: 'Odd' }), { code: 422, message: `${denied}: Odd` })
  t.same(await denial(undefined), { code: 400, message: `${denied} without explanation` })
  for (const [code, answered] of [
    ...[401, 404, 405, 406, 409, 410, 413, 415, 429, 503, 504].map((one) => [one, one] as const),
    ...([
      [418, 400],
      [599, 500],
    ] as const),
  ]) {
    t.equal((await denial({ code }))?.code, answered, String(code))
  }
})

test('of several refusals the first in order is answered, whichever came first', async (t) => {
  let release = () => {}
  const late = new Promise<void>((resolve) => {
    release = resolve
  })
  const denies = (message: string) => ({ allowed: false, status: { message } })
  const { gate, calls } = await anAdmission(
    [],
    [
      { name: 'a', hook: allow },
      { name: 'b', hook: async () => late.then(() => denies('second')) },
      {
        name: 'c',
        hook() {
          release()
          return denies('third')
        },
      },
    ],
  )
  await t.rejects(gate.validate(aWrite().write), { message: 'admission webhook "b" denied the request: second' })
  t.same(calls.toSorted(), ['a', 'b', 'c'], 'all are asked')
})

test('a failed call is a refusal, or is noted where the policy ignores it', async (t) => {
  const hook = () => new Error('Post "https://v/": EOF')
  const strict = await anAdmission([], [{ name: 'v', hook }])
  const message = 'failed calling webhook "v": failed to call webhook: Post "https://v/": EOF'
  await t.rejects(strict.gate.validate(aWrite().write), {
    code: 500,
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ reason: '', message }] },
  })
  t.match(strict.warned, [['v', 'Admission webhook failed', { webhook: 'v', failurePolicy: 'Fail' }]])
  t.match(strict.registry.samplesOf('apiserver_admission_webhook_rejection_count'), [
    { labels: { name: 'v', error_type: 'calling_webhook_error' }, value: 1 },
  ])
  const failurePolicy = 'Ignore'
  const open = await anAdmission([{ name: 'm', hook, failurePolicy }], [{ name: 'v', hook, failurePolicy }])
  const { write, trail } = aWrite()
  t.equal(await open.gate.mutate(write), config)
  await open.gate.validate(write)
  t.same(
    [...trail.annotations],
    [
      ['failed-open.mutation.webhook.admission.k8s.io/round_0_index_0', 'm'],
      ['failed-open.validating.webhook.admission.k8s.io/round_0_index_0', 'v'],
    ],
  )
})

test('an answer that is not one counts as a failed call', async (t) => {
  const { gate } = await anAdmission([], [{ name: 'v', hook: () => ({ uid: 'other', allowed: true }) }])
  await t.rejects(gate.validate(aWrite().write), { code: 500, message: /expected response\.uid=/ })
})

test('warnings and annotations are passed on, also of a denial', async (t) => {
  const more = { warnings: ['old'], auditAnnotations: { owner: 'red' } }
  for (const allowed of [true, false]) {
    const { gate } = await anAdmission([], [{ name: 'v', hook: () => ({ allowed, ...more }) }])
    const { write, trail } = aWrite()
    await gate.validate(write).catch(() => undefined)
    t.same(trail.warnings, ['old'])
    t.same([...trail.annotations], [['v/owner', 'red']])
  }
})

const condition = (...expressions: readonly string[]) => ({
  matchConditions: expressions.map((expression, index) => ({ name: `c${index}`, expression })),
})

/** Which webhooks are called for a write, one mutating and one validating, both with these settings. */
async function calledWith(
  webhook: Partial<Webhook>,
  write: Partial<ReviewedWrite> = {},
  access?: Pick<Authorizer, 'decide'>,
) {
  const hooked = (name: string) => ({ name, hook: allow, ...webhook })
  const { gate, calls } = await anAdmission([hooked('m')], [hooked('v')], access)
  const reviewed = aWrite(write).write
  await gate.mutate(reviewed)
  await gate.validate(reviewed)
  return calls.join('')
}

test('conditions choose by the object, the one before, and the request', async (t) => {
  const chosen = (expression: string, write?: Partial<ReviewedWrite>) => calledWith(condition(expression), write)
  t.equal(await chosen("object.metadata.name != 'skip-me'"), 'mv')
  t.equal(await chosen("object.metadata.name == 'skip-me'"), '')
  t.equal(await chosen('oldObject == null'), 'mv')
  const deletion = { operation: 'DELETE' as const, object: undefined, old: config }
  t.equal(await chosen("object == null && oldObject.metadata.name == 'c'", deletion), 'mv')
  t.equal(await chosen("request.operation == 'CREATE' && request.userInfo.username == 'ada'"), 'mv')
  t.equal(await chosen("request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap'"), 'mv')
  t.equal(await chosen("request.namespace == 'default' && !request.dryRun && !has(request.subResource)"), 'mv')
  t.equal(await chosen("!('system:nodes' in request.userInfo.groups)"), 'mv')
})

test('a condition that is false decides whatever the others are; otherwise one that fails follows the failure policy', async (t) => {
  t.equal(await calledWith(condition('object.none', 'false')), '')
  t.equal(await calledWith({ ...condition('object.none == 1'), failurePolicy: 'Ignore' }), '')
  await t.rejects(calledWith(condition('true', 'object.none == 1')), {
    code: 403,
    message: 'configmaps "c" is forbidden: expression \'object.none == 1\' resulted in error: no such key: none',
  })
  await t.rejects(calledWith(condition('object.none == 1', 'object.other == 1')), {
    message: /is forbidden: \[expression .*none == 1.*, expression .*other == 1.*\]$/,
  })
})

test('a condition that was stored and does not compile fails as one that has no value', async (t) => {
  await t.rejects(calledWith(condition('] bad')), {
    code: 403,
    message: /compilation error: compilation failed: ERROR/,
  })
  t.equal(await calledWith({ ...condition('] bad'), failurePolicy: 'Ignore' }), '')
})

test('the conditions of one webhook share a budget', async (t) => {
  const items = Array.from({ length: 300 }, (_, index) => index)
  const object: AnyObject = { ...config, metadata: { ...config.metadata, labels: {} }, spec: { items } }
  const costly = 'object.spec.items.all(a, object.spec.items.all(b, a + b >= 0))'
  t.equal(await calledWith(condition(costly), { object }), 'mv')
  await t.rejects(calledWith(condition(...Array.from({ length: 10 }, () => costly)), { object }), {
    code: 403,
    message: /validation failed due to running out of cost budget, no further validation rules will be run$/,
  })
})

test('conditions ask the authorizer about the user, a service account, a path and the resource of the request', async (t) => {
  const asked: [string, Attributes][] = []
  const access: Pick<Authorizer, 'decide'> = {
    async decide({ user }, attributes) {
      asked.push([user, attributes])
      return { allowed: attributes.verb !== 'delete', reason: 'by a role' }
    },
  }
  const chosen = (expression: string) => calledWith(condition(expression), {}, access)
  const pods = "authorizer.group('').resource('pods').namespace('a').name('b').subresource('status')"
  t.equal(await chosen(`${pods}.check('get').allowed()`), 'mv')
  t.same(asked[0], [
    'ada',
    {
      ...{
        kind: 'resource',
        verb: 'get',
        group: '',
        resource: 'pods',
        subresource: 'status',
        namespace: 'a',
        name: 'b',
      },
      fields: new Map(),
    },
  ])
  asked.length = 0
  t.equal(await chosen("authorizer.requestResource.check('delete').allowed()"), '')
  t.match(asked[0], ['ada', { verb: 'delete', resource: 'configmaps', namespace: 'default', name: 'c' }])
  asked.length = 0
  t.equal(
    await chosen("authorizer.serviceAccount('a', 'robot').path('/healthz').check('get').reason() == 'by a role'"),
    'mv',
  )
  t.same(asked[0], ['system:serviceaccount:a:robot', { kind: 'path', verb: 'get', path: '/healthz' }])
  asked.length = 0
  const twice = "authorizer.path('/x').check('get').allowed() && !authorizer.path('/x').check('get').errored()"
  t.equal(await chosen(twice), 'mv')
  t.equal(asked.length, 2, 'one for each of the two webhooks of different kinds')
})

test('a question that cannot be answered is an error that the expression can read, and one that makes no sense fails', async (t) => {
  const access = { decide: () => Promise.reject(new Error('the store is closed')) }
  const chosen = (expression: string) => calledWith(condition(expression), {}, access)
  const check = "authorizer.path('/x').check('get')"
  t.equal(await chosen(`${check}.errored() && !${check}.allowed()`), 'mv')
  t.equal(await chosen(`${check}.error() == 'the store is closed'`), 'mv')
  await t.rejects(chosen("authorizer.path(' ').check('get').allowed()"), { message: /path must not be empty/ })
  await t.rejects(chosen("authorizer.group('').resource('').check('get').allowed()"), {
    message: /resource must not be empty/,
  })
  await t.rejects(chosen("authorizer.serviceAccount('a', '@').path('/').check('get').allowed()"), {
    message: /Invalid service account name/,
  })
  // Each check costs 350,000 of 1,000,000.
  const many = ['/a', '/b', '/c'].map((path) => `authorizer.path('${path}').check('get').errored()`).join(' && ')
  await t.rejects(chosen(many), { message: /actual cost limit exceeded/ })
})
