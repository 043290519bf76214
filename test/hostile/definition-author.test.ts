/** The author of definitions, of their rules and of admission policies: a ServiceAccount that may write these and the objects of its kinds. */
import { type Test, test } from 'tap'
import { eventually } from '../support/wait.ts'
import { type AttackedFleet, attackedFleet, settled } from './support/attacked-fleet.ts'
import { type Tenant, tenantOf } from './support/tenant.ts'

type Given = { readonly fleet: AttackedFleet; readonly author: Tenant; readonly neighbour: Tenant }
type Attack = (t: Test, given: Given) => Promise<void>

const attacks: { readonly [what: string]: Attack } = {
  'holds up nothing with schemas that are deep, wide, or of odd names': definesSchemas,
  'holds up nothing with rules at the limit of their cost': judgesByRules,
  'holds up nothing with a kind that is defined otherwise all the time': redefines,
  'holds up nothing with policies at the limit of their cost, of all writes of a namespace': judgesByPolicies,
  'holds up nothing with policies whose types are checked': checksTypes,
}

test('an attacker who may write definitions and policies', async (t) => {
  const fleet = await attackedFleet(t)
  const [author, neighbour] = [await tenantOf(t, fleet, 'author'), await tenantOf(t, fleet, 'neighbour')]
  await allow(fleet, author)
  const baseMiB = await fleet.controllerMiB()
  for (const [what, attack] of Object.entries(attacks)) {
    await t.test(what, async (t) => {
      const given = { fleet, author, neighbour }
      await fleet.unnoticed(t, () => attack(t, given))
      await removeAll(fleet)
      const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'after-' } }
      const { status } = await neighbour.api.sendJson('POST', '/api/v1/namespaces/neighbour/configmaps', map)
      t.equal(status, 201, 'others write')
    })
  }
  const mib = await settled(fleet, baseMiB + 150)
  t.comment(`controller: ${Math.round(baseMiB)} MiB before, ${Math.round(mib)} MiB after`)
})

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const admission = '/apis/admissionregistration.k8s.io/v1'
const policies = `${admission}/validatingadmissionpolicies`
const bindings = `${admission}/validatingadmissionpolicybindings`

/** All that its author needs, and nothing of others. */
async function allow({ controller: { kubectl, kubectlWith } }: AttackedFleet, { namespace }: Tenant): Promise<void> {
  const rule = (apiGroups: readonly string[], ...resources: readonly string[]) => ({
    apiGroups,
    resources,
    verbs: ['*'],
  })
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'author' },
    rules: [
      rule(['apiextensions.k8s.io'], 'customresourcedefinitions'),
      rule(['admissionregistration.k8s.io'], 'validatingadmissionpolicies', 'validatingadmissionpolicybindings'),
      rule(['author.example.com'], '*'),
    ],
  }
  await kubectlWith(JSON.stringify(role), 'apply', '-f', '-')
  await kubectl('create', 'clusterrolebinding', 'author', '--clusterrole=author', `--serviceaccount=${namespace}:robot`)
}

async function removeAll({ admin }: AttackedFleet): Promise<void> {
  for (const path of [bindings, policies, definitions]) await admin.send('DELETE', path)
  await eventually('they are gone', async () => {
    const { text } = await admin.send('GET', definitions)
    return JSON.parse(text).items.length === 0
  })
}

