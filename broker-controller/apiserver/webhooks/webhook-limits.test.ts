import { type Test, test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { mastersGroup } from '../../../api/identity.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'
import { defaultWebhookLimits, webhookAdmission } from './webhook-admission.ts'
import type { WebhookCall } from './webhook-call.ts'

const rules = [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }]
const clientConfig = { url: 'https://127.0.0.1/' }

test('webhooks that hang hold some requests at a time, and those of administrators go on', async (t) => {
  const { gate, hang, write } = await aGate(t, { requestsAtOnce: 4 })
  const held = [1, 2].map(() => gate.validate(write()))
  await hang.calls(2)
  const refused = await gate.validate(write()).catch((error: unknown) => error)
  t.ok(isApiError(refused, 'TooManyRequests'), String(refused))
  t.match(String(refused), /2 of this user wait for the same admission webhooks, and 2 of all users for any/)
  const administrator = gate.validate(write({ identity: { user: 'ada', groups: [mastersGroup] } }))
  await hang.calls(3)
  hang.fail()
  for (const one of [...held, administrator]) await t.rejects(one, /failed calling webhook/)
  const later = gate.validate(write())
  await hang.calls(4)
  hang.fail()
  await t.rejects(later, /failed calling webhook/, 'what has ended no longer counts')
})

test('a webhook that hangs, and a user with many writes, leave places for others', async (t) => {
  const { gate, hang, write } = await aGate(t, { requestsAtOnce: 12 }, ['m'])
  const ends: Promise<unknown>[] = []
  /** How many requests of this user wait, of twenty. */
  const waiting = async (user: string, act: 'mutate' | 'validate') => {
    const before = hang.made()
    for (let count = 0; count < 20; count++)
      ends.push(gate[act](write({ identity: { user, groups: [] } })).catch(() => undefined))
    await new Promise((resolve) => setImmediate(resolve))
    return hang.made() - before
  }
  t.equal(await waiting('joe', 'validate'), 6)
  t.equal(await waiting('joe', 'mutate'), 3, 'those that wait for another webhook')
  t.equal(await waiting('system:serviceaccount:shop:a', 'validate'), 2, 'those of another user')
  t.equal(await waiting('system:serviceaccount:shop:b', 'validate'), 0, 'which may have several accounts')
  t.equal(await waiting('jane', 'validate'), 1)
  hang.fail()
  await Promise.all(ends)
  t.equal(await waiting('jane', 'validate'), 6, 'what has ended no longer counts')
})

test('the webhooks of one request share its time, whatever their failurePolicy', async (t) => {
  const names = ['a', 'b', 'c']
  const { gate, hang, write, clock } = await aGate(t, {}, names)
  const request = write()
  const mutating = gate.mutate(request)
  for (const [index, seconds] of [30, 30, 10].entries()) {
    await hang.calls(index + 1)
    t.equal(hang.last()?.timeoutSeconds, seconds, `${names[index]} has what is left`)
    await clock.advance(index < 2 ? 25_000 : 10_000)
    hang.fail()
  }
  t.equal(await mutating, request.object, 'all are ignored')
  const late = await gate.mutate(request).catch((error: unknown) => error)
  t.ok(isApiError(late, 'Timeout'), String(late))
  t.equal(defaultWebhookLimits.requestMs, 60_000)
})

/** One validating webhook that must succeed, and mutating ones that need not. */
async function aGate(t: Test, limits: Partial<typeof defaultWebhookLimits>, mutating: readonly string[] = []) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const common = { clientConfig, rules, sideEffects: 'None', admissionReviewVersions: ['v1'], timeoutSeconds: 30 }
  await store.create('validatingwebhookconfigurations', {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'v' },
    webhooks: [{ ...common, name: 'v.example.com' }],
  })
  await store.create('mutatingwebhookconfigurations', {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'm' },
    webhooks: mutating.map((name) => ({ ...common, name: `${name}.example.com`, failurePolicy: 'Ignore' })),
  })
  const hang = hanging()
  const gate = webhookAdmission({
    store,
    kinds: builtInKinds,
    access: { decide: async () => ({ allowed: false, reason: '' }) },
    caller: hang,
    clock,
    registry: metricsRegistry(),
    limits: { ...defaultWebhookLimits, ...limits },
  })
  const resource = builtInKinds.get('pods')
  if (resource === undefined) throw new Error('pods')
  const startedMs = gate.nowMs()
  const write = (more: Partial<ReviewedWrite> = {}): ReviewedWrite => ({
    operation: 'CREATE',
    route: { kind: 'resource', verb: 'create', resource, namespace: 'default', name: '', subresource: '' },
    identity: { user: 'joe', groups: [] },
    name: 'p',
    object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
    old: undefined,
    query: new URLSearchParams(),
    dryRun: false,
    signal: new AbortController().signal,
    startedMs,
    trail: { warn: () => undefined, annotate: () => undefined },
    ...more,
  })
  t.teardown(hang.fail)
  return { gate, hang, write, clock }
}

/** A caller whose calls end when the test ends them. */
function hanging() {
  const made: WebhookCall[] = []
  let ends: (() => void)[] = []
  return {
    call: (call: WebhookCall) =>
      new Promise<unknown>((_, reject) => {
        made.push(call)
        ends.push(() => reject(new Error('it hangs')))
      }),
    last: () => made.at(-1),
    made: () => made.length,
    /** Resolves when so many have been made. */
    async calls(count: number) {
      while (made.length < count) await new Promise((resolve) => setImmediate(resolve))
    },
    fail() {
      const ending = ends
      ends = []
      for (const end of ending) end()
    },
  }
}
