import { test } from 'tap'
import { leastCpuMs } from '../../../daemon/testing/growth.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'
import { reviewRequest, verdictOf } from './admission-review.ts'

const pods = builtInKinds.get('pods')
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } }

function aWrite(more: Partial<ReviewedWrite> = {}): ReviewedWrite {
  if (pods === undefined) throw new Error('pods')
  return {
    operation: 'CREATE',
    route: { kind: 'resource', verb: 'create', resource: pods, namespace: 'default', name: '', subresource: '' },
    identity: { user: 'ada', groups: ['dev'] },
    name: 'p',
    object: pod,
    old: undefined,
    query: new URLSearchParams('fieldManager=kubectl&fieldValidation=Strict'),
    dryRun: false,
    signal: new AbortController().signal,
    startedMs: 0,
    trail: { warn: () => undefined, annotate: () => undefined },
    ...more,
  }
}

/** The request as a webhook for the kind of the write gets it. */
const requestFor = (write: ReviewedWrite, object: unknown, uid: string) =>
  reviewRequest(write, { resource: write.route.resource, object, old: write.old }, uid)

test('the request describes the write', async (t) => {
  const gvk = { group: '', version: 'v1', kind: 'Pod' }
  const gvr = { group: '', version: 'v1', resource: 'pods' }
  t.same(requestFor(aWrite(), pod, 'u'), {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: 'u',
      kind: gvk,
      resource: gvr,
      requestKind: gvk,
      requestResource: gvr,
      name: 'p',
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'ada', groups: ['dev'] },
      object: pod,
      oldObject: null,
      dryRun: false,
      options: {
        kind: 'CreateOptions',
        apiVersion: 'meta.k8s.io/v1',
        fieldManager: 'kubectl',
        fieldValidation: 'Strict',
      },
    },
  })
})

test('a webhook that is sent another form of the object learns what was requested', async (t) => {
  const [v1, v2] = ['v1', 'v2'].map((version) => builtInKinds.at('autoscaling', version, 'horizontalpodautoscalers'))
  if (v1 === undefined || v2 === undefined) throw new Error('horizontalpodautoscalers')
  const write = aWrite({ route: { ...aWrite().route, resource: v2 } })
  const [object, old] = [{ is: 'new' }, { ...pod, metadata: { name: 'old' } }]
  t.match(reviewRequest(write, { resource: v1, object, old }, 'u'), {
    request: {
      kind: { group: 'autoscaling', version: 'v1', kind: 'HorizontalPodAutoscaler' },
      resource: { group: 'autoscaling', version: 'v1', resource: 'horizontalpodautoscalers' },
      requestKind: { group: 'autoscaling', version: 'v2', kind: 'HorizontalPodAutoscaler' },
      requestResource: { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' },
      object,
      oldObject: old,
    },
  })
})

test('a deletion has no object, a patch its own options, a dry run is marked, and a connection has no options', async (t) => {
  const query = new URLSearchParams()
  const identity = { user: 'a', groups: [], uid: 'i', extra: { k: ['v'] } }
  const deletion = requestFor(aWrite({ operation: 'DELETE', old: pod, query, dryRun: true, identity }), undefined, 'u')
  t.match(deletion, {
    request: {
      object: null,
      oldObject: pod,
      dryRun: true,
      userInfo: { username: 'a', uid: 'i', groups: [], extra: { k: ['v'] } },
      options: { kind: 'DeleteOptions', dryRun: ['All'] },
    },
  })
  const { route } = aWrite()
  const patch = requestFor(aWrite({ operation: 'UPDATE', route: { ...route, verb: 'patch' }, query }), pod, 'u')
  t.match(patch, { request: { options: { kind: 'PatchOptions' } } })
  const exec = { apiVersion: 'v1', kind: 'PodExecOptions', command: ['sh'] }
  const connection = requestFor(
    aWrite({ operation: 'CONNECT', route: { ...route, verb: 'get', subresource: 'exec', name: 'p' }, query, name: '' }),
    exec,
    'u',
  ) as { request: Record<string, unknown> }
  t.match(connection.request, {
    kind: { kind: 'PodExecOptions' },
    subResource: 'exec',
    requestSubResource: 'exec',
    options: null,
  })
  t.notOk('name' in connection.request)
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction' }
  t.match(requestFor(aWrite({ route: { ...route, subresource: 'eviction' } }), eviction, 'u'), {
    request: { kind: { group: 'policy', version: 'v1', kind: 'Eviction' }, resource: { group: '', resource: 'pods' } },
  })
})

const answer = (response: unknown, more: Record<string, unknown> = {}) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response,
  ...more,
})
const patchOf = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')

test('an answer allows, with a patch, warnings and annotations', async (t) => {
  t.match(verdictOf(answer({ uid: 'u', allowed: true }), 'u', true), { allowed: true, patch: [], warnings: [] })
  const operations = [{ op: 'add', path: '/metadata/labels', value: {} }]
  const more = { warnings: ['a\nb', 1], auditAnnotations: { k: 'v', n: 1 } }
  const verdict = verdictOf(
    answer({ uid: 'u', allowed: true, patch: patchOf(operations), patchType: 'JSONPatch', ...more }),
    'u',
    true,
  )
  t.match(verdict, { allowed: true, patch: operations, warnings: ['a b'] })
  t.same('annotations' in verdict && [...verdict.annotations], [['k', 'v']])
})

