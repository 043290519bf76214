/** Policies that cost most hold the event loop for 50 ms at most, and all of them together take a bounded time. */
import { test } from 'tap'
import { withMatchDefaults } from '../../../api/admission/match-resources.ts'
import type { AdmissionPolicySpec } from '../../../api/admission/validating-admission-policy.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { turnCost } from '../../../daemon/testing/turn-budget.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'
import { policyAdmission } from './policy-admission.ts'

const mostTurnMs = 50
/** A tenth of what a request may take: its turns are as long. */
const requestSteps = 4_000_000
const apiVersion = 'admissionregistration.k8s.io/v1'
const resourceRules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }]

type Size = { readonly policies: number; readonly bindings: number; readonly params: number }

async function anAdmission(spec: AdmissionPolicySpec, { policies, bindings, params }: Size) {
  const store = memoryStore({ clock })
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
  for (let index = 0; index < params; index++) {
    const metadata = { name: `params-${index}`, namespace: 'default' }
    await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { most: '1' } })
  }
  for (let policy = 0; policy < policies; policy++) {
    await store.create('validatingadmissionpolicies', {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: `p${policy}` },
      spec: { failurePolicy: 'Ignore', ...spec, matchConstraints: withMatchDefaults({ resourceRules }) },
    })
    for (let binding = 0; binding < bindings; binding++) {
      await store.create('validatingadmissionpolicybindings', {
        apiVersion,
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata: { name: `p${policy}-${binding}` },
        spec: {
          policyName: `p${policy}`,
          validationActions: ['Audit', 'Deny'],
          paramRef: { selector: {}, parameterNotFoundAction: 'Allow' },
        },
      })
    }
  }
  let asked = 0
  const access = {
    async decide() {
      asked += 1
      return { allowed: true, reason: '' }
    },
  }
  return {
    gate: policyAdmission({ store, kinds: builtInKinds, access, clock, registry: metricsRegistry(), requestSteps }),
    asked: () => asked,
  }
}

const items = Array.from({ length: 16_000 }, (_, index) => `${index}`)
const object = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'default' },
  data: Object.fromEntries(items.map((item) => [item, item])),
} as unknown as AnyObject

function aWrite(): ReviewedWrite {
  const resource = builtInKinds.get('configmaps')
  if (resource === undefined) throw new Error('configmaps')
  return {
    operation: 'CREATE',
    route: { kind: 'resource', verb: 'create', resource, namespace: 'default', name: '', subresource: '' },
    identity: { user: 'ada', groups: [] },
    name: 'c',
    object,
    old: undefined,
    query: new URLSearchParams(),
    dryRun: false,
    signal: new AbortController().signal,
    startedMs: clock.monotonicMs(),
    trail: { warn: () => undefined, annotate: () => undefined },
  }
}

const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' }
const validation = (expression: string, count = 1): AdmissionPolicySpec => ({
  paramKind,
  validations: Array.from({ length: count }, (_, index) => ({ expression: `${expression} || ${index} < 0` })),
})
const loops = 'object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != params.data.most)))'

const cases: readonly (readonly [what: string, spec: AdmissionPolicySpec, size: Size])[] = [
  ['loops', validation(loops, 20), { policies: 10, bindings: 10, params: 20 }],
  ['many bindings and parameters', validation('params.data.most == "1"'), { policies: 20, bindings: 20, params: 200 }],
  [
    'variables that are loops',
    {
      ...validation('variables.v9'),
      variables: Array.from({ length: 10 }, (_, index) => ({
        name: `v${index}`,
        expression: index === 0 ? loops : `variables.v${index - 1} || ${loops}`,
      })),
    },
    { policies: 5, bindings: 5, params: 20 },
  ],
  [
    'expressions to compile',
    validation('object.data.all(a, a != params.data.most)', 1_000),
    { policies: 1, bindings: 1, params: 1 },
  ],
]

for (const [what, spec, size] of cases) {
  test(`policies with ${what} are evaluated in pieces`, async (t) => {
    const { gate } = await anAdmission(spec, size)
    const act = () => gate.validate(aWrite()).catch(() => undefined)
    const { ms } = await turnCost({ what, bytes: 0, act }, { enoughMs: mostTurnMs })
    t.ok(ms <= mostTurnMs, `${ms.toFixed(0)} ms`)
  })
}

test('what all policies of one write may take together is bounded', async (t) => {
  const spec = validation("authorizer.path('/' + params.metadata.name).check('get').allowed()")
  const { gate, asked } = await anAdmission(spec, { policies: 20, bindings: 20, params: 10 })
  await gate.validate(aWrite())
  t.ok(asked() <= 10, 'the same question of one write is asked once')
  const deny = await anAdmission({ ...spec, failurePolicy: 'Fail' }, { policies: 20, bindings: 20, params: 10 })
  await t.rejects(deny.gate.validate(aWrite()), { code: 422, message: /running out of cost budget/ })
})