function definition(plural: string, schema: object) {
  const kind = `${plural.slice(0, 1).toUpperCase()}${plural.slice(1)}`
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.author.example.com` },
    spec: { group: 'author.example.com', scope: 'Namespaced', names: { plural, kind }, versions: [version] },
  }
}

const nested = (levels: number, leaf: object): object =>
  levels === 0 ? leaf : { type: 'object', properties: { a: nested(levels - 1, leaf) } }
const alternatives = (levels: number): object =>
  levels === 0 ? { type: 'integer' } : { oneOf: Array.from({ length: 5 }, () => alternatives(levels - 1)) }
const text = { type: 'string' }
const within = (spec: object) => ({ type: 'object', properties: { spec } })
const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, text]))

async function definesSchemas(t: Test, { author }: Given): Promise<void> {
  const schemas: { readonly [what: string]: object } = {
    'ten thousand levels': {},
    'ninety levels': nested(90, text),
    'ten thousand fields': within({
      type: 'object',
      properties: named(Array.from({ length: 10_000 }, (_, i) => `f${i}`)),
    }),
    'alternatives of alternatives': within({ type: 'integer', ...alternatives(5) }),
    'a pattern that grows': within({ ...text, pattern: '((a{1000}){1000}){1000}' }),
    'a pattern that matches slowly': within({ ...text, pattern: '^(a|b|ab|ba|aab)*c$' }),
    'names of prototypes': within({ type: 'object', properties: named(['constructor', 'toString', 'hasOwnProperty']) }),
  }
  const deep = `${'{"type":"object","properties":{"a":'.repeat(10_000)}{"type":"string"}${'}}'.repeat(10_000)}`
  for (const [index, [what, schema]] of Object.entries(schemas).entries()) {
    const body = JSON.stringify(definition(`k${index}s`, schema))
    const sent =
      what === 'ten thousand levels' ? body.replace('"openAPIV3Schema":{}', `"openAPIV3Schema":${deep}`) : body
    const headers = { 'content-type': 'application/json' }
    const { status, text: answer } = await author.api.send('POST', definitions, { body: sent, headers })
    t.ok(status === 201 || (status >= 400 && status < 500), `${what}: ${status} ${answer.slice(0, 200)}`)
    if (status === 201) await writes(t, author, `k${index}s`, { a: 'ab'.repeat(50_000), constructor: 'x', f1: 1 })
  }
  const odd = JSON.stringify(definition('odds', within({ type: 'object' }))).replace(
    '"type":"object"}',
    '"type":"object","properties":{"__proto__":{"type":"string"}}}',
  )
  const { status } = await author.api.send('POST', definitions, {
    body: odd,
    headers: { 'content-type': 'application/json' },
  })
  t.ok(status < 500, `__proto__: ${status}`)
}

/** An object of the kind, once it is served. Whether it is valid does not matter, but that it is answered does. */
async function writes(t: Test, { api, namespace }: Tenant, plural: string, spec: unknown): Promise<number> {
  const kind = `${plural.slice(0, 1).toUpperCase()}${plural.slice(1)}`
  const path = `/apis/author.example.com/v1/namespaces/${namespace}/${plural}`
  const object = { apiVersion: 'author.example.com/v1', kind, metadata: { generateName: 'a-' }, spec }
  const { status, text: answer } = await eventually(`${plural} is served`, async () => {
    const answered = await api.sendJson('POST', path, object)
    return answered.status === 404 ? undefined : answered
  })
  t.ok(status < 500 || status === 504, `${plural}: ${status} ${answer.slice(0, 200)}`)
  return status
}

const many = Array.from({ length: 10_000 }, (_, index) => `${index}`)
const loops = 'self.all(a, self.all(b, self.all(c, a + b + c != "")))'

async function judgesByRules(t: Test, { author }: Given): Promise<void> {
  const rules = (...of: readonly string[]) => of.map((rule) => ({ rule }))
  // Without bounds Kubernetes refuses them by their estimate: these are within it.
  const list = { type: 'array', maxItems: 100, items: { ...text, maxLength: 10 } }
  const judged = within({
    ...list,
    'x-kubernetes-validations': rules(loops, 'self.map(a, self.map(b, b)).size() >= 0'),
  })
  const unbounded = within({ type: 'array', items: text, 'x-kubernetes-validations': rules(loops) })
  const refused = await author.api.sendJson('POST', definitions, definition('unbounded', unbounded))
  t.equal(refused.status, 422, 'its estimate is beyond the budget')
  const made = await author.api.sendJson('POST', definitions, definition('judged', judged))
  t.ok([201, 422].includes(made.status), `${made.status} ${made.text.slice(0, 300)}`)
  const slow = within({
    ...text,
    maxLength: 100_000,
    'x-kubernetes-validations': rules('self.matches("^(a|b|ab|ba|aab)*c$")'),
  })
  const pattern = await author.api.sendJson('POST', definitions, definition('slow', slow))
  for (const [plural, status, spec] of [
    ['judged', made.status, many.slice(0, 100)],
    ['slow', pattern.status, 'ab'.repeat(50_000)],
  ] as const) {
    if (status !== 201) continue
    await writes(t, author, plural, spec)
    await Promise.all(Array.from({ length: 30 }, () => writes(t, author, plural, spec)))
  }
}

async function redefines(t: Test, { author }: Given): Promise<void> {
  const made = definition(
    'changing',
    within({ type: 'object', properties: named(Array.from({ length: 1_000 }, (_, i) => `f${i}`)) }),
  )
  t.equal((await author.api.sendJson('POST', definitions, made)).status, 201)
  await writes(t, author, 'changing', {})
  const watches = await Promise.all(
    Array.from({ length: 20 }, () => author.stream(`/apis/author.example.com/v1/namespaces/author/changing?watch=1`)),
  )
  const merging = { 'content-type': 'application/merge-patch+json' }
  const path = `${definitions}/${made.metadata.name}`
  for (let round = 0; round < 60; round++) {
    const [version] = made.spec.versions
    const names = named(Array.from({ length: 1_000 }, (_, i) => `f${i + round}`))
    const schema = { openAPIV3Schema: within({ type: 'object', properties: names }) }
    const change = { spec: { versions: [{ ...version, schema }] } }
    const { status } = await author.api.sendJson('PATCH', path, change, merging)
    t.ok([200, 409, 429].includes(status), `${status}`)
    await author.api.send('GET', '/openapi/v2')
    await author.api.send('GET', '/openapi/v3/apis/author.example.com/v1')
  }
  await eventually('its watches end', () => watches.every(({ isOpen }) => !isOpen()))
}

type Validations = readonly { readonly expression: string }[]
type Rules = readonly { readonly apiGroups: readonly string[]; readonly resources: readonly string[] }[]

function policy(name: string, validations: Validations, rules: Rules, more: object = {}) {
  const resourceRules = rules.map((rule) => ({ operations: ['*'], apiVersions: ['v1'], ...rule }))
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: { failurePolicy: 'Ignore', matchConstraints: { resourceRules }, validations, ...more },
  }
}

const maps: Rules = [{ apiGroups: [''], resources: ['configmaps'] }]

async function judgesByPolicies(t: Test, { author }: Given): Promise<void> {
  const costly = 'object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != "")))'
  for (let index = 0; index < 10; index++) {
    const validations = Array.from({ length: 20 }, () => ({ expression: costly }))
    const made = await author.api.sendJson('POST', policies, policy(`costly-${index}`, validations, maps))
    t.equal(made.status, 201, made.text.slice(0, 300))
    const binding = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: `costly-${index}` },
      spec: {
        policyName: `costly-${index}`,
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'author' } } },
      },
    }
    t.equal((await author.api.sendJson('POST', bindings, binding)).status, 201)
  }
  const data = Object.fromEntries(many.slice(0, 2_000).map((name) => [`k${name}`, name]))
  const write = async () => {
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'a-' }, data }
    // Each may take a second of CPU time: on a busy machine the last may get no answer within a minute.
    return author.api.sendJson('POST', '/api/v1/namespaces/author/configmaps', map).then(
      ({ status }) => status,
      () => 504,
    )
  }
  const codes = await Promise.all(Array.from({ length: 10 }, write))
  t.ok(
    codes.every((status) => [201, 422, 429, 504].includes(status)),
    codes.join(' '),
  )
}

/** Each change has all expressions checked for ten kinds. */
async function checksTypes(t: Test, { author }: Given): Promise<void> {
  const condition = 'object.spec.template.spec.containers.all(c, c.image == "a" || c.env.exists(e, e.value == 1)) && '
  const expression = `${condition.repeat(Math.floor(8_000 / condition.length))}true`
  const validations = Array.from({ length: 24 }, () => ({ expression }))
  const rules: Rules = [
    { apiGroups: ['apps'], resources: ['deployments', 'daemonsets', 'statefulsets', 'replicasets'] },
    { apiGroups: ['batch'], resources: ['jobs', 'cronjobs'] },
    { apiGroups: [''], resources: ['pods', 'podtemplates', 'replicationcontrollers', 'services'] },
  ]
  const made = await author.api.sendJson('POST', policies, policy('typed', validations, rules))
  t.equal(made.status, 201, made.text.slice(0, 300))
  const merging = { 'content-type': 'application/merge-patch+json' }
  for (let round = 0; round < 20; round++) {
    const change = { spec: { auditAnnotations: [{ key: 'round', valueExpression: `"${round}"` }] } }
    const { status } = await author.api.sendJson('PATCH', `${policies}/typed`, change, merging)
    t.ok([200, 409, 429].includes(status), `${status}`)
  }
  await eventually('its types are checked', async () => {
    const { text: answer } = await author.api.send('GET', `${policies}/typed`)
    const { metadata, status } = JSON.parse(answer)
    return status?.observedGeneration === metadata.generation && status.typeChecking.expressionWarnings.length > 0
  })
}