test('a warning of three million control characters is cut before it is cleaned', async (t) => {
  const warnings = [`first${'\x7f'.repeat(3_000_000)}`]
  const judge = () => verdictOf(answer({ uid: 'u', allowed: true, warnings }), 'u', true)
  t.match(judge(), { warnings: [`first${' '.repeat(248)}...`] })
  const took = await leastCpuMs(judge)
  t.ok(took < 50, `${took} ms`)
})

test('an answer denies, with a code of at least 400', async (t) => {
  const denied = (status: unknown) => verdictOf(answer({ uid: 'u', allowed: false, status }), 'u', false)
  const statusOf = (status: unknown) => {
    const verdict = denied(status)
    return 'status' in verdict ? verdict.status : verdict
  }
  t.same(statusOf({ code: 403, reason: 'Forbidden', message: 'no' }), { code: 403, reason: 'Forbidden', message: 'no' })
  t.same(statusOf(undefined), { code: 400, reason: '', message: '' })
  for (const code of [0, 200, 399, 600, 400.5, '403']) t.match(statusOf({ code }), { code: 400 }, String(code))
  for (const code of [400, 599]) t.match(statusOf({ code }), { code })
})

test('an invalid answer has a reason', async (t) => {
  const because = (body: unknown, isMutating = true) => {
    const verdict = verdictOf(body, 'u', isMutating)
    return 'failed' in verdict ? verdict.failed : 'fine'
  }
  t.match(because('text'), /the body is not an object/)
  t.match(
    because(answer({}, { apiVersion: 'admission.k8s.io/v1beta1' })),
    /expected webhook response of admission.k8s.io\/v1/,
  )
  t.match(because(answer({}, { kind: 'Other' })), /Kind=AdmissionReview, got admission.k8s.io\/v1, Kind=Other/)
  t.equal(because(answer(undefined)), 'webhook response was absent')
  t.match(because(answer({ allowed: true })), /expected response.uid="u", got ""/)
  t.match(because(answer({ uid: 'x', allowed: true })), /got "x"/)
  t.match(because(answer({ uid: 'u' })), /response.allowed must be true or false/)
  const allowed = { uid: 'u', allowed: true }
  t.match(because(answer({ ...allowed, patch: patchOf([]) })), /response.patch but not response.patchType/)
  t.match(because(answer({ ...allowed, patchType: 'JSONPatch' })), /response.patchType but not response.patch/)
  t.match(
    because(answer({ ...allowed, patch: patchOf([]), patchType: 'Merge' })),
    /invalid webhook response.patchType of "Merge"/,
  )
  t.match(because(answer({ ...allowed, patch: 'no', patchType: 'JSONPatch' })), /not JSON in base64/)
  t.match(because(answer({ ...allowed, patch: 1, patchType: 'JSONPatch' })), /not JSON in base64/)
  t.match(
    because(answer({ ...allowed, patch: patchOf([]), patchType: 'JSONPatch' }), false),
    /validating webhook may not/,
  )
  t.equal(because(answer({ ...allowed, patch: null })), 'fine')
})

test('what a webhook sends for people is bounded', async (t) => {
  const long = 'x'.repeat(10_000)
  const verdict = verdictOf(
    answer({
      uid: 'u',
      allowed: false,
      status: { message: long, reason: long },
      warnings: Array.from({ length: 30 }, () => long),
      auditAnnotations: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`k${at}`, long])),
    }),
    'u',
    true,
  )
  if (!('status' in verdict)) throw new Error('allowed')
  t.equal(verdict.status.message.length, 4096)
  t.equal(verdict.status.reason.length, 4096, 'agnhost and others put their sentence there')
  t.equal(verdict.warnings.length, 20)
  t.equal(verdict.warnings[0]?.length, 256)
  t.equal(verdict.annotations.size, 20)
  t.equal(verdict.annotations.get('k0')?.length, 1024)
})

test('an answer that has no text, and a patch that is too deep or too large, are failures of the call', async (t) => {
  const noText = { toString: 1, valueOf: 1 }
  t.match(verdictOf({ apiVersion: noText, kind: noText }, 'u', true), {
    failed: /got \{"toString":1,"valueOf":1\}, Kind=\{"toString":1,"valueOf":1\}$/,
  })
  const answered = (patch: string) => {
    const response = { uid: 'u', allowed: true, patchType: 'JSONPatch', patch: Buffer.from(patch).toString('base64') }
    return verdictOf({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response }, 'u', true)
  }
  t.match(answered(`${'['.repeat(100)}${']'.repeat(100)}`), { allowed: true })
  t.match(answered(`${'['.repeat(101)}${']'.repeat(101)}`), { failed: /response.patch is not JSON in base64/ })
  t.match(answered(`[${'0,'.repeat(50_000)}0]`), { failed: /response.patch is not JSON in base64/ })
})
